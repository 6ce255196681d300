package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"mcpdoctor/rules/diagnose"
	"mcpdoctor/scan/endpoint"
	"mcpdoctor/scan/facts"
)

// oneEndpoint is an MCP endpoint as little as there can be. It repeats what it is sent when it refuses.
type oneEndpoint struct {
	unknown int // the status for an unknown session; 0 for an endpoint without sessions
	status  int // for everything, when it is not 0

	mu     sync.Mutex
	opened int
	open   map[string]bool
	onOpen func(n int)
}

func (e *oneEndpoint) serve(t *testing.T) string {
	t.Helper()
	e.open = map[string]bool{}
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	return s.URL + "/mcp"
}

func (e *oneEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var m struct {
		ID     *int
		Method string
	}
	_ = json.NewDecoder(r.Body).Decode(&m)
	id := r.Header.Get("Mcp-Session-Id")
	switch {
	case e.status != 0:
		w.WriteHeader(e.status)
		fmt.Fprint(w, r.Header, r.URL)
		return
	case r.Method == http.MethodDelete:
		delete(e.open, id)
		return
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	case r.Header.Get("Mcp-Method") != "":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, r.Header, r.URL)
		return
	case e.unknown != 0 && m.Method == "initialize":
		e.opened++
		id = fmt.Sprint("a-session-", e.opened)
		e.open[id] = true
		w.Header().Set("Mcp-Session-Id", id)
		if e.onOpen != nil {
			e.onOpen(e.opened)
		}
	case e.unknown != 0 && !e.open[id]:
		w.WriteHeader(e.unknown)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"one","version":"1"}}}`, *m.ID)
}

func TestProbeUsage(t *testing.T) {
	url := (&oneEndpoint{}).serve(t)
	for _, args := range [][]string{
		{"probe"}, {"probe", url, url}, {"probe", "--bogus", url}, {"probe", ""}, {"probe", "127.0.0.1:8000/mcp"}, {"probe", "localhost:8000/mcp"}, {"probe", "ftp://x/mcp"},
		{"probe", "http:///mcp"}, {"probe", "http://user:hunter2@[/mcp"}, {"probe", "user:hunter2@host/mcp"}, {"probe", "http://x:y/hunter2"},
		{"probe", url, "--sessions", "-1"}, {"probe", url, "--sessions", "10001"}, {"probe", url, "--sessions", "many"}, {"probe", url, "--timeout", "0s"}, {"probe", url, "--timeout", "soon"},
		{"probe", url, "--header", "Authorization Bearer hunter2"}, {"probe", url, "--header", ": hunter2"}, {"probe", url, "--header", "a b: hunter2"}, {"probe", url, "--header", "a: hunter2\r\nb: c"},
		{"probe", url, "--header", "Mcp-Session-Id: hunter2"}, {"probe", url, "--header", "x: y", "--header", "hunter2"}, {"probe", url, "--color", "blue"}, {"probe", url, "--header", ""},
	} {
		r := doctor(t, "", args...)
		if r.code != exitTrouble || r.out != "" {
			t.Errorf("%q: exit code %d, %q", args, r.code, r.out)
		}
		checkErrorForm(t, strings.Join(args, " "), r.err)
		if strings.Contains(r.err, "hunter2") {
			t.Errorf("%q: a secret is in %q", args, r.err)
		}
	}
	if r := doctor(t, "", "probe", "--help"); r.code != 0 || !strings.Contains(r.out, "two requests") {
		t.Errorf("help: %+v", r)
	}
}

func TestProbeExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		e    *oneEndpoint
		code int
		hint string
	}{
		"well": {&oneEndpoint{}, exitClean, ""}, "sessions": {&oneEndpoint{unknown: 404}, exitClean, ""}, "400": {&oneEndpoint{unknown: 400}, exitFindings, ""},
		"401": {&oneEndpoint{status: 401}, exitTrouble, "--header"}, "404": {&oneEndpoint{status: 404}, exitTrouble, "/mcp or /sse"},
		"403": {&oneEndpoint{status: 403}, exitTrouble, "Origin"}, "429": {&oneEndpoint{status: 429}, exitTrouble, "wait a while"}, "500": {&oneEndpoint{status: 500}, exitTrouble, "log"},
	} {
		t.Run(name, func(t *testing.T) {
			url := c.e.serve(t)
			r := doctor(t, "", "probe", url, "--sessions", "0", "--header", "Authorization: Bearer hunter2hunter2", "--header", "X-Key: hunter2")
			// The first line is that of the waiting.
			waiting, rest, _ := strings.Cut(r.err, "\n")
			if r.code != c.code || !strings.HasPrefix(waiting, "mcpdoctor: probing") || (rest == "") != (c.code != exitTrouble) {
				t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
			}
			if rest != "" {
				checkErrorForm(t, name, rest)
			}
			if !strings.Contains(rest, c.hint) {
				t.Errorf("no hint of %q in %q", c.hint, rest)
			}
			if strings.Contains(r.out+r.err, "hunter2") || strings.Contains(r.out+r.err, "a-session-") {
				t.Errorf("a secret is in\n%s%s", r.out, r.err)
			}
		})
	}
}

func TestProbeJSON(t *testing.T) {
	e := &oneEndpoint{unknown: 400}
	url := e.serve(t) + "?token=hunter2hunter2"
	r := doctor(t, "", "probe", url, "--json", "--sessions", "3", "--header", "Authorization: Bearer hunter3hunter3")
	var got diagnose.EndpointReport
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.code != exitFindings {
		t.Fatalf("exit code %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	if got.Schema != 1 || got.Kind != "mcpdoctor.probe" || got.Tool.Name != "mcpdoctor" || got.Requests == 0 || got.Requests > endpoint.MaxRequests(3) || len(got.Exchanges) < 6 || len(got.Findings) != 1 || got.Findings[0].Rule != "session-retention" {
		t.Errorf("%s", r.out)
	}
	if strings.Contains(r.out+r.err, "hunter") || !strings.Contains(r.out, "token=***") {
		t.Errorf("a secret is in %s%s", r.out, r.err)
	}
	if len(e.open) != 0 || e.opened != 4 {
		t.Errorf("of %d sessions %d are left open", e.opened, len(e.open))
	}
}

// Each reason has a remedy of its own.
func TestProbeHints(t *testing.T) {
	seen := map[string]facts.Reason{}
	for reason, hint := range unaskableHints {
		if other, ok := seen[hint]; ok || hint == "" {
			t.Errorf("%s and %s have the hint %q", reason, other, hint)
		}
		seen[hint] = reason
	}
}

// A rule that only a probe can find is none that scan could be asked for, and says so.
func TestProbeRules(t *testing.T) {
	for _, id := range []string{"sse-transport", "session-retention"} {
		for _, verb := range []string{"scan", "reap"} {
			r := doctor(t, "", verb, "--rule", id)
			if r.code != exitTrouble || !strings.Contains(r.err, "mcpdoctor probe URL") {
				t.Errorf("%s --rule %s: exit code %d, %s%s", verb, id, r.code, r.out, r.err)
			}
		}
		if r := doctor(t, "", "explain", id); r.code != 0 || !strings.Contains(r.out, "mcpdoctor probe URL") {
			t.Errorf("explain %s: exit code %d, %s", id, r.code, r.out)
		}
		if r := doctor(t, "", "__complete", "explain", id[:4]); !strings.Contains(r.out, id) {
			t.Errorf("explain is not completed with %s: %s", id, r.out)
		}
		if r := doctor(t, "", "__complete", "scan", "--rule", id[:4]); strings.Contains(r.out, id) {
			t.Errorf("scan --rule is completed with %s: %s", id, r.out)
		}
	}
}
