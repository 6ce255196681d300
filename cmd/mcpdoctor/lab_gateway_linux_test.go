package main

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
)

// gateway is a supergateway in front of the lab's own stdio server.
type gateway struct {
	*lab
	pid       int
	port, url string
}

// gatewayScript is the script of a version of supergateway, by its first digit.
func (l *lab) gatewayScript(version string) string {
	return map[string]string{
		"3": l.bin("supergateway"),
		"4": filepath.Join(l.root, "next", "node_modules", ".bin", "supergateway"),
	}[version]
}

// behind is the command of the server that a gateway is to start.
func (l *lab) behind(more ...string) string {
	return strings.Join(append([]string{"node", filepath.Join(l.root, "servers", "mcp-echo.mjs")}, more...), " ")
}

// gatewayArgs are the arguments of a gateway on that port.
func (l *lab) gatewayArgs(server, port string, flags ...string) []string {
	args := []string{"--stdio", server, "--outputTransport", "streamableHttp"}
	return append(append(args, flags...), "--port", port)
}

func (l *lab) startGateway(version, server string, flags ...string) *gateway {
	l.t.Helper()
	port := l.freePort()
	p := l.start(append([]string{"node", l.gatewayScript(version)}, l.gatewayArgs(server, port, flags...)...))
	l.listening(port)
	return &gateway{lab: l, pid: p.pid, port: port, url: "http://127.0.0.1:" + port + "/mcp"}
}

// call calls a tool, and the call has to be answered.
func (g *gateway) call(session string) {
	g.t.Helper()
	message := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`
	if status, _ := g.post(g.url, session, message); status != 200 {
		g.t.Fatalf("tools/call is answered with %d", status)
	}
}

// open opens a session.
func (g *gateway) open() (session string) {
	g.t.Helper()
	status, session := g.post(g.url, "", initialize)
	if status != 200 || session == "" {
		g.t.Fatalf("initialize is answered with %d and session %q", status, session)
	}
	g.post(g.url, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return session
}

// close ends a session as a client does.
func (g *gateway) close(session string) {
	g.t.Helper()
	r, err := http.NewRequest(http.MethodDelete, g.url, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Mcp-Session-Id", session)
	a, err := web.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	a.Body.Close()
	if a.StatusCode != 200 {
		g.t.Fatalf("DELETE is answered with %d", a.StatusCode)
	}
}

// instances returns the processes below the gateway, each server with its shell, the oldest first.
func (g *gateway) instances() [][]int {
	all := processes()
	var tops []procRow
	for _, p := range all {
		if p.ppid == g.pid {
			tops = append(tops, p)
		}
	}
	slices.SortFunc(tops, func(a, b procRow) int {
		if a.start != b.start {
			return int(a.start) - int(b.start)
		}
		return a.pid - b.pid
	})
	var out [][]int
	for _, p := range tops {
		out = append(out, append([]int{p.pid}, below(p.pid)...))
	}
	return out
}

// psRow is what ps says about a process.
type psRow struct {
	ppid int
	rss  int64
	args string
}

// ps asks the machine's own tool.
func ps(t *testing.T) map[int]psRow {
	t.Helper()
	out, err := exec.Command("ps", "-eo", "pid,ppid,rss,args").Output()
	if err != nil {
		t.Fatal("ps: ", err)
	}
	rows := map[int]psRow{}
	for _, m := range regexp.MustCompile(`(?m)^ *(\d+) +(\d+) +(\d+) (.*)$`).FindAllStringSubmatch(string(out), -1) {
		pid, _ := strconv.Atoi(m[1])
		ppid, _ := strconv.Atoi(m[2])
		kb, _ := strconv.ParseInt(m[3], 10, 64)
		rows[pid] = psRow{ppid: ppid, rss: kb * 1024, args: m[4]}
	}
	return rows
}

// about fails the test unless two numbers of bytes differ by a tenth at most.
func about(t *testing.T, what string, got, want int64) {
	t.Helper()
	if math.Abs(float64(got-want)) > 0.1*float64(want) {
		t.Errorf("%s: %d bytes, where ps has %d", what, got, want)
	}
}

// A stateless supergateway 3 keeps a server for each of 25 calls, and the scan tells that story.
func TestLabStory(t *testing.T) {
	t.Parallel()
	const calls = 25
	l := newLab(t)
	g := l.startGateway("3", l.behind())
	for range calls {
		g.call("")
	}
	servers := g.instances()
	if len(servers) != calls {
		t.Fatalf("%d calls left %d servers below the gateway", calls, len(servers))
	}
	old := slices.Concat(servers[:calls-1]...)
	l.waitUntilOld(old, 31*time.Second) // younger ones may be at work

	saved := filepath.Join(l.home, "snapshot.json")
	if _, stderr, code := l.doctor("snapshot", "--out", saved); code != exitClean {
		t.Fatalf("snapshot: exit code %d\n%s", code, stderr)
	}
	rows := ps(t)
	r, code := l.scan()
	if code != exitFindings {
		t.Errorf("exit code %d, not %d", code, exitFindings)
	}
	f := l.only(r, "spawn-per-request")

	t.Run("finding", func(t *testing.T) {
		if f.Severity != rules.Error || f.Confidence != process.Certain {
			t.Errorf("it is %s, %s", f.Severity, f.Confidence)
		}
		if f.ParentPID != g.pid || f.Instances != calls-1 {
			t.Errorf("parent %d and %d instances, not %d and %d", f.ParentPID, f.Instances, g.pid, calls-1)
		}
		same(t, "the subjects", f.PIDs, old)
		same(t, "what is safe to end", f.Reap.Safe, old)
		same(t, "what may be ended on request", f.Reap.OnRequest, nil)
		if len(r.Findings) != 1 {
			t.Errorf("there are %d findings about it, not one", len(r.Findings))
		}
	})
	t.Run("words", func(t *testing.T) {
		holds(t, "the title", f.Title, "supergateway 3.4.3", fmt.Sprintf("pid %d", g.pid), "port "+g.port, "25 instances", "per request")
		evidence := strings.Join(f.Evidence, "\n")
		holds(t, "the evidence", evidence, "--stateful and --sessionTimeout are missing", "oldest", "all 25")
		if !regexp.MustCompile(`one every \d|25 started within`).MatchString(evidence) {
			t.Errorf("the evidence does not say how often one came:\n%s", evidence)
		}
		remedy := strings.Join(append(append([]string{f.Remedy.Summary}, f.Remedy.Steps...), f.Remedy.Commands...), "\n")
		holds(t, "the remedy", remedy, "--stateful", "--sessionTimeout", "supergateway 4", "mcpdoctor reap", "mcpdoctor explain spawn-per-request")
	})
	t.Run("counts and bytes of ps", func(t *testing.T) {
		below := map[int]bool{g.pid: true}
		var inPS []int
		var bytes int64
		for grown := true; grown; {
			grown = false
			for pid, row := range rows {
				if below[row.ppid] && !below[pid] {
					below[pid], grown = true, true
					inPS, bytes = append(inPS, pid), bytes+row.rss
				}
			}
		}
		var shown []int
		for _, row := range f.Processes {
			if row.PID != g.pid {
				shown = append(shown, row.PID)
			}
		}
		same(t, "the processes shown", shown, inPS)
		about(t, "RSS of the finding", f.RSSBytes, bytes)
		holds(t, "the title", f.Title, format.Bytes(f.RSSBytes))
		for _, row := range f.Processes {
			if row.PPID != rows[row.PID].ppid || row.Command != rows[row.PID].args {
				t.Errorf("pid %d: parent %d, %q; in ps %+v", row.PID, row.PPID, row.Command, rows[row.PID])
			}
		}
	})
	t.Run("servers", func(t *testing.T) {
		leaked := 0
		for _, s := range r.Servers {
			if s.Owner.Kind != process.OwnerGateway || s.Owner.PID != g.pid {
				t.Errorf("server %v has the owner %+v", s.PIDs, s.Owner)
			}
			if s.Verdict == rules.Leaked {
				leaked++
			}
		}
		if len(r.Servers) != calls || leaked != calls-1 {
			t.Errorf("%d servers, %d leaked; not %d and %d", len(r.Servers), leaked, calls, calls-1)
		}
		if len(r.Gateways) != 1 || r.Gateways[0].PID != g.pid || r.Gateways[0].Version != "3.4.3" || r.Gateways[0].Servers != calls {
			t.Errorf("gateways: %+v", r.Gateways)
		}
	})
	t.Run("first screen", func(t *testing.T) {
		text, _, code := l.doctor("scan")
		if code != exitFindings {
			t.Errorf("exit code %d, not %d", code, exitFindings)
		}
		holds(t, "the first screen", screen(t, text, g.pid),
			"supergateway 3.4.3", fmt.Sprintf("pid %d", g.pid), "port "+g.port, "25 instances", "oldest",
			"--stateful and --sessionTimeout are missing", "supergateway 4", "mcpdoctor reap", "mcpdoctor explain spawn-per-request")
		if strings.ContainsRune(text, '\x1b') {
			t.Error("there are escape codes in a pipe")
		}
	})
	t.Run("saved", func(t *testing.T) {
		later, _ := l.scan("--from", saved)
		same(t, "the subjects", l.only(later, "spawn-per-request").PIDs, f.PIDs)
		same(t, "what is safe to end", l.only(later, "spawn-per-request").Reap.Safe, f.Reap.Safe)
		if len(later.Findings) != len(r.Findings) {
			t.Errorf("%d findings, and %d from the saved snapshot", len(r.Findings), len(later.Findings))
		}
	})
}

// screen returns the first 24 lines, as they are where nothing else has leaked: without the
// findings that are not about this gateway, but happen to hold more.
func screen(t *testing.T, text string, gateway int) string {
	t.Helper()
	blocks := strings.Split(text, "\n\n")
	for _, b := range blocks[1:] {
		if title, _, _ := strings.Cut(b, "\n"); strings.Contains(title, fmt.Sprintf("(pid %d,", gateway)) {
			lines := strings.Split(blocks[0]+"\n\n"+b, "\n")
			return strings.Join(lines[:min(len(lines), 24)], "\n")
		}
	}
	t.Fatalf("no finding has the gateway (pid %d) in its first line:\n%s", gateway, text)
	return ""
}

// Behind npx an instance has four processes, and is one instance all the same.
func TestLabStoryNpx(t *testing.T) {
	t.Parallel()
	const calls = 4
	l := newLab(t)
	l.dir = l.root // where npx finds it
	g := l.startGateway("3", "npx -y @modelcontextprotocol/server-filesystem "+l.home)
	for range calls {
		status, _ := g.post(g.url, "", `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}`)
		if status != 200 {
			t.Fatalf("tools/list is answered with %d", status)
		}
	}
	servers := g.instances()
	old := slices.Concat(servers[:calls-1]...)
	if len(servers) != calls || len(old) < 3*(calls-1) {
		t.Fatalf("%d calls left %v below the gateway", calls, servers)
	}
	l.waitUntilOld(old, 31*time.Second)
	r, _ := l.scan()
	f := l.only(r, "spawn-per-request")
	same(t, "the subjects", f.PIDs, old)
	same(t, "what is safe to end", f.Reap.Safe, old)
	if f.Instances != calls-1 || f.ParentPID != g.pid || len(r.Findings) != 1 {
		t.Errorf("%d instances, parent %d, %d findings", f.Instances, f.ParentPID, len(r.Findings))
	}
	holds(t, "the title", f.Title, "4 instances", "server-filesystem")
}

// The story under pm2, which cuts the command line of its apps, so that less can be known for sure.
// Beside it pm2 keeps a gateway that is healthy.
func TestLabPM2(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	pm2 := func(args ...string) { l.run(append([]string{"node", l.bin("pm2")}, args...)...) }
	t.Cleanup(func() { pm2("kill") })
	keep := func(name string, flags ...string) *gateway {
		port := l.freePort()
		pm2(append([]string{"start", l.gatewayScript("3"), "--name", name, "--"}, l.gatewayArgs(l.behind(), port, flags...)...)...)
		l.listening(port)
		noted, err := filepath.Glob(filepath.Join(l.home, "pm2", "pids", name+"-*.pid"))
		if err != nil || len(noted) != 1 {
			t.Fatalf("pm2 has noted the app in %v (%v)", noted, err)
		}
		pid, err := os.ReadFile(noted[0])
		if err != nil {
			t.Fatal(err)
		}
		g := &gateway{lab: l, port: port, url: "http://127.0.0.1:" + port + "/mcp"}
		if g.pid, err = strconv.Atoi(strings.TrimSpace(string(pid))); err != nil {
			t.Fatal(err)
		}
		return g
	}
	leaky := keep("leaky-gateway")
	healthy := keep("healthy-gateway", "--stateful", "--sessionTimeout", "600000")
	session := healthy.open()
	healthy.call(session)

	r, _ := l.scan()
	l.quiet("under pm2", r)
	for _, s := range r.Servers {
		if s.Verdict != rules.InUse || s.Owner.PID != healthy.pid {
			t.Errorf("server %v of a session is %s (%s), owner %+v", s.PIDs, s.Verdict, s.Because, s.Owner)
		}
	}
	if len(r.Servers) != 1 || len(r.Gateways) != 2 {
		t.Errorf("%d servers and %d gateways, not 1 and 2", len(r.Servers), len(r.Gateways))
	}

	// Without its flags, only what piles up over a minute and stays for one tells against it.
	const minute = 61 * time.Second
	for range 5 {
		leaky.call("")
	}
	l.waitUntilOld(slices.Concat(leaky.instances()...), minute)
	leaky.call("")
	leaky.call("")
	old := leaky.instances()[:6]
	l.waitUntilOld(slices.Concat(old...), minute)
	r, _ = l.scan()
	f := l.only(r, "spawn-per-request")
	same(t, "the subjects", f.PIDs, slices.Concat(old...))
	if f.ParentPID != leaky.pid || f.Severity == rules.Info {
		t.Errorf("it is %s, parent %d, not %d", f.Severity, f.ParentPID, leaky.pid)
	}
	holds(t, "the title", f.Title, "supergateway 3.4.3", "started by pm2", "leaky-gateway", "port "+leaky.port, "7 instances")
	holds(t, "the remedy", strings.Join(slices.Concat([]string{f.Remedy.Summary}, f.Remedy.Steps, f.Remedy.Commands), "\n"),
		"--stateful", "pm2 delete leaky-gateway", "mcpdoctor reap")
	if len(r.Findings) != 1 {
		t.Errorf("there are %d findings, not one", len(r.Findings))
	}
}

// supergateway 4 ends the server with its request.
func TestLabGateway4(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	g := l.startGateway("4", l.behind())
	for range 10 {
		g.call("")
	}
	l.eventually("no server is left", 30*time.Second, func() bool { return len(below(g.pid)) == 0 })
	r, _ := l.scan()
	l.quiet("after calls to supergateway 4", r)
	if len(r.Servers) != 0 {
		t.Errorf("%d servers are shown, where none is left", len(r.Servers))
	}
	if len(r.Gateways) != 1 || r.Gateways[0].PID != g.pid || r.Gateways[0].Version != "4.0.0" {
		t.Errorf("gateways: %+v", r.Gateways)
	}
}

// With the flags that the remedy names, supergateway 3 is healthy.
func TestLabStateful(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	g := l.startGateway("3", l.behind(), "--stateful", "--sessionTimeout", "15000")
	for _, session := range []string{g.open(), g.open()} {
		g.call(session)
	}
	r, _ := l.scan()
	l.quiet("with two sessions", r)
	for _, s := range r.Servers {
		if s.Verdict != rules.InUse || s.Owner.Kind != process.OwnerGateway || s.Owner.PID != g.pid {
			t.Errorf("server %v is %s (%s), owner %+v", s.PIDs, s.Verdict, s.Because, s.Owner)
		}
		holds(t, "the reason", s.Because, fmt.Sprint("pid ", g.pid))
	}
	if len(r.Servers) != 2 {
		t.Errorf("%d servers are shown, not two", len(r.Servers))
	}
	l.eventually("the sessions have ended", time.Minute, func() bool { return len(below(g.pid)) == 0 })
	r, _ = l.scan()
	l.quiet("after the time-out", r)
	if len(r.Servers) != 0 || len(r.Gateways) != 1 {
		t.Errorf("%d servers and %d gateways, not 0 and 1", len(r.Servers), len(r.Gateways))
	}
}

// A session that its client ends leaves a stubborn server behind: the SIGTERM of supergateway 3
// reached the shell only. The gateway lives on, and so do its other sessions.
func TestLabEndedSession(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	g := l.startGateway("3", l.behind("--keep-alive"), "--stateful", "--sessionTimeout", "600000")
	g.call(g.open())
	ended := g.open()
	g.call(ended)
	before := below(g.pid)
	g.close(ended)
	l.eventually("one session is left below the gateway", 30*time.Second, func() bool { return len(g.instances()) == 1 })
	used := below(g.pid)
	var left []int
	for _, pid := range before {
		if p, ok := readProcess(pid); ok && p.state != 'Z' && !slices.Contains(used, pid) {
			left = append(left, pid)
		}
	}
	if len(left) == 0 {
		t.Fatal("nothing stayed")
	}
	r, _ := l.scan()
	lost(t, "left by a session", r, left)
	l.nothingElse(r, left)
}

// A gateway of either version is killed, and the stubborn servers of its sessions stay.
func TestLabKilledGateways(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	var all, gateways []int
	for _, version := range []string{"3", "4"} {
		g := l.startGateway(version, l.behind("--keep-alive"), "--stateful")
		g.call(g.open())
		g.call(g.open())
		all = append(all, below(g.pid)...)
		gateways = append(gateways, g.pid)
	}
	l.kill(gateways...)
	r, _ := l.scan()
	lost(t, "left by a gateway", r, all)
	l.nothingElse(r, all)
}

// A gateway that an agent started as its helper stays when the agent dies. It is nobody's any more,
// but it listens, and so it is not to be ended unasked.
func TestLabAbandonedGateway(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.need("python3")
	port := l.freePort()
	helper := server{Command: "npx", Args: append([]string{"supergateway"}, l.gatewayArgs(l.behind(), port, "--stateful")...), Dir: l.root}
	c := l.startClient(client{kind: "python", mute: true}, map[string]server{"gateway": helper})
	l.listening(port)
	g := &gateway{lab: l, port: port, url: "http://127.0.0.1:" + port + "/mcp"}
	g.open()
	all := below(c.pid)
	l.kill(c.pid)
	r, _ := l.scan()
	var shown []int
	for _, f := range r.Findings {
		if f.Rule == "orphan" {
			shown = append(shown, f.Reap.OnRequest...)
		}
		same(t, "what is safe to end", f.Reap.Safe, nil)
	}
	same(t, "what may be ended on request", shown, all)
}
