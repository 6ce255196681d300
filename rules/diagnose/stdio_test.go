package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/format"
	"mcpdoctor/scan"
	"mcpdoctor/scan/facts"
	"mcpdoctor/scan/terminate"
)

// proc is a process of a checked server. mcpdoctor is pid 10.
func proc(pid, ppid int, command string) scan.Process {
	rss, pss := int64(pid)<<20, int64(pid)<<19
	return scan.Process{PID: pid, PPID: ppid, Start: int64(pid), Args: strings.Fields(command), RSSBytes: &rss, PSSBytes: &pss}
}

// npx is what npx -y makes of one command: it, its shell, and the server.
func npx() []scan.Process {
	return []scan.Process{
		proc(20, 10, "npm exec some-mcp@1.2.3 --fast"),
		{PID: 21, PPID: 20, Start: 21, Args: []string{"sh", "-c", "'some-mcp' --fast"}},
		proc(22, 21, "node /home/u/.npm/_npx/0a/node_modules/.bin/some-mcp --fast"),
	}
}

func stayed(p scan.Process, ppid int, outcome terminate.Outcome) facts.Leftover {
	adopted := p.PPID != ppid
	p.PPID = ppid
	p.Stdin = &scan.Stdin{Type: scan.StdinPipe, Peer: scan.PeerClosed}
	return facts.Leftover{Process: p, Adopted: adopted, CPU: 0.4, Outcome: outcome}
}

// stdio is a server that was checked with these ends.
func stdio(command string, rest []scan.Process, ends ...facts.End) *facts.Stdio {
	for i := range ends {
		if ends[i].Before == nil && ends[i].Untried == "" {
			ends[i].Before = rest
		}
		if len(ends[i].Left) > 0 {
			ends[i].Took = 20 * time.Second
		}
	}
	return &facts.Stdio{
		Command: strings.Fields(command), OS: "linux", Self: 10, Timeout: 20 * time.Second, Rest: rest, Ends: ends,
		Server:   facts.Server{Name: "some", Version: "1.2.3", Protocol: "2025-06-18", Tools: 3},
		Startups: []time.Duration{time.Second, 300 * time.Millisecond},
	}
}

func TestJudgeStdio(t *testing.T) {
	chain := npx()
	direct := []scan.Process{proc(20, 10, "python3 server.py")}
	helped := []scan.Process{proc(20, 10, "node server.mjs"), proc(21, 20, "/usr/lib/chromium/chromium --headless")}
	adopted := []scan.Process{helped[0], proc(21, 10, "/usr/lib/chromium/chromium --headless")}
	unknown := []scan.Process{proc(20, 10, "node start.mjs"), proc(21, 20, "node /x/node_modules/.bin/mcp-server-everything")}
	piped2 := stayed(unknown[1], 20, terminate.Ended)
	piped2.Process.Stdin = &scan.Stdin{Type: scan.StdinSocket, Peer: scan.PeerOpen, Holders: []int{20}}
	golang := []scan.Process{proc(20, 10, "/opt/bin/go-mcp")}
	piped := stayed(chain[2], 21, terminate.Ended)
	piped.Process.Stdin = &scan.Stdin{Type: scan.StdinSocket, Peer: scan.PeerOpen}
	busy := stayed(direct[0], 10, terminate.Ended)
	busy.CPU = 99.6
	ended := func(p scan.Process, ppid int) facts.Leftover { return stayed(p, ppid, terminate.Ended) }
	killed := func(p scan.Process, ppid int) facts.Leftover { return stayed(p, ppid, terminate.Killed) }
	deaf := busy
	deaf.Outcome = terminate.Killed
	docker := []scan.Process{proc(20, 10, "docker run -i --rm ghcr.io/x/some-mcp")}
	after := func(way facts.Way, left ...facts.Leftover) facts.End { return facts.End{Way: way, Left: left} }
	strays := func(way facts.Way, n int) facts.End {
		return facts.End{Way: way, Strays: []scan.Process{proc(30, 1, "sleep 300"), proc(31, 1, "sleep 301")}[:n]}
	}
	behindNpx := func(e facts.End) *facts.Stdio { return stdio("npx -y some-mcp@1.2.3 --fast", chain, e) }
	python := func(e facts.End) *facts.Stdio { return stdio("python3 server.py", direct, e) }
	all := []facts.Leftover{ended(chain[0], 10), ended(chain[1], 20), ended(chain[2], 21)}
	goServer := stdio("/opt/bin/go-mcp", golang, after(facts.CloseStdin, ended(golang[0], 10)))
	goServer.Go = []scan.ID{golang[0].ID()}
	running := func(left, of int) string {
		return fmt.Sprintf("no: %d of %s still running after 20 s", left, format.Count(of, "process"))
	}
	for _, c := range []struct {
		name    string
		facts   *facts.Stdio
		verdict Verdict
		says    []string // the answer, then the reasons
		code    string   // the runtime that the code is for
		launch  bool     // the remedy is to leave out the wrapper
	}{
		{"all ended", behindNpx(facts.End{Way: facts.CloseStdin, Took: 40 * time.Millisecond}),
			OK, []string{"yes, within 0.1 s"}, "", false},
		{"late", python(facts.End{Way: facts.CloseStdin, Took: 6200 * time.Millisecond}),
			OK, []string{"yes, within 6.2 s; SDK clients send SIGTERM after 2 s"}, "", false},
		{"late, after the client was killed", python(facts.End{Way: facts.KillClient, Took: 6200 * time.Millisecond}),
			OK, []string{"yes, within 6.2 s"}, "", false},
		{"early", python(facts.End{Way: facts.CloseStdin, Early: true}),
			Unsure, []string{"it exited by itself before the test"}, "", false},
		{"untried", python(facts.End{Way: facts.Terminate, Untried: "this system has no SIGTERM"}),
			Unsure, []string{"not tested: this system has no SIGTERM"}, "", false},
		{"a container", stdio("docker run -i --rm ghcr.io/x/some-mcp", docker, facts.End{Way: facts.KillClient}),
			Unsure, []string{"its local processes exited, but the container may still run: check docker ps"}, "", false},
		{"a stray", python(strays(facts.CloseStdin, 1)), Unsure, []string{
			"its known processes exited, but sleep (pid 30) started meanwhile without a parent, and this system does not " +
				"show where it came from: check again, or on Linux",
		}, "", false},
		{"two strays", python(strays(facts.Terminate, 2)), Unsure, []string{
			"its known processes exited, but sleep (pid 30) and 1 other started meanwhile without a parent, and this " +
				"system does not show where they came from: check again, or on Linux",
		}, "", false},
		{"stubborn behind npx", behindNpx(after(facts.KillClient, all...)), Failed, []string{
			running(3, 3),
			"node (pid 22) kept running after its stdin was closed",
			"npx (pid 20) is waiting for its child",
			"sh (pid 21) is waiting for its child",
		}, "node", false},
		{"a wrapper that holds stdin", behindNpx(after(facts.CloseStdin, ended(chain[0], 10), ended(chain[1], 20), piped)), Failed, []string{
			running(3, 3),
			"node (pid 22) never saw its stdin close: another process still holds the other end",
			"npx (pid 20) is waiting for its child",
			"sh (pid 21) is waiting for its child",
		}, "", true},
		{"an unknown wrapper", stdio("node start.mjs", unknown, after(facts.CloseStdin, ended(unknown[0], 10), piped2)), Failed, []string{
			running(2, 2),
			"node (pid 21) never saw its stdin close: node (pid 20) still holds the other end",
			"node (pid 20) is waiting for its child",
		}, "", true},
		{"a wrapper that stays alone", behindNpx(after(facts.CloseStdin, ended(chain[0], 10))),
			Failed, []string{running(1, 3), "npx (pid 20) kept running after the server exited"}, "", true},
		{"ignores SIGTERM too, and is busy", python(after(facts.CloseStdin, deaf)), Failed, []string{
			running(1, 1),
			"python (pid 20) kept running after its stdin was closed, at 100 % CPU",
			"python (pid 20) ignored SIGTERM as well, and was killed with SIGKILL",
		}, "python", false},
		{"a helper", stdio("node server.mjs", helped, after(facts.KillClient, ended(helped[1], 10))), Failed, []string{
			running(1, 2),
			"chromium (pid 21), a helper of the server, kept running after the server exited",
		}, "", false},
		{"a helper, after SIGTERM", stdio("node server.mjs", helped, after(facts.Terminate, killed(helped[1], 10))), Failed, []string{
			running(1, 2),
			"chromium (pid 21), a helper of the server, kept running after the server exited",
		}, "", false},
		{"a helper without a parent", stdio("node server.mjs", adopted, after(facts.KillClient, ended(adopted[1], 10))), Failed, []string{
			running(1, 2),
			"chromium (pid 21), a helper of the server, kept running after the server exited",
		}, "", false},
		{"a program of Go", goServer,
			Failed, []string{running(1, 1), "go-mcp (pid 20) kept running after its stdin was closed"}, "go", false},
		{"a program of unknown origin", stdio("/opt/bin/go-mcp", golang, after(facts.CloseStdin, ended(golang[0], 10))),
			Failed, []string{running(1, 1), "go-mcp (pid 20) kept running after its stdin was closed"}, "", false},
		{"SIGTERM lost below a shell", behindNpx(after(facts.Terminate, ended(chain[2], 10))), Failed, []string{
			running(1, 3),
			"sh (pid 21) exited without forwarding SIGTERM; node (pid 22) kept running until it received SIGTERM itself",
		}, "", true},
		{"SIGTERM lost below a shell, and ignored", behindNpx(after(facts.Terminate, killed(chain[2], 10))), Failed, []string{
			running(1, 3),
			"sh (pid 21) exited; node (pid 22) kept running, ignored a SIGTERM of its own, and was killed with SIGKILL",
		}, "", true},
		{"SIGTERM swallowed", behindNpx(after(facts.Terminate, killed(chain[0], 10), ended(chain[1], 20), ended(chain[2], 21))), Failed, []string{
			running(3, 3),
			"npx (pid 20) received SIGTERM and did not exit",
			"sh (pid 21) kept running below it",
			"node (pid 22) kept running below it",
		}, "", true},
		{"SIGTERM ignored", python(after(facts.Terminate, busy)),
			Failed, []string{running(1, 1), "python (pid 20) received SIGTERM and did not exit, at 100 % CPU"}, "", false},
	} {
		r := Stdio(c.facts).Rows[0]
		if got := append([]string{r.Answer}, r.Because...); r.Verdict != c.verdict || !slices.Equal(got, c.says) {
			t.Errorf("%s: %s\n got %q\nwant %q", c.name, r.Verdict, got, c.says)
		}
		if (r.Remedy != nil) != (c.verdict == Failed) || (r.Seconds != nil) != (c.verdict == OK) {
			t.Errorf("%s: the row is %+v", c.name, r)
		}
		if r.Remedy == nil {
			continue
		}
		if code := r.Remedy.Code; c.code == "" && code != nil || c.code != "" && (code == nil || code.Runtime != c.code) {
			t.Errorf("%s: the code is %+v", c.name, code)
		}
		if slices.Contains(r.Remedy.Steps, rules.RemedyLauncher) != c.launch || len(r.Remedy.Steps) == 0 || rules.Lookup(r.Remedy.Rule) == nil {
			t.Errorf("%s: the remedy is %+v", c.name, r.Remedy)
		}
		for _, s := range r.Remedy.Steps { // one text, which explain shows too
			if !slices.Contains(rules.Lookup(r.Remedy.Rule).Remedy, s) {
				t.Errorf("%s: %q is no remedy of the rule", c.name, s)
			}
		}
	}
}

// How the server is configured without its wrapper.
func TestJudgeStdioDirect(t *testing.T) {
	chain := npx()
	lost := func(tree []scan.Process) facts.End {
		last := tree[len(tree)-1]
		return facts.End{Way: facts.Terminate, Left: []facts.Leftover{stayed(last, 10, terminate.Ended)}}
	}
	shelled := []scan.Process{
		{PID: 20, PPID: 10, Start: 20, Args: []string{"sh", "-c", "node server.mjs --fast"}},
		proc(21, 20, "node server.mjs --fast"),
	}
	sh := stdio("", shelled, lost(shelled))
	sh.Command = shelled[0].Args
	uv := []scan.Process{proc(20, 10, "uv tool run some-mcp"), proc(21, 20, "/home/u/.cache/uv/bin/python /home/u/.cache/uv/bin/some-mcp")}
	for _, c := range []struct {
		facts *facts.Stdio
		want  string
	}{
		{stdio("npx -y some-mcp@1.2.3 --fast", chain, lost(chain)), "[npm install --global some-mcp@1.2.3] {some-mcp [--fast]}"},
		{sh, "[] {node [server.mjs --fast]}"},
		{stdio("uvx some-mcp", uv, lost(uv)), "[uv tool install some-mcp] {some-mcp []}"},
	} {
		r := Stdio(c.facts).Rows[0].Remedy
		if r == nil || r.Entry == nil || fmt.Sprint(r.Commands, *r.Entry) != c.want {
			t.Errorf("%v: the remedy is %+v, want %s", c.facts.Command, r, c.want)
		}
	}
}

func TestJudgeStdioServer(t *testing.T) {
	chain := npx()
	seen := stdio("npx -y some-mcp@1.2.3 --fast", chain, facts.End{Way: facts.CloseStdin}, facts.End{Way: facts.Terminate, Untried: "x"})
	seen.Noise = facts.Noise{Lines: 2, First: "Welcome"}
	seen.Left = []scan.Process{proc(30, 1, "sudo x")}
	seen.Problems = []string{"one"}
	c := Stdio(seen)
	var layers []string
	for _, l := range c.Server.Layers {
		layers = append(layers, string(l.Kind)+" "+l.Name)
	}
	if want := []string{"wrapper npx", "wrapper sh", "server node"}; !slices.Equal(layers, want) {
		t.Errorf("the layers are %q", layers)
	}
	if c.Server.RSSBytes != nil || c.Server.PSSBytes != nil { // those of sh are not known
		t.Errorf("the memory is %v", c.Server)
	}
	if c.Kind != StdioKind || c.Schema != 1 || c.TimeoutSeconds != 20 ||
		!slices.Equal(c.Server.StartupSeconds, []float64{1, 0.3}) || c.Server.Tools != 3 {
		t.Errorf("the check is %+v", c)
	}
	if last := c.Rows[len(c.Rows)-1]; c.Failed != 1 || c.Unknown != 1 || last.ID != TopicStdout ||
		last.Answer != "no: 2 lines of other output" || last.Because[0] != "first such line: Welcome" {
		t.Errorf("the rows are %+v", c.Rows)
	}
	if want := []string{"one", "pid 30 could not be terminated and is still running: sudo x"}; !slices.Equal(c.Problems, want) {
		t.Errorf("the problems are %q", c.Problems)
	}
	chain[1].RSSBytes, chain[1].PSSBytes = chain[0].RSSBytes, chain[0].PSSBytes
	if s := Stdio(seen).Server; s.RSSBytes == nil || *s.RSSBytes != 62<<20 || *s.PSSBytes != 31<<20 {
		t.Errorf("the memory is %v, %v", s.RSSBytes, s.PSSBytes)
	}
}

// Who has whom for a parent now.
func TestJudgeStdioParents(t *testing.T) {
	chain := npx()
	c := Stdio(stdio("npx some-mcp", chain, facts.End{Way: facts.KillClient, Left: []facts.Leftover{
		stayed(chain[0], 10, terminate.Ended), stayed(chain[1], 20, terminate.Ended), stayed(chain[2], 1, terminate.Ended)}}))
	var got []string
	for _, l := range c.Rows[0].Left {
		got = append(got, fmt.Sprint(l.Adopted, " ", l.Parent))
	}
	if want := []string{"false mcpdoctor", "false npx (pid 20)", "true pid 1"}; !slices.Equal(got, want) {
		t.Errorf("the parents are %q", got)
	}
	c = Stdio(stdio("npx some-mcp", chain, facts.End{Way: facts.Terminate, Left: []facts.Leftover{stayed(chain[2], 10, terminate.Ended)}}))
	if l := c.Rows[0].Left[0]; !l.Adopted || l.Parent != "mcpdoctor, in place of PID 1" {
		t.Errorf("left is %+v", l)
	}
}

func TestUnchecked(t *testing.T) {
	for _, kind := range []facts.FailureKind{
		facts.Missing, facts.NotExecutable, facts.Directory, facts.NoProgram,
		facts.NeverStarted, facts.ExitedEarly, facts.NeverAnswered, facts.RefusedHandshake, facts.NoServer,
	} {
		f := &facts.Failure{
			Kind: kind, Cause: fmt.Errorf("cause"), Status: "exit status 3", Waited: time.Minute,
			Stderr: "Error: no API key.", Stdout: "usage:",
		}
		what, hint := Unchecked(f, []string{"server", "--x"})
		if !strings.HasPrefix(what, "server ") && !strings.Contains(what, " server") || strings.HasSuffix(what, ".") ||
			hint == "" || strings.HasSuffix(hint, ".") {
			t.Errorf("%s: %q, %q", kind, what, hint)
		}
		if strings.Contains(what, "initialize") && !strings.Contains(what, "Error: no API key") {
			t.Errorf("%s: %q does not say what it wrote", kind, what)
		}
	}
}
