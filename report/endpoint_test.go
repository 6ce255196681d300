package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/diagnose"
	"mcpdoctor/scan"
	"mcpdoctor/scan/facts"
)

// endpointAt is a gateway that keeps a server for each request, as a probe saw it, with the words of
// a stranger wherever there are any.
func endpointAt(words string) *facts.Endpoint {
	rss := int64(60 << 20)
	now := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	a := facts.Answer{Status: 400, Error: true, Code: -32000, Text: "Bad Request" + words, Type: "application/json"}
	e := &facts.Endpoint{
		URL: "http://127.0.0.1:8000/mcp", Transport: facts.Streamable, Version: "2025-11-25" + words, Name: "echo" + words, Release: "0.1" + words, Supported: []string{"2025-11-25"}, LimitMS: 15000,
		Exchanges: []facts.Exchange{
			{Ask: facts.AskInitialize, Sent: "POST initialize", Answer: facts.Answer{Status: 200, Result: true, Type: "text/event-stream"}, DurationMS: 412},
			{Ask: facts.AskModern, Sent: "POST server/discover, revision 2026-07-28", Answer: a, DurationMS: 3},
			{Ask: facts.AskWithout, Sent: "POST tools/list, no session", Answer: facts.Answer{Status: 200, Result: true, Type: "text/event-stream"}, DurationMS: 407},
			{Ask: facts.AskUnknown, Sent: "POST tools/list, unknown session", Answer: facts.Answer{Status: 200, Result: true, Type: "text/event-stream"}, DurationMS: 409},
		},
		Requests: 7, Unasked: words,
		Process: facts.Process{Found: true, OS: "linux", Port: "8000", Listener: scan.Process{
			PID: 77, Name: "node" + words, Version: "3.4.3", RSSBytes: &rss, Args: []string{"node", "/srv/node_modules/.bin/supergateway", "--stdio", "node server.mjs" + words, "--outputTransport", "streamableHttp"},
		}},
	}
	e.Retention = facts.Retention{Asked: 3, Request: "initialize", Sent: 3, Served: 3, Looks: []facts.Look{
		{When: facts.AtStart, RSSBytes: rss}, {When: facts.AtSessions, RSSBytes: rss, Children: 3, Processes: 3, NewChildren: 3, NewProcesses: 3},
		{When: facts.AtOnce, RSSBytes: rss, Children: 6, Processes: 6, NewChildren: 6, NewProcesses: 6, SessionChildren: 3, SessionProcesses: 3},
		{When: facts.Settled, RSSBytes: rss, Children: 6, Processes: 6, NewChildren: 6, NewProcesses: 6, SessionChildren: 3, SessionProcesses: 3},
	}}
	for pid := 80; pid < 86; pid++ {
		e.Process.Left = append(e.Process.Left, scan.Process{PID: pid, PPID: 77, Start: int64(pid), Started: now.Add(time.Duration(pid-90) * time.Second), Args: []string{"node", "server.mjs" + words}, RSSBytes: &rss})
	}
	return e
}

// legacyEndpoint is a server of the old transport that does not answer who has lost the stream.
func legacyEndpoint() *facts.Endpoint {
	silence := facts.Answer{Failed: "no answer within 15 s", Late: true}
	return &facts.Endpoint{
		URL: "https://***@mcp.example/sse?key=***", Transport: facts.LegacySSE, Version: "2024-11-05", Name: "old", Requests: 31, LimitMS: 15000,
		Exchanges: []facts.Exchange{
			{Ask: facts.AskInitialize, Answer: facts.Answer{Status: 404}}, {Ask: facts.AskStream, Answer: facts.Answer{Status: 200, Type: "text/event-stream"}},
			{Ask: facts.AskOverStream, Answer: facts.Answer{Status: 202, Result: true, Over: "stream"}}, {Ask: facts.AskClosed, Answer: silence}, {Ask: facts.AskStale, Answer: silence},
			{Ask: facts.AskAgain, Answer: facts.Answer{Status: 200}},
		},
		Retention: facts.Retention{Asked: 20, Request: "GET", Sent: 20, Served: 20}, Process: facts.Process{Why: "it does not run on this machine"},
	}
}

func judgedEndpoint(e *facts.Endpoint) *diagnose.EndpointReport {
	r := diagnose.Endpoint(e, time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC))
	r.Tool = rules.Tool{Name: "mcpdoctor", Version: "test"}
	return r
}

func TestGoldenEndpoint(t *testing.T) {
	leaky, old := judgedEndpoint(endpointAt("")), judgedEndpoint(legacyEndpoint())
	clean := endpointAt("")
	clean.Process = facts.Process{Why: "it does not run on this machine"}
	clean.Retention.Looks = nil
	for name, write := range map[string]func(*bytes.Buffer) error{
		"endpoint-leaky.txt":   func(b *bytes.Buffer) error { return EndpointText(b, leaky, Options{Width: 100}) },
		"endpoint-verbose.txt": func(b *bytes.Buffer) error { return EndpointText(b, leaky, Options{Verbose: true}) },
		"endpoint-colour.txt":  func(b *bytes.Buffer) error { return EndpointText(b, leaky, Options{Width: 80, Color: true}) },
		"endpoint-old.txt":     func(b *bytes.Buffer) error { return EndpointText(b, old, Options{Width: 100}) },
		"endpoint-clean.txt":   func(b *bytes.Buffer) error { return EndpointText(b, judgedEndpoint(clean), Options{Width: 100}) },
		"endpoint.json":        func(b *bytes.Buffer) error { return EndpointJSON(b, leaky) },
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, name, b.Bytes())
		})
	}
}

// What was sent is in our own words, and is not cut.
func TestEndpointVerboseWhole(t *testing.T) {
	const sent = "POST initialize, answer expected over the stream"
	e := endpointAt("")
	e.Exchanges[1].Sent = sent
	var b bytes.Buffer
	if err := EndpointText(&b, judgedEndpoint(e), Options{Verbose: true}); err != nil || !strings.Contains(b.String(), sent) {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// A key may stand in the path of a URL.
func TestEndpointKeyInPath(t *testing.T) {
	for _, key := range []string{"sk-proj-abcdefghijklmnopqrstuvwx", "sk-ant-api03-AbCdEf0123456789AbCdEf", "a1b2c3d4e5f6a7b8c9d0e1f2"} {
		e := endpointAt("")
		e.URL = "https://mcp.example/mcp/" + key + "/"
		var text, js bytes.Buffer
		if err := EndpointText(&text, judgedEndpoint(e), Options{Verbose: true}); err != nil {
			t.Fatal(err)
		}
		if err := EndpointJSON(&js, judgedEndpoint(e)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text.String()+js.String(), key) {
			t.Errorf("%q is shown:\n%s", key, text.String())
		}
	}
}

func TestHostileEndpoint(t *testing.T) {
	for what, words := range nasty {
		t.Run(what, func(t *testing.T) {
			r := judgedEndpoint(endpointAt(" " + words))
			if len(r.Findings) == 0 {
				t.Fatal("nothing was found, so little is tested")
			}
			for _, o := range []Options{{}, {Width: 80, Verbose: true}} {
				var b bytes.Buffer
				if err := EndpointText(&b, r, o); err != nil {
					t.Fatal(err)
				}
				harmless(t, "text", b.String(), "\n")
				if b.Len() > 1<<20 {
					t.Errorf("the text has %d bytes", b.Len())
				}
			}
			var b bytes.Buffer
			if err := EndpointJSON(&b, r); err != nil {
				t.Fatal(err)
			}
			harmless(t, "JSON", b.String(), "\n")
			var back diagnose.EndpointReport
			if err := json.Unmarshal(b.Bytes(), &back); err != nil || len(back.Verdicts) != len(r.Verdicts) {
				t.Errorf("the report is no JSON: %v", err)
			}
		})
	}
}

// A path may hold a key as well as a query may.
func TestEndpointURLWithKey(t *testing.T) {
	e := legacyEndpoint()
	e.URL = "https://mcp.example/s/" + strings.Repeat("a1B2", 8) + "/mcp"
	var b bytes.Buffer
	if err := EndpointText(&b, judgedEndpoint(e), Options{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "a1B2a1B2") {
		t.Error(fmt.Sprint("the key is shown: ", b.String()))
	}
}
