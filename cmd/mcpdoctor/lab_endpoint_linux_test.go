package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/diagnose"
	"mcpdoctor/scan/endpoint"
	"mcpdoctor/scan/facts"
)

// The verdicts of a row, in short.
const (
	ok     = diagnose.OK
	failed = diagnose.Failed
	unsure = diagnose.Unsure
	info   = diagnose.Note
)

// verdicts is what is expected of an endpoint, row by row.
type verdicts map[diagnose.Topic]diagnose.Verdict

// served is a real server over HTTP.
type served struct {
	*lab
	p         *program
	port, url string
}

// serve starts a server on a port of its own, which it learns from its environment or its arguments.
func (l *lab) serve(path string, args func(port string) []string) *served {
	l.t.Helper()
	e := &served{lab: l, port: l.freePort()}
	e.url = "http://127.0.0.1:" + e.port + path
	e.start(args(e.port))
	return e
}

func (e *served) start(args []string) {
	e.t.Helper()
	e.p = e.lab.start(args, "PORT="+e.port, "MCP_PORT="+e.port)
	e.listening(e.port)
}

// example is one of the examples of the TypeScript SDK, in its version of that folder.
func (l *lab) example(folder, name string) func(string) []string {
	script := filepath.Join(l.root, folder, "node_modules", "@modelcontextprotocol", "sdk", "dist", "esm", "examples", "server", name+".js")
	return func(string) []string {
		return []string{"node", "--import", filepath.Join(l.root, "servers", "port.mjs"), script}
	}
}

func (l *lab) mastra(folder, mode string) func(string) []string {
	return func(port string) []string {
		return []string{"node", filepath.Join(l.root, "servers", "mastra.mjs"), port, mode, folder}
	}
}

func (l *lab) everything(transport string) func(string) []string {
	return func(string) []string { return []string{"node", l.bin("mcp-server-everything"), transport} }
}

func (l *lab) supergateway(version string, flags ...string) func(string) []string {
	return func(port string) []string {
		return append([]string{"node", l.gatewayScript(version), "--stdio", l.behind(), "--port", port}, flags...)
	}
}

// probe asks an endpoint with the real command.
func (e *served) probe(args ...string) (*diagnose.EndpointReport, int) {
	e.t.Helper()
	out, stderr, code := e.doctor(append([]string{"probe", e.url, "--json", "--timeout", "55s"}, args...)...)
	var r diagnose.EndpointReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code > exitFindings {
		e.t.Fatalf("mcpdoctor probe --json: exit code %d, %v\n%s%s", code, err, stderr, out)
	}
	return &r, code
}

// check compares row by row: those that are expected and no others.
func (want verdicts) check(t *testing.T, r *diagnose.EndpointReport) {
	t.Helper()
	for _, v := range r.Verdicts {
		if want[v.Topic] != v.Verdict {
			t.Errorf("%s (%s) is %s, not %q: %s", v.Topic, v.Question, v.Verdict, want[v.Topic], v.Answer)
		}
	}
	for topic, v := range want {
		if !slices.ContainsFunc(r.Verdicts, func(row diagnose.EndpointRow) bool { return row.Topic == topic }) {
			t.Errorf("%s is missing, which should be %s", topic, v)
		}
	}
	if t.Failed() {
		text, _ := json.MarshalIndent(r, "", " ")
		t.Logf("%s", text)
	}
}

// statusOf is that of the answer to a question.
func statusOf(r *diagnose.EndpointReport, ask facts.Ask) int {
	for _, x := range r.Exchanges {
		if x.Ask == ask {
			return x.Answer.Status
		}
	}
	return -1
}

// Real endpoints, and what is to be said of each: testdata/lab has their versions.
func TestLabEndpoints(t *testing.T) {
	t.Parallel()
	const (
		streamable = "streamableHttp"
		sse        = "sse"
	)
	healthy := verdicts{"transport": ok, "session": info, "without-session": ok, "unknown-session": ok, "processes": ok, "memory": unsure}
	keeps := verdicts{
		"transport": ok, "session": info, "without-session": ok, "unknown-session": ok, "delete": ok, "dropped-session": info, "processes": ok, "memory": unsure,
	}
	with := func(base verdicts, topic diagnose.Topic, v diagnose.Verdict) verdicts {
		out := verdicts{topic: v}
		for t, v := range base {
			if t != topic {
				out[t] = v
			}
		}
		return out
	}
	legacy := verdicts{"transport": failed, "closed-stream": ok, "unknown-stream": ok, "again": ok, "processes": ok, "memory": unsure}
	for _, c := range []struct {
		name     string
		path     string
		args     func(*lab) func(string) []string
		want     verdicts
		unknown  int // the status for an unknown session; 0 when it is not to be looked at
		findings []string
		flags    []string
	}{
		{name: "supergateway 3 stateless", args: func(l *lab) func(string) []string { return l.supergateway("3", "--outputTransport", streamable) },
			want: with(healthy, "processes", failed), unknown: 200, findings: []string{"error spawn-per-request"}},
		{name: "supergateway 3 stateful", args: func(l *lab) func(string) []string {
			return l.supergateway("3", "--outputTransport", streamable, "--stateful")
		},
			want: with(with(keeps, "processes", failed), "unknown-session", failed), unknown: 400, findings: []string{"error session-retention", "error spawn-per-request"}},
		{name: "supergateway 3 stateful with a time-out",
			args: func(l *lab) func(string) []string {
				return l.supergateway("3", "--outputTransport", streamable, "--stateful", "--sessionTimeout", "600000")
			},
			want: with(with(keeps, "processes", info), "unknown-session", failed), unknown: 400, findings: []string{"error session-retention"}},
		{name: "supergateway 4 stateless", args: func(l *lab) func(string) []string { return l.supergateway("4", "--outputTransport", streamable) },
			want: healthy, unknown: 200},
		{name: "supergateway 4 stateful", args: func(l *lab) func(string) []string {
			return l.supergateway("4", "--outputTransport", streamable, "--stateful")
		},
			want: with(keeps, "processes", info), unknown: 404, findings: []string{"info session-retention"}},
		{name: "supergateway 3 sse", path: "/sse", args: func(l *lab) func(string) []string { return l.supergateway("3", "--outputTransport", sse) },
			want: with(with(legacy, "again", failed), "processes", failed), findings: []string{"error sse-transport"}},
		{name: "supergateway 4 sse", path: "/sse", args: func(l *lab) func(string) []string { return l.supergateway("4", "--outputTransport", sse) },
			want: legacy, findings: []string{"warning sse-transport"}},
		{name: "mastra 1 with sessions", args: func(l *lab) func(string) []string { return l.mastra(".", "sessions") },
			want: keeps, unknown: 404, findings: []string{"info session-retention"}},
		{name: "mastra 1 serverless", args: func(l *lab) func(string) []string { return l.mastra(".", "serverless") }, want: healthy, unknown: 200},
		{name: "mastra 2", args: func(l *lab) func(string) []string { return l.mastra("next", "default") },
			want: verdicts{"transport": ok, "without-session": ok, "unknown-session": ok, "processes": ok, "memory": unsure}, unknown: 200},
		{name: "SDK 1.32 sessions", args: func(l *lab) func(string) []string { return l.example(".", "simpleStreamableHttp") },
			want: keeps, unknown: 404, findings: []string{"info session-retention"}},
		{name: "SDK 1.32 without DELETE", args: func(l *lab) func(string) []string { return l.example(".", "jsonResponseStreamableHttp") },
			want: with(keeps, "delete", failed), unknown: 404, findings: []string{"warning session-retention"}},
		{name: "SDK 1.32 stateless", args: func(l *lab) func(string) []string { return l.example(".", "simpleStatelessStreamableHttp") }, want: healthy, unknown: 200},
		{name: "SDK 1.24 sessions", args: func(l *lab) func(string) []string { return l.example("older", "simpleStreamableHttp") },
			want: with(keeps, "unknown-session", failed), unknown: 400, findings: []string{"error session-retention"}},
		{name: "everything", args: func(l *lab) func(string) []string { return l.everything(streamable) },
			want: with(keeps, "unknown-session", failed), unknown: 400, findings: []string{"error session-retention"}},
		{name: "everything sse", path: "/sse", args: func(l *lab) func(string) []string { return l.everything(sse) }, flags: []string{"--timeout", "20s"},
			want: with(with(legacy, "closed-stream", failed), "unknown-stream", failed), findings: []string{"error sse-transport"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			path := c.path
			if path == "" {
				path = "/mcp"
			}
			e := l.serve(path, c.args(l))
			before := below(e.p.pid)
			r, code := e.probe(append([]string{"--sessions", "5"}, c.flags...)...)
			c.want.check(t, r)
			var found []string
			for _, f := range r.Findings {
				found = append(found, string(f.Severity)+" "+f.Rule)
				if rules.Lookup(f.Rule) == nil || len(f.Reap.Safe)+len(f.Reap.OnRequest) > 0 || f.Remedy.Summary == "" || !slices.Contains(rules.Lookup(f.Rule).Remedy, f.Remedy.Summary) {
					t.Errorf("a finding is not as it should be: %+v", f)
				}
			}
			slices.Sort(found)
			if !slices.Equal(found, c.findings) {
				t.Errorf("findings %q, not %q", found, c.findings)
			}
			if (code == exitFindings) != r.Fails() {
				t.Errorf("exit code %d", code)
			}
			if c.unknown != 0 && statusOf(r, facts.AskUnknown) != c.unknown {
				t.Errorf("an unknown session is answered with %d, not %d", statusOf(r, facts.AskUnknown), c.unknown)
			}
			if r.Process == nil || r.Process.PID != e.p.pid {
				t.Errorf("the process is %+v, not pid %d", r.Process, e.p.pid)
			}
			if r.Requests > endpoint.MaxRequests(5) || r.Retention.Sent > 5 {
				t.Errorf("%d requests, %d sessions", r.Requests, r.Retention.Sent)
			}
			// What the probe says that it left is what is there.
			left := slices.DeleteFunc(below(e.p.pid), func(pid int) bool { return slices.Contains(before, pid) })
			if strings.Contains(c.name, "3 stateless") {
				same(t, "what is left", r.Findings[0].PIDs, left)
				holds(t, "the title", r.Findings[0].Title, "supergateway 3.4.3", "port "+e.port, "5 requests left 5 processes")
				holds(t, "what was left", r.Left, "pid")
			} else if len(left) > 0 || r.Left != "" {
				t.Errorf("%v are left: %q", left, r.Left)
			}
		})
	}
}

// A server that keeps 190 KB for each session grows by as much in two rounds, and one that keeps none
// does not.
func TestLabEndpointMemory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		folder, example string
		grows           bool
	}{
		"keeps": {"older", "simpleStreamableHttp", true}, "keeps nothing": {".", "simpleStatelessStreamableHttp", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			r, code := l.serve("/mcp", l.example(c.folder, c.example)).probe("--sessions", "1000")
			memory := slices.IndexFunc(r.Verdicts, func(v diagnose.EndpointRow) bool { return v.Topic == diagnose.TopicMemory })
			if memory < 0 || (r.Verdicts[memory].Verdict == failed) != c.grows || len(r.Retention.Rounds) != 2 || (code == exitFindings) != c.grows {
				t.Errorf("exit code %d, verdicts %+v, rounds %+v", code, r.Verdicts, r.Retention.Rounds)
			}
		})
	}
}

// What the probe asks as "an unknown session" is what a client is told after a restart: here a server
// of the old transport is restarted between two POSTs.
func TestLabEndpointRestart(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	args := l.example(".", "simpleSseServer")
	e := l.serve("/mcp", args)
	r, _ := e.probe("--sessions", "2")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.DefaultClient.Do(get)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	address := ""
	for in := bufio.NewScanner(stream.Body); address == "" && in.Scan(); {
		if data, ok := strings.CutPrefix(in.Text(), "data: "); ok {
			address = strings.TrimSuffix(e.url, "/mcp") + data
		}
	}
	if status, _ := l.post(address, "", initialize); status != http.StatusAccepted {
		t.Fatalf("POST to %s is answered with %d", address, status)
	}
	l.kill(e.p.pid)
	<-e.p.ended // all its threads: until then it may still listen
	e.start(args(e.port))
	status, _ := l.post(address, "", initialize)
	if status != http.StatusNotFound || statusOf(r, facts.AskStale) != status || statusOf(r, facts.AskClosed) != status {
		t.Errorf("after a restart it is %d; the probe was told %d and %d", status, statusOf(r, facts.AskStale), statusOf(r, facts.AskClosed))
	}
}
