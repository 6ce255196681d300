package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
)

// server is how a client is told to start one.
type server struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Dir     string   `json:"cwd,omitempty"`
}

// stubborn are servers that ignore the end of their stdin, started in all the usual ways.
func (l *lab) stubborn(ways ...string) map[string]server {
	script := filepath.Join(l.root, "servers", "mcp-echo.mjs")
	return pick(l.t, ways, map[string]server{
		"direct": {Command: "node", Args: []string{script, "--keep-alive"}},
		"sh":     {Command: "sh", Args: []string{"-c", "node " + script + " --keep-alive"}},
		"npx":    {Command: "npx", Args: []string{"-y", "lab-echo-mcp", "--keep-alive"}, Dir: l.root},
		"python": {Command: "python3", Args: []string{"-m", "lab_mcp_server", "--watch"}},
	})
}

// ordinary are servers that end with their stdin.
func (l *lab) ordinary(ways ...string) map[string]server {
	return pick(l.t, ways, map[string]server{
		"everything npx":    {Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-everything"}, Dir: l.root},
		"everything direct": {Command: "node", Args: []string{l.bin("mcp-server-everything")}},
		"filesystem npx":    {Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", l.home}, Dir: l.root},
		"filesystem sh":     {Command: "sh", Args: []string{"-c", "node " + l.bin("mcp-server-filesystem") + " " + l.home}},
		"python":            {Command: "python3", Args: []string{"-m", "lab_mcp_server"}},
	})
}

func pick(t *testing.T, ways []string, from map[string]server) map[string]server {
	t.Helper()
	out := map[string]server{}
	for _, way := range ways {
		s, ok := from[way]
		if !ok {
			t.Fatalf("there is no server %q", way)
		}
		out[way] = s
	}
	return out
}

// client is a client of stdio servers, and how it is to be started.
type client struct {
	kind  string   // node: on the SDK, with sockets; python and go: with pipes
	under []string // what starts it
	extra []string // more arguments
	mute  bool     // its servers do not speak MCP over stdio, so that it never gets ready

	pid  int
	tops map[string]int // what it started for each of its servers, in its last round
}

// startClient starts a client and waits until it has talked to all of its servers.
func (l *lab) startClient(c client, servers map[string]server) *client {
	l.t.Helper()
	name := fmt.Sprintf("client%d", len(l.born))
	config, ready := filepath.Join(l.home, name+".json"), filepath.Join(l.home, name+".ready")
	text, err := json.Marshal(servers)
	if err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(config, text, 0o644); err != nil {
		l.t.Fatal(err)
	}
	var args, env []string
	switch c.kind {
	case "node":
		args = []string{"node", filepath.Join(l.root, "clients", "client.mjs"), config, "--ready", ready}
	case "python":
		args = []string{"python3", filepath.Join(l.root, "clients", "client.py"), config, ready}
	case "go":
		args, env = []string{l.self("agent"), config, ready}, []string{playAs + "=client"}
	}
	p := l.start(slices.Concat(c.under, args, c.extra), env...)
	if c.mute {
		c.pid = p.pid
		l.eventually("the client has started its servers", time.Minute, func() bool { return len(below(p.pid)) > 0 })
		return &c
	}
	var said struct {
		Log []struct {
			Name string
			PID  int
		}
	}
	rounds := 1
	if i := slices.Index(c.extra, "--rounds"); i >= 0 {
		fmt.Sscan(c.extra[i+1], &rounds)
	}
	l.eventually("the client is ready", 3*time.Minute, func() bool {
		text, err := os.ReadFile(ready)
		return err == nil && json.Unmarshal(text, &said) == nil && len(said.Log) == rounds*len(servers)
	})
	c.tops = map[string]int{}
	for _, e := range said.Log {
		c.tops[e.Name] = e.PID
	}
	first, ok := readProcess(said.Log[0].PID)
	if !ok {
		l.t.Fatal("the first server of the client is gone")
	}
	c.pid = first.ppid
	return &c
}

// chain returns what runs for one of its servers: launchers, then the server.
func (c *client) chain(name string) []int {
	return append([]int{c.tops[name]}, below(c.tops[name])...)
}

// playClient is a client as it is written in Go.
func playClient() {
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "client:", err)
			os.Exit(1)
		}
	}
	text, err := os.ReadFile(os.Args[1])
	check(err)
	var servers map[string]server
	check(json.Unmarshal(text, &servers))
	type entry struct {
		Name string `json:"name"`
		PID  int    `json:"pid"`
	}
	var said struct {
		Log []entry `json:"log"`
	}
	var wires []io.WriteCloser
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		c := exec.Command(servers[name].Command, servers[name].Args...)
		c.Dir = servers[name].Dir
		in, err := c.StdinPipe()
		check(err)
		out, err := c.StdoutPipe()
		check(err)
		check(c.Start())
		_, err = io.WriteString(in, initialize+"\n")
		check(err)
		_, err = bufio.NewReader(out).ReadString('\n')
		check(err)
		wires = append(wires, in)
		said.Log = append(said.Log, entry{name, c.Process.Pid})
	}
	if slices.Contains(os.Args, "--hang-up") { // and never look after them again
		for _, w := range wires {
			check(w.Close())
		}
	}
	text, err = json.Marshal(said)
	check(err)
	check(os.WriteFile(os.Args[2], text, 0o644))
	time.Sleep(10 * time.Minute)
	runtime.KeepAlive(wires)
}

// playAdopter adopts what the children of its children leave behind, as systemd --user does.
func playAdopter() {
	const prSetChildSubreaper = 36 // prctl(2)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		fmt.Fprintln(os.Stderr, "adopter:", errno)
		os.Exit(1)
	}
	playKeeper()
}

// playKeeper starts a program, waits for what ends, and stays.
func playKeeper() {
	c := exec.Command(os.Args[1], os.Args[2:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, playAs+"=") })
	if err := c.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
		os.Exit(1)
	}
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); {
		if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil {
			time.Sleep(100 * time.Millisecond) // no children at the moment
		}
	}
}

func init() {
	parts["client"] = playClient
	parts["adopter"] = playAdopter
	parts["keeper"] = playKeeper
}

// lost fails the test unless each of these processes is a subject of an orphan finding that is
// certain, and safe to end. Orphans of one program share a finding, so it may have others too.
func lost(t *testing.T, what string, r *rules.Report, pids []int) {
	t.Helper()
	for _, pid := range pids {
		found := false
		for _, f := range r.Findings {
			if !slices.Contains(f.PIDs, pid) {
				continue
			}
			found = true
			if f.Rule != "orphan" || f.Severity != rules.Error || f.Confidence != process.Certain || !slices.Contains(f.Reap.Safe, pid) {
				t.Errorf("%s: pid %d is no certain orphan that is safe to end: %s", what, pid, inShort(f))
			}
		}
		if !found {
			p, _ := readProcess(pid)
			t.Errorf("%s: pid %d (parent %d, %s) is not found", what, pid, p.ppid, command(pid))
		}
	}
}

// nothingElse fails the test when a finding has other processes of this lab than these.
func (l *lab) nothingElse(r *rules.Report, pids []int) {
	l.t.Helper()
	for pid := range l.mine() {
		for _, f := range r.Findings {
			if slices.Contains(f.PIDs, pid) && !slices.Contains(pids, pid) {
				l.t.Errorf("pid %d has nothing to do with it: %s", pid, inShort(f))
			}
		}
	}
}

// Clients in three languages are killed, and their stubborn servers stay.
func TestLabKilledClients(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.need("python3")
	servers := l.stubborn("direct", "sh", "npx", "python")
	chains := map[string][]int{}
	var all, clients []int
	for _, kind := range []string{"node", "python", "go"} {
		c := l.startClient(client{kind: kind}, servers)
		for way := range servers {
			chains[kind+", "+way] = c.chain(way)
		}
		all = append(all, below(c.pid)...)
		clients = append(clients, c.pid)
	}
	l.kill(clients...)
	for what, chain := range chains {
		top, ok := readProcess(chain[0])
		if least := map[bool]int{true: 3, false: 1}[strings.HasSuffix(what, "npx")]; !ok || len(chain) < least || slices.Contains(clients, top.ppid) {
			t.Fatalf("%s: the chain %v was to be left behind, its first has the parent %d", what, chain, top.ppid)
		}
	}
	r, code := l.scan()
	if code != exitFindings {
		t.Errorf("exit code %d, not %d", code, exitFindings)
	}
	for _, what := range slices.Sorted(maps.Keys(chains)) {
		lost(t, what, r, chains[what])
	}
	l.nothingElse(r, all)

	t.Run("seen by another user", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("LAB SKIPPED: only root can be somebody else, so nothing was seen with the eyes of another user")
		}
		const nobody = 65534
		r, _ := l.scanAs(&syscall.Credential{Uid: nobody, Gid: nobody})
		for _, f := range r.Findings {
			if f.Confidence == process.Certain || len(f.Reap.Safe)+len(f.Reap.OnRequest) > 0 {
				t.Errorf("who may not read a stdin cannot know that: %s", inShort(f))
			}
		}
		for _, s := range r.Servers {
			if s.Verdict == rules.Leaked {
				t.Errorf("server %v is %s: %s", s.PIDs, s.Verdict, s.Because)
			}
		}
		if len(r.Servers) != len(chains) {
			t.Errorf("%d servers are shown, not %d", len(r.Servers), len(chains))
		}
	})
}

// The same with servers that end with their stdin: there is nothing to be found, not even by who
// looks at the very moment.
func TestLabKilledOrdinary(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.need("python3")
	c := l.startClient(client{kind: "node"}, l.ordinary("everything npx", "everything direct", "filesystem sh", "python"))
	l.kill(c.pid)
	r, _ := l.scan()
	l.quiet("after servers that end by themselves", r)
	if left := l.mine(); len(left) > 0 {
		t.Errorf("these were to end: %v", left)
	}
}

// What adopts is not always pid 1.
func TestLabAdopted(t *testing.T) {
	for name, under := range map[string]func(l *lab) []string{
		"subreaper": func(l *lab) []string { return []string{"env", playAs + "=adopter", l.self("adopter")} },
		// tini ends with its child, so that is to be another than the client.
		"tini": func(l *lab) []string {
			return []string{"tini", "-s", "--", "env", playAs + "=keeper", l.self("keeper")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("tini"); name == "tini" && err != nil {
				t.Skip("LAB SKIPPED: tini is not installed, so nothing was tried under it")
			}
			l := newLab(t)
			c := l.startClient(client{kind: "node", under: under(l)}, l.stubborn("direct", "sh", "npx"))
			all := below(c.pid)
			above, ok := readProcess(c.pid)
			if !ok {
				t.Fatal("the client is gone")
			}
			l.kill(c.pid)
			adopter := above.ppid
			if name == "tini" {
				keeper, _ := readProcess(above.ppid)
				adopter = keeper.ppid
			}
			for way := range c.tops {
				if top, _ := readProcess(c.tops[way]); top.ppid != adopter {
					t.Fatalf("%s: pid %d adopted it, not %d", way, top.ppid, adopter)
				}
			}
			r, _ := l.scan()
			lost(t, name, r, all)
			l.nothingElse(r, all)
			for _, s := range r.Servers {
				if s.Owner.Kind == process.OwnerClient || s.Owner.Kind == process.OwnerGateway {
					t.Errorf("server %v was adopted by what is said to be its %s: %+v", s.PIDs, s.Owner.Kind, s.Owner)
				}
			}
		})
	}
}

// A client that closes the stdin of its servers and lives on does not know that they do.
func TestLabHungUp(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c := l.startClient(client{kind: "go", extra: []string{"--hang-up"}}, l.stubborn("direct", "sh"))
	all := below(c.pid)
	r, _ := l.scan()
	// Nobody can ask them anything. But the client is a program that nobody knows, and may have
	// asked once and wait for the answer: it is a warning, and they are not given up unasked.
	for _, f := range r.Findings {
		if f.Rule != "orphan" || f.Severity != rules.Warning || f.Confidence != process.Likely || len(f.Reap.Safe) > 0 {
			t.Errorf("not what was to be found: %s", inShort(f))
		}
		for _, pid := range f.Reap.OnRequest {
			all = slices.DeleteFunc(all, func(p int) bool { return p == pid })
		}
	}
	if len(all) > 0 {
		t.Errorf("%v are not found", all)
	}
	l.nothingElse(r, below(c.pid))
	for _, f := range r.Findings {
		holds(t, "the evidence", strings.Join(f.Evidence, "\n"), fmt.Sprint("pid ", c.pid), "its stdin is closed at the other end")
	}
}

// A client without close-on-exec is killed: its last server is stubborn, and holds the stdin of all
// the others open, so that these stay too though each of them would end.
func TestLabLeakyClient(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.need("python3")
	servers := l.ordinary("everything direct", "everything npx", "filesystem npx", "filesystem sh", "python")
	servers["the last, stubborn"] = l.stubborn("python")["python"]
	c := l.startClient(client{kind: "python", extra: []string{"--leaky"}}, servers)
	all := below(c.pid)
	l.kill(c.pid)
	time.Sleep(2 * time.Second) // who ends with its stdin does so at once
	for _, pid := range all {
		if _, ok := readProcess(pid); !ok {
			t.Fatalf("pid %d was to stay", pid)
		}
	}
	if len(servers) != 6 || len(all) < 10 { // 11, but where sh replaces itself with its last command
		t.Fatalf("%d servers, %d processes", len(servers), len(all))
	}
	r, _ := l.scan()
	lost(t, "held by a sibling", r, all)
	holder := c.tops["the last, stubborn"]
	for _, f := range r.Findings {
		words := "held only by pid"
		if slices.Contains(f.PIDs, holder) {
			words = "its stdin is closed at the other end"
		}
		holds(t, "the evidence", strings.Join(f.Evidence, "\n"), words)
	}
}

// A client that never waits for its servers keeps the dead ones as zombies.
func TestLabZombies(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.need("python3")
	servers := map[string]server{}
	for n := range 4 {
		servers[fmt.Sprint("python ", n)] = l.ordinary("python")["python"]
	}
	c := l.startClient(client{kind: "python"}, servers)
	var dead []int
	for n := range 3 {
		dead = append(dead, c.tops[fmt.Sprint("python ", n)])
	}
	l.kill(dead...)
	r, _ := l.scan()
	f := l.only(r, "zombie")
	same(t, "the zombies", f.PIDs, dead)
	same(t, "what is safe to end", f.Reap.Safe, nil)
	same(t, "what may be ended on request", f.Reap.OnRequest, nil)
	if f.ParentPID != c.pid || f.Severity != rules.Warning {
		t.Errorf("it is a %s with the parent %d, not a warning with %d", f.Severity, f.ParentPID, c.pid)
	}
	holds(t, "the title", f.Title, fmt.Sprint("pid ", c.pid))
}

// A client closes its connections as the SDK does, and connects again. SIGTERM reached the shell
// and npx only, so that the servers behind these stay: no longer below the client, which lives.
func TestLabReconnected(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	c := l.startClient(client{kind: "node"}, l.stubborn("direct", "sh", "npx"))
	before := below(c.pid)
	send(c.pid, l.mine()[c.pid], syscall.SIGPWR)
	l.eventually("the client is connected again", time.Minute, func() bool {
		now := below(c.pid)
		return len(now) == len(before) && !slices.ContainsFunc(now, func(pid int) bool { return slices.Contains(before, pid) })
	})
	var left []int
	for _, pid := range before {
		if p, ok := readProcess(pid); ok && p.state != 'Z' {
			left = append(left, pid)
		}
	}
	if len(left) == 0 {
		t.Fatal("nothing stayed")
	}
	r, _ := l.scan()
	lost(t, "left by a reconnection", r, left)
	l.nothingElse(r, left)
	used := 0
	for _, s := range r.Servers {
		if s.Owner.PID == c.pid && s.Verdict == rules.InUse {
			used++
		}
	}
	if used != len(c.tops) {
		t.Errorf("%d servers are in use, not %d", used, len(c.tops))
	}
}

// A client connects again and again and closes nothing.
func TestLabGenerations(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.need("python3")
	servers := l.ordinary("everything direct", "filesystem sh", "python")
	c := l.startClient(client{kind: "node", extra: []string{"--rounds", "3", "--gap", "21000"}}, servers)
	newest := slices.Concat(c.chain("everything direct"), c.chain("filesystem sh"), c.chain("python"))
	older := slices.DeleteFunc(below(c.pid), func(pid int) bool { return slices.Contains(newest, pid) })
	r, _ := l.scan()
	f := l.only(r, "stale-generation")
	same(t, "the subjects", f.PIDs, older)
	same(t, "what is safe to end", f.Reap.Safe, nil)
	same(t, "what may be ended on request", f.Reap.OnRequest, older)
	if f.ParentPID != c.pid || f.Severity != rules.Warning || f.Instances != 6 {
		t.Errorf("it is a %s with the parent %d and %d instances", f.Severity, f.ParentPID, f.Instances)
	}
	holds(t, "the title", f.Title, fmt.Sprint("pid ", c.pid), "3 generations")
	l.nothingElse(r, older)
}
