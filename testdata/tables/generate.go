package tables

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"mcpdoctor/scan"
)

var taken = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

// generator makes process tables that no machine ever had, but that keep to what tables are like:
// trees of clients, gateways, launchers, servers and browsers, in all states of decay, among a
// crowd that has nothing to do with MCP.
type generator struct {
	*rand.Rand
	s    *scan.Snapshot
	next int
}

// Generate returns such a table; the same for the same seed.
func Generate(seed uint64, processes int) *scan.Snapshot {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 7)), s: &scan.Snapshot{Schema: scan.Schema, Kind: scan.Kind, Taken: taken}, next: 1}
	g.s.Host = scan.Host{OS: pick(g, "linux", "linux", "linux", "darwin", "windows", ""), MemoryTotalBytes: 16 << 30, Container: g.IntN(8) == 0}
	if g.IntN(2) == 0 {
		g.s.Host.Services = []scan.Service{}
	}
	if g.IntN(3) > 0 {
		uid := pick(g, 0, 501)
		g.s.Host.UID = &uid
	}
	g.add(0, pick(g, "/sbin/init", "/usr/lib/systemd/systemd --system", "/sbin/launchd", "supergateway --stdio x-mcp", "sh"), 500*time.Hour)
	for len(g.s.Processes) < processes {
		g.story()
	}
	return g.s
}

func pick[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

// story adds one small tree.
func (g *generator) story() {
	age := time.Duration(g.Int64N(int64(72 * time.Hour)))
	up := pick(g, 1, 1, 1, g.anybody())
	switch g.IntN(12) {
	case 0, 1, 2:
		for range g.IntN(12) {
			g.add(up, pick(g, "bash", "-zsh", "/usr/bin/vim mcp-server.md", "tail -f mcp.log", "node build.js", "/usr/sbin/sshd -D", "git clone https://x/y-mcp", "python3 -m http.server", "[kworker/0:1]", "postgres: writer"), age)
		}
	case 3, 4:
		shell := g.add(up, "-bash", age)
		client := g.add(shell, pick(g, "claude", "codex", "opencode", "python -m hermes_cli.main gateway run", "node my-agent.js", "claude -p hello"), age)
		if g.IntN(4) == 0 {
			for range g.IntN(4) {
				g.proc(g.add(client, "", age)).State = "Z"
			}
		}
		for range 1 + g.IntN(4) {
			g.set(client, time.Duration(g.Int64N(int64(age)+1)))
		}
	case 5:
		gateway := g.add(up, pick(g, "node /x/node_modules/.bin/supergateway --stdio 'node s.mjs' --outputTransport streamableHttp --port 8000",
			"supergateway --stdio 'node s.mjs' --outputTransport streamableHttp --stateful", "mcp-proxy --port 80 -- uvx mcp-server-time", "docker mcp gateway run"), age)
		for range g.IntN(9) {
			at := time.Duration(g.Int64N(int64(age) + 1))
			sh := g.add(gateway, "/bin/sh -c 'node s.mjs'", at)
			g.add(sh, "node s.mjs", at)
		}
	case 6:
		g.server(up, age)
	case 7:
		browser := g.add(up, "/opt/chrome/chrome --headless --enable-automation --remote-debugging-pipe --user-data-dir=/tmp/playwright_chromiumdev_profile-a", age)
		for range g.IntN(4) {
			g.add(browser, "/opt/chrome/chrome --type=renderer --user-data-dir=/tmp/playwright_chromiumdev_profile-a", age)
		}
	case 9: // what a service manager keeps, by itself or through another manager
		top := g.add(1, pick(g, "sh /opt/run.sh", "/usr/bin/python3 /usr/bin/supervisord", "PM2 v7.0.4: God Daemon (/home/dev/.pm2)", "mcp-proxy --port 80 -- uvx mcp-server-time"), age)
		if g.IntN(2) == 0 && g.s.Host.Services != nil {
			g.s.Host.Services = append(g.s.Host.Services, scan.Service{Manager: "launchd", Name: fmt.Sprintf("job%d", top), MainPID: top})
		}
		for range 1 + g.IntN(3) {
			g.server(top, age)
		}
	case 10: // a client without a person, or what started one
		if g.IntN(3) == 0 {
			up = g.add(up, "bun /home/dev/.claude/plugins/claude-mem/worker-service.cjs start", age)
		}
		client := g.add(up, pick(g, "claude -p --output-format stream-json", "codex exec", "opencode run hello"), age)
		for range g.IntN(3) {
			g.set(pick(g, client, g.add(client, "sh -c ./start.sh", age)), age)
		}
	case 11: // several below one launcher
		top := g.add(up, "sh -c ./all.sh", age)
		for range 1 + g.IntN(3) {
			g.server(top, age)
		}
	case 8: // what no kernel says, but a torn table or a text may
		p := g.add(g.anybody(), pick(g, "npx", "npm exec", "", "\x1b[31m", "claude mcp serve"), age)
		g.proc(p).PPID = pick(g, 0, -1, p, 99999999, g.anybody(), g.anybody())
		if g.IntN(3) == 0 {
			g.proc(p).State = "Z"
		}
		if g.IntN(3) == 0 {
			g.proc(p).Start, g.proc(p).Started = 0, time.Time{}
		}
	}
}

func (g *generator) set(client int, age time.Duration) {
	for _, line := range []string{"npm exec @playwright/mcp", "github-mcp-server stdio", "python -m mcp_server_git", "node /home/dev/mcp/own/index.js"} {
		if g.IntN(4) > 0 {
			top := g.add(client, line, age)
			if line[:3] == "npm" && g.IntN(4) > 0 {
				g.add(top, "node /home/dev/.npm/_npx/1/node_modules/.bin/playwright-mcp", age)
			}
		}
	}
}

func (g *generator) server(up int, age time.Duration) {
	top := g.add(up, pick(g, "npm exec @upstash/context7-mcp", "uv tool uvx mcp-server-fetch", "sh -c 'mcp-server-x'", "node /a/node_modules/.bin/obsidian-mcp-server", "context7-mcp --transport http --port 80"), age)
	if g.IntN(2) == 0 {
		g.add(top, pick(g, "node /a/node_modules/.bin/context7-mcp", "python /a/bin/mcp-server-fetch", "git gc", "claude"), age)
	}
	if g.IntN(6) == 0 && g.s.Host.Services != nil {
		g.s.Host.Services = append(g.s.Host.Services, scan.Service{Manager: "systemd", Name: fmt.Sprintf("s%d.service", top), MainPID: top})
	}
}

func (g *generator) anybody() int {
	if len(g.s.Processes) == 0 {
		return 1
	}
	return g.s.Processes[g.IntN(len(g.s.Processes))].PID
}

func (g *generator) proc(pid int) *scan.Process {
	for i := len(g.s.Processes) - 1; ; i-- {
		if g.s.Processes[i].PID == pid {
			return &g.s.Processes[i]
		}
	}
}

func (g *generator) add(up int, line string, age time.Duration) int {
	pid := g.next
	g.next += 1 + g.IntN(3)
	rss, uid := int64(g.IntN(400)<<20), pick(g, 501, 501, 501, 0)
	p := scan.Process{
		PID: pid, PPID: up, Start: int64(1e9 - age/(10*time.Millisecond)), Started: taken.Add(-age), Name: "x", State: "S", RSSBytes: &rss, UID: &uid,
		TTY: pick(g, "", "-", "pts/1"),
	}
	switch {
	case g.s.Host.OS == "windows":
		p.Cmdline = line
	case line != "":
		p.Args = words(line)
	}
	switch g.IntN(6) {
	case 0:
		p.Stdin = &scan.Stdin{Type: scan.StdinPipe, Peer: scan.PeerClosed}
	case 1:
		p.Stdin = &scan.Stdin{Type: scan.StdinSocket, Peer: scan.PeerOpen, Holders: []int{g.anybody()}}
	case 2:
		p.Stdin = &scan.Stdin{Type: scan.StdinNull}
	case 3:
		p.Unreadable = []string{pick(g, "stdin", "service")}
	}
	if g.IntN(10) == 0 {
		p.Listen = []string{"tcp:127.0.0.1:4001"}
	}
	g.s.Processes = append(g.s.Processes, p)
	return pid
}

// words splits a line as a shell would that knows nothing but spaces and single quotes.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

// Later is the table some seconds on: some have ended, some have a client again, a PID belongs to
// another, something is a service, something new has come.
func Later(r *rand.Rand, s *scan.Snapshot, self int) *scan.Snapshot {
	out := *s
	out.Taken = s.Taken.Add(2 * time.Second)
	out.Processes = nil
	out.Host.Services = slices.Clone(s.Host.Services)
	for _, p := range s.Processes {
		if p.PID != self && p.PID > 1 {
			switch r.IntN(40) {
			case 0:
				continue
			case 1:
				p.Start++
			case 2:
				p.Stdin = &scan.Stdin{Type: scan.StdinPipe, Peer: scan.PeerOpen, Holders: []int{s.Processes[r.IntN(len(s.Processes))].PID}}
			case 3:
				p.Stdin = &scan.Stdin{Type: scan.StdinPipe, Peer: scan.PeerClosed}
			case 4:
				out.Host.Services = append(out.Host.Services, scan.Service{Manager: "systemd", Name: "new.service", MainPID: p.PID})
			case 5:
				p.State, p.Args, p.Cmdline = "Z", nil, ""
			case 6:
				p.PPID = s.Processes[r.IntN(len(s.Processes))].PID
			}
		}
		out.Processes = append(out.Processes, p)
	}
	g := &generator{Rand: r, s: &out, next: s.Processes[len(s.Processes)-1].PID + 1}
	g.story()
	return &out
}
