package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpdoctor/scan/facts"
)

func TestEndpointStateless(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		f := &fake{stream: stream}
		e := asked(t, options(t, f.serve(t).URL+"/mcp", 5))
		if e.Transport != facts.Streamable || e.Version != "2025-06-18" || e.Name != "fake" || e.Release != "1.2" || e.Session || e.Modern {
			t.Errorf("%+v", e)
		}
		if !answer(t, e, facts.AskWithout).Result || !answer(t, e, facts.AskUnknown).Result || answer(t, e, facts.AskModern).Code != -32000 {
			t.Errorf("%+v", e.Exchanges)
		}
		if r := e.Retention; r.Sent != 5 || r.Served != 5 || r.Refused != nil || r.Request != "initialize" || r.Deletes != 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestEndpointSessions(t *testing.T) {
	t.Parallel()
	f := &fake{sessions: true, unknown: 404}
	e := asked(t, options(t, f.serve(t).URL, 5))
	if !e.Session || answer(t, e, facts.AskWithout).Status != 400 || answer(t, e, facts.AskUnknown).Status != 404 || !answer(t, e, facts.AskWith).Result ||
		answer(t, e, facts.AskDelete).Status != 200 || answer(t, e, facts.AskDeleted).Status != 404 || !answer(t, e, facts.AskDropped).Result {
		t.Errorf("%+v", e.Exchanges)
	}
	if r := e.Retention; r.Served != 5 || r.Deletes != 5 || r.Deleted != 5 || r.DroppedMS < 50 {
		t.Errorf("%+v", r)
	}
	if len(f.open) != 0 || f.opened != 6 {
		t.Errorf("of %d sessions %d are left open", f.opened, len(f.open))
	}
	if strings.Contains(told(t, e, nil), "session-0") {
		t.Errorf("a session ID is told: %s", told(t, e, nil))
	}
}

func TestEndpointWithoutDelete(t *testing.T) {
	t.Parallel()
	f := &fake{sessions: true, unknown: 400, deletes: 405}
	e := asked(t, options(t, f.serve(t).URL, 5))
	if answer(t, e, facts.AskDelete).Status != 405 || !answer(t, e, facts.AskDeleted).Result || e.Retention.Deletes != 0 {
		t.Errorf("%+v %+v", e.Exchanges, e.Retention)
	}
}

func TestEndpointModern(t *testing.T) {
	t.Parallel()
	f := &fake{only: true}
	e := asked(t, options(t, f.serve(t).URL, 5))
	if e.Transport != facts.Stateless || !e.Modern || e.Version != modern || len(e.Supported) == 0 || e.Supported[0] != modern || e.Name != "fake" {
		t.Errorf("%+v", e)
	}
	if answer(t, e, facts.AskInitialize).Code != unsupportedVersion || !answer(t, e, facts.AskWithout).Result || !answer(t, e, facts.AskUnknown).Result {
		t.Errorf("%+v", e.Exchanges)
	}
	if e.Retention.Request != "tools/list" || e.Retention.Served != 5 {
		t.Errorf("%+v", e.Retention)
	}
	f = &fake{modern: true, sessions: true, unknown: 404}
	if e = asked(t, options(t, f.serve(t).URL, 0)); e.Transport != facts.Streamable || !e.Modern {
		t.Errorf("both: %+v", e)
	}
}

func TestEndpointLimit(t *testing.T) {
	t.Parallel()
	f := &fake{sessions: true, unknown: 404, limit: 7}
	e := asked(t, options(t, f.serve(t).URL, 50))
	if r := e.Retention; r.Served != 7 || r.Sent != 7+refusals || r.Refused == nil || r.Refused.Status != 503 || !strings.Contains(r.Refused.Text, "Too many") {
		t.Errorf("%+v", r)
	}
	if len(f.open) != 0 {
		t.Errorf("%d sessions are left open", len(f.open))
	}
}

func TestEndpointLegacy(t *testing.T) {
	t.Parallel()
	for _, gone := range []int{404, 202} {
		f := &legacyFake{gone: gone}
		e := asked(t, options(t, f.serve(t).URL+"/sse", 5))
		if e.Transport != facts.LegacySSE || e.Version != "2024-11-05" || e.Name != "old" {
			t.Errorf("%+v", e)
		}
		if !answer(t, e, facts.AskOverStream).Result || answer(t, e, facts.AskClosed).Status != gone || answer(t, e, facts.AskStale).Status != gone || answer(t, e, facts.AskAgain).Failed != "" {
			t.Errorf("%+v", e.Exchanges)
		}
		if e.Retention.Request != "GET" || e.Retention.Served != 5 {
			t.Errorf("%+v", e.Retention)
		}
		if f.requests.Load() != int64(e.Requests) {
			t.Errorf("%d requests came, and %d are said to", f.requests.Load(), e.Requests)
		}
	}
}

func TestEndpointLegacySilent(t *testing.T) {
	t.Parallel()
	o := options(t, (&legacyFake{}).serve(t).URL+"/sse", 0)
	o.Timeout = 4 * time.Second // a fourth for each answer
	if e := asked(t, o); !answer(t, e, facts.AskClosed).Late || answer(t, e, facts.AskClosed).Status != 0 {
		t.Errorf("%+v", e.Exchanges)
	}
}

func TestEndpointLegacyBearsOne(t *testing.T) {
	t.Parallel()
	f := &legacyFake{gone: 404, once: true}
	e := asked(t, options(t, f.serve(t).URL+"/sse", 20))
	if r := e.Retention; r.Served != 0 || r.Sent != refusals || r.Refused == nil || r.Refused.Status != 500 {
		t.Errorf("%+v", r)
	}
	if answer(t, e, facts.AskAgain).Status != 500 {
		t.Errorf("%+v", e.Exchanges)
	}
}

// The address that a stream names must not lead elsewhere.
func TestEndpointLegacyLeadsElsewhere(t *testing.T) {
	t.Parallel()
	var visited atomic.Int64
	other := (&fake{before: func(http.ResponseWriter, *http.Request) bool { visited.Add(1); return false }}).serve(t)
	for _, address := range []string{other.URL + "/x", "//" + strings.TrimPrefix(other.URL, "http://") + "/x", "http://[::bad", "file:///etc/passwd"} {
		want, named := facts.NoMCP, "stream"
		if strings.Contains(address, other.URL[len("http:"):]) {
			want, named = facts.OtherHost, strings.TrimPrefix(other.URL, "http://")
		}
		_, err := Probe(t.Context(), options(t, (&legacyFake{address: address}).serve(t).URL+"/sse", 3))
		var u *facts.Unaskable
		if !errors.As(err, &u) || u.Reason != want || !strings.Contains(u.What, named) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if visited.Load() != 0 {
		t.Error("the other host was asked")
	}
}

// No endpoint, whatever it does, is sent more than the budget, and what is sent is counted right.
func TestEndpointBudget(t *testing.T) {
	for name, f := range map[string]*fake{
		"stateless": {}, "sessions": {sessions: true, unknown: 404}, "modern": {only: true}, "limit": {sessions: true, limit: 3, unknown: 404},
		"ignores DELETE": {sessions: true, keeps: true, unknown: 400}, "no DELETE": {sessions: true, deletes: 405, unknown: 404},
		"redirects": {sessions: true, unknown: 404, before: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/mcp" {
				http.Redirect(w, r, "/mcp/", http.StatusTemporaryRedirect)
				return true
			}
			return false
		}},
		"redirects all": {before: func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusTemporaryRedirect)
			return true
		}},
		"redirects later": {sessions: true, unknown: 404, before: func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Mcp-Session-Id") == "" {
				return false
			}
			http.Redirect(w, r, "/mcp", http.StatusTemporaryRedirect)
			return true
		}},
		"errors": {before: func(w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(500); return true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n = 9
			e, err := Probe(t.Context(), options(t, f.serve(t).URL+"/mcp", n))
			sent := f.requests.Load()
			if sent > int64(MaxRequests(n)) {
				t.Errorf("%d requests came, and %d are allowed", sent, MaxRequests(n))
			}
			if err == nil && int64(e.Requests) != sent {
				t.Errorf("%d requests came, and %d are said to", sent, e.Requests)
			}
			if len(f.open) > 0 && f.deletes == 0 && !f.keeps && name != "redirects later" {
				t.Errorf("%d sessions are left open", len(f.open))
			}
			if name == "redirects" && (err != nil || !e.Session || e.Retention.Served != n) {
				t.Errorf("it did not follow: %v %+v", err, e)
			}
		})
	}
}

func TestEndpointUnaskable(t *testing.T) {
	t.Parallel()
	var visited atomic.Int64
	other := (&fake{before: func(http.ResponseWriter, *http.Request) bool { visited.Add(1); return false }}).serve(t)
	status := func(code int) *fake {
		return &fake{before: func(w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(code); return true }}
	}
	says := func(text string) *fake {
		return &fake{before: func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(text))
			}
			return r.Method == http.MethodPost
		}}
	}
	to := func(url string, code int) *fake {
		return &fake{before: func(w http.ResponseWriter, r *http.Request) bool { http.Redirect(w, r, url, code); return true }}
	}
	for name, c := range map[string]struct {
		f      *fake
		reason facts.Reason
	}{
		"401": {status(401), facts.NoAccess}, "403": {status(403), facts.Forbidden}, "404": {status(404), facts.NoMCP}, "429": {status(429), facts.Busy}, "500": {status(500), facts.Broken}, "204": {status(204), facts.NoMCP}, "304": {status(304), facts.NoMCP},
		"another host": {to(other.URL+"/mcp", 307), facts.OtherHost}, "GET follows": {to("/x", 302), facts.NoMCP}, "no way out": {to("/x", 307), facts.NoMCP}, "another scheme": {to("ftp://127.0.0.1/x", 307), facts.NoMCP}, "a file": {to("file:///etc/passwd", 307), facts.NoMCP},
		"an error": {says(`{"id":1,"error":{"code":-32603,"message":"internal"}}`), facts.Broken}, "another ID": {says(`{"id":99,"result":{}}`), facts.Broken}, "null": {says(`{"id":1,"result":null}`), facts.Broken},
		"no version": {says(`{"id":1,"result":{}}`), facts.Broken}, "TLS": {&fake{before: func(w http.ResponseWriter, r *http.Request) bool {
			http.Error(w, "Client sent an HTTP request to an HTTPS server.", http.StatusBadRequest)
			return true
		}}, facts.WantsTLS},
		"a web page": {&fake{before: func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>"))
			return true
		}}, facts.NoMCP},
		"a closed connection": {&fake{before: func(w http.ResponseWriter, r *http.Request) bool { panic(http.ErrAbortHandler) }}, facts.Closed},
		"a huge header": {&fake{before: func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
			return false
		}}, facts.NoHTTP},
	} {
		e, err := Probe(t.Context(), options(t, c.f.serve(t).URL, 3))
		var u *facts.Unaskable
		if !errors.As(err, &u) || u.Reason != c.reason || e != nil {
			t.Errorf("%s: %v, %+v", name, err, e)
		}
	}
	if visited.Load() != 0 {
		t.Error("the other host was asked")
	}
	closed := (&fake{}).serve(t)
	closed.Close()
	var u *facts.Unaskable
	if _, err := Probe(t.Context(), options(t, closed.URL, 3)); !errors.As(err, &u) || u.Reason != facts.NoAnswer {
		t.Errorf("nobody there: %v", err)
	}
}

// What went wrong with a connection is told apart, since the remedies differ.
func TestEndpointConnections(t *testing.T) {
	t.Parallel()
	tls := httptest.NewUnstartedServer(&fake{})
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	t.Cleanup(tls.Close)
	silent := &fake{before: func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body) // until then it does not notice the end of the connection
		<-r.Context().Done()
		return true
	}}
	plain, hangs := (&fake{}).serve(t), silent.serve(t)
	for name, c := range map[string]struct {
		url     string
		timeout time.Duration
		reason  facts.Reason
		words   string
	}{
		"a certificate of nobody": {tls.URL, 20 * time.Second, facts.NoTrust, "certificate"}, "TLS by http": {strings.Replace(tls.URL, "https", "http", 1), 20 * time.Second, facts.WantsTLS, "HTTPS"},
		"http by TLS": {strings.Replace(plain.URL, "http", "https", 1), 20 * time.Second, facts.PlainHTTP, "TLS"}, "silence": {hangs.URL, 4 * time.Second, facts.Hasty, "no answer within 1 s"},
	} {
		_, err := Probe(t.Context(), func() Options { o := options(t, c.url, 3); o.Timeout = c.timeout; return o }())
		var u *facts.Unaskable
		if !errors.As(err, &u) || u.Reason != c.reason || !strings.Contains(u.What, c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Who is refused is told what the endpoint asks for, and whether it was given anything.
func TestEndpointRefusal(t *testing.T) {
	t.Parallel()
	f := &fake{before: func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", error_description="`+r.Header.Get("Authorization")+`"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}}
	s := f.serve(t)
	for given, want := range map[string]facts.Reason{"": facts.NoAccess, "Bearer hunter2hunter2": facts.BadAccess} {
		o := options(t, s.URL, 3)
		if given != "" {
			o.Header.Set("Authorization", given)
		}
		_, err := Probe(t.Context(), o)
		var u *facts.Unaskable
		if !errors.As(err, &u) || u.Reason != want || !strings.Contains(u.What, "invalid_token") || strings.Contains(u.What, "hunter2") {
			t.Errorf("%q: %v", given, err)
		}
	}
}

// What cannot be deleted is counted, and one refusal that is none of DELETE does not end the deleting.
func TestEndpointUndeleted(t *testing.T) {
	t.Parallel()
	var deletes atomic.Int64
	busy := &fake{sessions: true, unknown: 404, before: func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete && deletes.Add(1) == 1 {
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
		return false
	}}
	for name, c := range map[string]struct {
		f    *fake
		want int
	}{
		"deleted": {&fake{sessions: true, unknown: 404}, 0}, "405": {&fake{sessions: true, unknown: 404, deletes: 405}, 6}, "404": {&fake{sessions: true, unknown: 404, deletes: 404}, 6},
		"500": {&fake{sessions: true, unknown: 404, deletes: 500}, 6}, "429 once": {busy, 0},
	} {
		s := c.f.serve(t)
		e := asked(t, options(t, s.URL, 5))
		if e.Retention.Undeleted != c.want || len(c.f.open) != c.want {
			t.Errorf("%s: %d are said to be left, and %d are", name, e.Retention.Undeleted, len(c.f.open))
		}
	}
}

// Who answers everything with one result does not speak a revision for that.
func TestEndpointAnswersAll(t *testing.T) {
	t.Parallel()
	f := &fake{before: func(w http.ResponseWriter, r *http.Request) bool {
		var m struct{ ID *int }
		_ = json.NewDecoder(r.Body).Decode(&m)
		if m.ID != nil {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"x"}}}`, *m.ID)
		}
		return true
	}}
	if e := asked(t, options(t, f.serve(t).URL, 2)); e.Transport != facts.Streamable || e.Modern {
		t.Errorf("%+v", e)
	}
}

// An interrupt ends the questions, and the sessions are deleted all the same.
func TestEndpointInterrupt(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	f := &fake{sessions: true, unknown: 404}
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.opened == 30 {
			stop()
		}
		return false
	}
	_, err := Probe(ctx, options(t, f.serve(t).URL, 1000))
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil || f.opened < 30 || f.opened > 40 {
		t.Errorf("%v, %d sessions opened", err, f.opened)
	}
	// The one whose answer nobody waited for any more may be left: its ID is not known.
	if len(f.open) > 1 {
		t.Errorf("of %d sessions %d are left open", f.opened, len(f.open))
	}
}

// Enough sessions make two rounds, of which the figures are those of this very process.
func TestEndpointRounds(t *testing.T) {
	e := asked(t, options(t, (&fake{}).serve(t).URL, facts.LeastForMemory))
	if !e.Process.Found {
		t.Skip("LAB SKIPPED: the own listening socket cannot be seen on this system: " + e.Process.Why)
	}
	r := e.Retention.Rounds
	if len(r) != 2 || r[0].Sessions != 400 || r[1].Sessions != 400 || r[0].BeforeBytes <= 0 || r[1].BeforeBytes != r[0].AfterBytes && r[1].AfterBytes <= 0 {
		t.Errorf("%+v", e.Retention)
	}
	if e.Retention.Served != facts.LeastForMemory {
		t.Errorf("%d were served", e.Retention.Served)
	}
}
