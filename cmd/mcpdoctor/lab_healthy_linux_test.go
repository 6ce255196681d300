package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
)

// Clients in three languages use servers that were started in three ways.
func TestLabHealthyClients(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.need("python3")
	servers := l.ordinary("everything npx", "everything direct", "filesystem sh")
	clients := map[string]*client{}
	for _, kind := range []string{"node", "python", "go"} {
		clients[kind] = l.startClient(client{kind: kind}, servers)
	}
	r, _ := l.scan()
	l.quiet("with healthy clients", r)
	for kind, c := range clients {
		for way := range servers {
			chain := c.chain(way)
			i := slices.IndexFunc(r.Servers, func(s rules.Server) bool { return s.RootPID == chain[0] })
			if i < 0 {
				t.Errorf("%s, %s: %v is not among the servers", kind, way, chain)
				continue
			}
			s := r.Servers[i]
			same(t, kind+", "+way+": the processes", s.PIDs, chain)
			if s.Verdict != rules.InUse || s.Owner.Kind != process.OwnerClient || s.Owner.PID != c.pid {
				t.Errorf("%s, %s: it is %s, owner %+v, not pid %d", kind, way, s.Verdict, s.Owner, c.pid)
			}
			holds(t, "the reason", s.Because, fmt.Sprint("pid ", c.pid))
		}
	}
	if len(r.Servers) != 9 || len(r.Clients) != 3 {
		t.Errorf("%d servers and %d clients, not 9 and 3", len(r.Servers), len(r.Clients))
	}
}

// A client that closes its connections as the SDK does allows a server 4 seconds to end. Meanwhile
// it has a dead stdin, and is no leak.
func TestLabRegularClose(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.need("python3")
	deaf := server{Command: "sh", Args: []string{"-c", "trap '' TERM; exec python3 -m lab_mcp_server --watch"}}
	c := l.startClient(client{kind: "node"}, map[string]server{"deaf": deaf})
	before := c.tops["deaf"]
	start := l.mine()[before]
	send(c.pid, l.mine()[c.pid], syscall.SIGPWR)
	time.Sleep(200 * time.Millisecond)
	r, _ := l.scan()
	l.quiet("during a regular close", r)
	if alive(before, start) {
		t.Errorf("pid %d was to be killed by its client while the scan looked twice", before)
	}
}

// A server whose parent has ended, as a script that starts one does, is used by who holds its stdin.
func TestLabHeld(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	script := filepath.Join(l.root, "servers", "mcp-echo.mjs")
	p := l.start([]string{"sh", "-c", "{ node " + script + " <&3 3<&- & } 3<&0"})
	<-p.ended
	l.eventually("the server runs", 20*time.Second, func() bool {
		mine := slices.Collect(maps.Keys(l.mine()))
		return len(mine) == 1 && strings.HasPrefix(command(mine[0]), "node ")
	})
	r, _ := l.scan()
	l.quiet("with a server that the test holds", r)
	if len(r.Servers) != 1 {
		t.Fatalf("%d servers, not one", len(r.Servers))
	}
	if s := r.Servers[0]; s.Verdict != rules.InUse || s.Owner.Kind == process.OwnerClient {
		t.Errorf("it is %s, owner %+v", s.Verdict, s.Owner)
	}
	holds(t, "the reason", r.Servers[0].Because, fmt.Sprint("pid ", os.Getpid()), "stdin")
	if _, err := p.stdin.Write([]byte(initialize + "\n")); err != nil {
		t.Error("nobody reads what is written to it:", err)
	}
}

// A daemon has pid 1 as its parent and nobody at its stdin, by birth.
func TestLabDaemon(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	port := l.freePort()
	l.run("sh", "-c", "PORT="+port+" setsid node "+l.bin("mcp-server-everything")+" streamableHttp </dev/null >/dev/null 2>&1 &")
	l.listening(port)
	r, _ := l.scan()
	l.quiet("with a daemon", r)
	if len(r.Servers) != 1 {
		t.Fatalf("%d servers, not one", len(r.Servers))
	}
	s := r.Servers[0]
	if s.Verdict == rules.Leaked || s.Verdict == rules.Suspect {
		t.Errorf("it is %s: %s", s.Verdict, s.Because)
	}
	if !slices.ContainsFunc(s.Listen, func(at string) bool { return strings.HasSuffix(at, ":"+port) }) {
		t.Errorf("it listens on port %s, and is said to on %v", port, s.Listen)
	}
}

// A session of tmux to which nobody is attached is somebody's all the same.
func TestLabTmux(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("LAB SKIPPED: tmux is not installed, so nothing was tried in it")
	}
	l := newLab(t)
	l.need("python3")
	tmux := []string{"tmux", "-L", "lab", "-f", "/dev/null"}
	in := func(args ...string) { l.run(append(slices.Clone(tmux), args...)...) }
	t.Cleanup(func() { in("kill-server") })
	in("new-session", "-d", "-x", "120", "-y", "40", "sleep 600")
	c := l.startClient(client{kind: "node", under: append(slices.Clone(tmux), "new-window")}, l.ordinary("everything direct", "filesystem sh", "python"))
	in("new-window", "node "+filepath.Join(l.root, "servers", "mcp-echo.mjs"))
	l.eventually("a server runs in a window of its own", time.Minute, func() bool {
		r, _ := l.scan()
		return len(r.Servers) == 4
	})
	r, _ := l.scan()
	l.quiet("in tmux", r)
	for _, s := range r.Servers {
		if s.Verdict != rules.InUse {
			t.Errorf("server %v is %s: %s", s.PIDs, s.Verdict, s.Because)
		}
	}
	if client, _ := readProcess(c.pid); client.ppid == os.Getpid() {
		t.Fatal("the client is not in tmux")
	}
}

// Programs that have a server's name in their arguments, and nobody at their stdin, are nobody.
func TestLabDecoys(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	log := filepath.Join(l.home, "mcp-server.log")
	if err := os.WriteFile(log, []byte("mcp-server-filesystem\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"tail", "-f", log},
		{"sh", "-c", "sleep 600; echo npx -y @modelcontextprotocol/server-filesystem"},
		{"node", "-e", "setInterval(() => {}, 60000) // @modelcontextprotocol/server-everything"},
	} {
		l.start(args).stdin.Close()
	}
	r, _ := l.scan()
	l.quiet("with decoys", r)
	if len(r.Servers)+len(r.Clients)+len(r.Gateways) > 0 {
		t.Errorf("somebody is recognised: %+v %+v %+v", r.Servers, r.Clients, r.Gateways)
	}
}
