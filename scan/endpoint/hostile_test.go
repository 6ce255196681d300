package endpoint

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Whatever an endpoint answers, the probe comes back in its time with little in its hands.
func TestEndpointHostile(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request, kind, piece string) {
		w.Header().Set("Content-Type", kind)
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(piece)); err != nil {
				return
			}
		}
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 16 {
		_, _ = z.Write(make([]byte, 1<<20))
	}
	_ = z.Close()
	text := func(kind, body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"endless JSON": func(w http.ResponseWriter, r *http.Request) {
			endless(w, r, "application/json", strings.Repeat("[", 4096))
		},
		"endless event": func(w http.ResponseWriter, r *http.Request) {
			endless(w, r, "text/event-stream", "data: "+strings.Repeat("x", 4096))
		},
		"endless events":   func(w http.ResponseWriter, r *http.Request) { endless(w, r, "text/event-stream", "data: {}\n\n") },
		"endless comments": func(w http.ResponseWriter, r *http.Request) { endless(w, r, "text/event-stream", ": x\n") },
		"another's answers": func(w http.ResponseWriter, r *http.Request) {
			endless(w, r, "text/event-stream", "data: {\"id\":999999,\"result\":{}}\n\n")
		},
		"slow drip":   func(w http.ResponseWriter, r *http.Request) { drip(w, r, "application/json") },
		"slow stream": func(w http.ResponseWriter, r *http.Request) { drip(w, r, "text/event-stream") },
		"compressed bomb": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			text("application/json", bomb.String())(w, r)
		},
		"huge header": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
			text("application/json", "{}")(w, r)
		},
		"deep JSON":            text("application/json", strings.Repeat(`{"a":`, 100000)),
		"no JSON":              text("application/json", "\xff\xfe{]"),
		"a number":             text("application/json", "12"),
		"null":                 text("application/json", "null"),
		"an empty list":        text("application/json", "[]"),
		"an empty body":        text("application/json", ""),
		"escape codes":         text("text/plain", "\x1b[2J\x1b]0;owned\x07"),
		"an unreadable type":   text("\x1b[31m", "{}"),
		"an error of codes":    text("application/json", `{"id":1,"error":{"code":99999999999999999999,"message":"\u001b[2J"}}`),
		"a result of no shape": text("application/json", `{"id":1,"result":[[[]]]}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{before: func(w http.ResponseWriter, r *http.Request) bool { answer(w, r); return true }}
			o := options(t, f.serve(t).URL, 2)
			o.Timeout = 4 * time.Second
			e, err := Probe(t.Context(), o)
			said := told(t, e, err)
			if len(said) > 16<<10 || !utf8.ValidString(said) {
				t.Errorf("it says %d bytes: %.200q", len(said), said)
			}
			if err == nil && name != "a result of no shape" {
				t.Errorf("it was taken for an MCP server: %+v", e)
			}
			if n := f.requests.Load(); n > int64(MaxRequests(2)) {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// drip writes a byte now and then, for ever.
func drip(w http.ResponseWriter, r *http.Request, kind string) {
	w.Header().Set("Content-Type", kind)
	for r.Context().Err() == nil {
		if _, err := w.Write([]byte(":")); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-time.After(20 * time.Millisecond):
		case <-r.Context().Done():
		}
	}
}

// A server of sessions that says unusable things about itself and its sessions.
func TestEndpointOddSessions(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"a b", "\x01", strings.Repeat("x", 8000), "ü", "'\"<>"} {
		f := &fake{before: func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" {
				w.Header()["Mcp-Session-Id"] = []string{id}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, `{"id":1,"result":{"protocolVersion":"2025\r\nX: y","serverInfo":{"name":"\u001b[2J"}}}`)
				return true
			}
			return false
		}}
		e, err := Probe(t.Context(), options(t, f.serve(t).URL, 2))
		if said := told(t, e, err); len(id) > 3 && strings.Contains(said, id) {
			t.Errorf("%.20q is told", id)
		}
	}
}

// What was given as a header, as the URL's user or in its query is in no answer, even when the
// endpoint repeats it in whatever form.
func TestEndpointSecrets(t *testing.T) {
	t.Parallel()
	secrets := []string{"hunter2hunter2", "s3cr3t+/=value", "passw0rd", "t0ken with spaces", "qu3ry"}
	basic := base64.StdEncoding.EncodeToString([]byte("somebody:passw0rd"))
	f := &fake{sessions: true, unknown: 400, before: func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == unknownSession {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(400)
			fmt.Fprint(w, r.Header, r.URL, r.Host)
			return true
		}
		if r.Header.Get("Mcp-Method") != "" {
			w.WriteHeader(404)
			fmt.Fprintf(w, `{"id":2,"error":{"code":-32601,"message":%q}}`, r.URL.String()+" "+r.Header.Get("X-Key")+" "+r.Header.Get("Authorization"))
			return true
		}
		return false
	}}
	address := strings.Replace(f.serve(t).URL, "http://", "http://somebody:passw0rd@", 1) + "/mcp?key=qu3ry&other=s3cr3t%2B%2F%3Dvalue"
	o := options(t, address, 2)
	o.Header = http.Header{"X-Key": {"hunter2hunter2"}, "X-Other": {"t0ken with spaces"}}
	e, err := Probe(t.Context(), o)
	said := told(t, e, err)
	for _, s := range append(secrets, basic, "s3cr3t%2B%2F%3Dvalue", "somebody") {
		if strings.Contains(said, s) {
			t.Errorf("%q is told: %s", s, said)
		}
	}
	if err != nil || !strings.HasSuffix(e.URL, "/mcp?key=***&other=***") || !strings.HasPrefix(e.URL, "http://***@127.0.0.1:") {
		t.Errorf("%v, URL %s", err, e.URL)
	}
	if !strings.Contains(said, "***") {
		t.Error("nothing was repeated, so nothing is tested")
	}
	for _, bad := range []string{"http://127.0.0.1:1/", "http://nowhere.invalid/"} { // errors of connections
		_, err := Probe(t.Context(), options(t, strings.Replace(bad, "http://", "http://somebody:passw0rd@", 1)+"?key=qu3ry", 1))
		if err == nil || strings.Contains(err.Error(), "passw0rd") || strings.Contains(err.Error(), "qu3ry") {
			t.Errorf("%v", err)
		}
	}
}
