package rules

import (
	"slices"
	"strings"
	"testing"
	"time"

	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/testdata/tables"
)

// What the other end of stdin means, with all that surrounds it: the table of DESIGN's recognition
// of owners, row by row.
func TestStdinDecides(t *testing.T) {
	const server = "node /srv/node_modules/.bin/obsidian-mcp-server"
	for _, c := range []struct {
		name       string
		build      func(h *tables.Machine)
		safe       []int
		onRequest  []int
		confidence process.Confidence
		evidence   string
	}{
		{
			name:  "adopted, nobody at stdin",
			build: func(h *tables.Machine) { h.Run(200, 1, time.Hour, server).Stdin = tables.Pipe(scan.PeerClosed) },
			safe:  []int{200}, confidence: process.Certain, evidence: "its stdin is closed at the other end",
		},
		{
			name: "a chain of launchers, all on one dead stdin",
			build: func(h *tables.Machine) {
				h.Run(200, 1, time.Hour, "npm exec obsidian-mcp-server").Stdin = tables.Pipe(scan.PeerClosed)
				h.Run(201, 200, time.Hour, "sh -c obsidian-mcp-server").Stdin = tables.Pipe(scan.PeerClosed)
				h.Run(202, 201, time.Hour, server).Stdin = tables.Pipe(scan.PeerClosed)
			},
			safe: []int{200, 201, 202}, confidence: process.Certain, evidence: "its launcher npx was adopted by systemd (pid 1)",
		},
		{
			name:  "adopted, but somebody holds its stdin",
			build: func(h *tables.Machine) { h.Run(200, 1, time.Hour, server).Stdin = tables.Pipe(scan.PeerOpen, 100) },
		},
		{
			name:  "adopted, stdin open, holder not looked for",
			build: func(h *tables.Machine) { h.Run(200, 1, time.Hour, server).Stdin = tables.Pipe(scan.PeerOpen) },
		},
		{
			name:  "a daemon on /dev/null",
			build: func(h *tables.Machine) { h.Run(200, 1, time.Hour, server).Stdin = &scan.Stdin{Type: scan.StdinNull} },
		},
		{
			name:      "stdin may not be read: unknown, never dead",
			build:     func(h *tables.Machine) { h.Run(200, 1, time.Hour, server).Unreadable = []string{"stdin"} },
			onRequest: []int{200}, confidence: process.Possible, evidence: "is unreadable",
		},
		{
			name:      "the look-up could not tell",
			build:     func(h *tables.Machine) { h.Run(200, 1, time.Hour, server).Stdin = tables.Pipe(scan.PeerUnknown) },
			onRequest: []int{200}, confidence: process.Possible, evidence: "is unreadable",
		},
		{
			name: "dead stdin, but it listens",
			build: func(h *tables.Machine) {
				p := h.Run(200, 1, time.Hour, server)
				p.Stdin, p.Listen = tables.Pipe(scan.PeerClosed), []string{"tcp:127.0.0.1:4001"}
			},
			onRequest: []int{200}, confidence: process.Likely, evidence: "it listens on tcp:127.0.0.1:4001",
		},
		{
			name: "dead stdin, and somebody is connected",
			build: func(h *tables.Machine) {
				p := h.Run(200, 1, time.Hour, server)
				one := 1
				p.Stdin, p.Listen, p.InboundConnections = tables.Pipe(scan.PeerClosed), []string{"tcp:127.0.0.1:4001"}, &one
			},
		},
		{
			name: "the wire on another descriptor is dead",
			build: func(h *tables.Machine) {
				p := h.Run(200, 1, time.Hour, server)
				p.Stdin = tables.Pipe(scan.PeerClosed)
				p.Stdin.FD = 3
			},
			onRequest: []int{200}, confidence: process.Likely, evidence: "descriptor 0",
		},
		{
			name: "the wire on another descriptor is dead, under a living client",
			build: func(h *tables.Machine) {
				h.Run(150, 100, time.Hour, "claude").TTY = "pts/0"
				p := h.Run(200, 150, time.Hour, server)
				p.Stdin = tables.Pipe(scan.PeerClosed)
				p.Stdin.FD = 3
			},
		},
		{
			name: "dead stdin under a living client: looked at once",
			build: func(h *tables.Machine) {
				h.Run(150, 100, time.Hour, "claude").TTY = "pts/0"
				h.Run(200, 150, time.Hour, server).Stdin = tables.Pipe(scan.PeerClosed)
			},
			onRequest: []int{200}, confidence: process.Likely, evidence: "Claude Code (pid 150) does not know",
		},
		{
			name: "held by an orphan that inherited it",
			build: func(h *tables.Machine) {
				h.Run(200, 1, time.Hour, server).Stdin = tables.Pipe(scan.PeerOpen, 201)
				h.Run(201, 1, time.Hour, "python3 -m mcp_server_git").Stdin = tables.Pipe(scan.PeerClosed)
			},
			safe: []int{200, 201}, confidence: process.Certain, evidence: "",
		},
		{
			name: "held by an orphan and by somebody else",
			build: func(h *tables.Machine) {
				h.Run(200, 1, time.Hour, server).Stdin = tables.Pipe(scan.PeerOpen, 201, 100)
				h.Run(201, 1, time.Hour, "python3 -m mcp_server_git").Stdin = tables.Pipe(scan.PeerClosed)
			},
			safe: []int{201}, confidence: process.Certain,
		},
		{
			name:  "held by itself only: nothing is known",
			build: func(h *tables.Machine) { h.Run(200, 1, time.Hour, server).Stdin = tables.Pipe(scan.PeerOpen, 200) },
		},
		{
			name: "adopted by a subreaper that has no known name",
			build: func(h *tables.Machine) {
				h.Run(150, 100, 2*time.Hour, "python3 /home/dev/keeper.py")
				h.Run(200, 150, time.Hour, server).Stdin = tables.Pipe(scan.PeerClosed)
			},
			onRequest: []int{200}, confidence: process.Likely, evidence: "is closed at the other end",
		},
		{
			name: "a one-shot in the background, whose answer goes to a file",
			build: func(h *tables.Machine) {
				p := h.Run(200, 1, time.Hour, server)
				p.Stdin, p.Stdout = tables.Pipe(scan.PeerClosed), &scan.Stdin{Type: scan.StdinFile}
			},
			onRequest: []int{200}, confidence: process.Likely, evidence: "asked once",
		},
		{
			name: "adopted and without a stdin, but somebody reads its answers",
			build: func(h *tables.Machine) {
				p := h.Run(200, 1, time.Hour, server)
				p.Stdin, p.Stdout = tables.Pipe(scan.PeerClosed), &scan.Stdin{Type: scan.StdinSocket, Peer: scan.PeerOpen}
			},
			onRequest: []int{200}, confidence: process.Likely, evidence: "a process that cannot be seen still reads",
		},
		{
			name: "adopted and without a stdin, but a living process reads its answers from a pipe",
			build: func(h *tables.Machine) {
				p := h.Run(200, 1, time.Hour, server)
				p.Stdin, p.Stdout = tables.Pipe(scan.PeerClosed), &scan.Stdin{Type: scan.StdinPipe, Holders: []int{100}}
			},
			onRequest: []int{200}, confidence: process.Likely, evidence: "pid 100 still reads",
		},
		{
			name: "adopted and without a stdin, and only orphans could read its answers",
			build: func(h *tables.Machine) {
				p := h.Run(200, 1, time.Hour, server)
				p.Stdin, p.Stdout = tables.Pipe(scan.PeerClosed), &scan.Stdin{Type: scan.StdinPipe, Holders: []int{200, 201}}
				h.Run(201, 1, time.Hour, "python3 -m mcp_server_git").Stdin = tables.Pipe(scan.PeerClosed)
			},
			safe: []int{200, 201}, confidence: process.Certain,
		},
		{
			name: "left by a client that has started the same server again, and still reads the old one's output",
			build: func(h *tables.Machine) {
				h.Run(150, 100, 2*time.Hour, "node my-agent.js")
				p := h.Run(200, 1, time.Hour, server)
				p.Stdin, p.Stdout = &scan.Stdin{Type: scan.StdinSocket, Peer: scan.PeerClosed}, &scan.Stdin{Type: scan.StdinSocket, Peer: scan.PeerOpen, Holders: []int{150}}
				h.Run(201, 150, time.Minute, server).Stdin = tables.Pipe(scan.PeerOpen, 150)
			},
			safe: []int{200}, confidence: process.Certain,
		},
		{
			name: "asked once by a command that a client runs in the background, whose shell gives a pipe",
			build: func(h *tables.Machine) {
				h.Run(150, 100, 2*time.Hour, "claude").TTY = "pts/0"
				p := h.Run(200, 1, time.Hour, server)
				p.Stdin, p.Stdout = tables.Pipe(scan.PeerClosed), &scan.Stdin{Type: scan.StdinSocket, Peer: scan.PeerOpen, Holders: []int{150}}
			},
			onRequest: []int{200}, confidence: process.Likely,
		},
		{
			name: "below a launcher that was left behind, beside another server that a client holds",
			build: func(h *tables.Machine) {
				h.Run(150, 100, 2*time.Hour, "claude").TTY = "pts/0"
				h.Run(200, 1, time.Hour, "sh -c obsidian-mcp-server & exec context7-mcp").Stdin = tables.Pipe(scan.PeerClosed)
				h.Run(201, 200, time.Hour, server).Stdin = tables.Pipe(scan.PeerClosed)
				h.Run(202, 200, time.Hour, server).Stdin = tables.Pipe(scan.PeerOpen, 150)
			},
		},
		{
			name: "asked once for what it does, with its answer going nowhere",
			build: func(h *tables.Machine) {
				p := h.Run(200, 1, time.Hour, server)
				p.Stdin, p.Stdout = tables.Pipe(scan.PeerClosed), &scan.Stdin{Type: scan.StdinNull}
			},
			onRequest: []int{200}, confidence: process.Likely,
		},
		{
			name: "left by a session of a gateway, which lives and has forgotten its output",
			build: func(h *tables.Machine) {
				h.Run(150, 100, 2*time.Hour, "node /x/node_modules/.bin/supergateway --stdio foo --outputTransport streamableHttp --stateful")
				p := h.Run(200, 1, time.Hour, server)
				p.Stdin, p.Stdout = tables.Pipe(scan.PeerClosed), &scan.Stdin{Type: scan.StdinSocket, Peer: scan.PeerOpen, Holders: []int{150}}
			},
			safe: []int{200}, confidence: process.Certain,
		},
		{
			name: "adopted, with requests left to read",
			build: func(h *tables.Machine) {
				p := h.Run(200, 1, time.Hour, server)
				p.Stdin = tables.Pipe(scan.PeerClosed)
				p.Stdin.Unread = true
			},
			onRequest: []int{200}, confidence: process.Likely, evidence: "unread requests",
		},
		{
			name: "a one-shot in a script",
			build: func(h *tables.Machine) {
				h.Run(150, 100, time.Minute, "bash ask.sh")
				h.Run(200, 150, time.Minute, server).Stdin = tables.Pipe(scan.PeerClosed)
			},
			onRequest: []int{200}, confidence: process.Possible, evidence: "a shell started it",
		},
		{
			name: "kept by a service manager",
			build: func(h *tables.Machine) {
				h.Run(200, 1, time.Hour, server).Stdin = tables.Pipe(scan.PeerClosed)
				h.Host.Services = append(h.Host.Services, scan.Service{Manager: "systemd", Name: "x.service", MainPID: 200})
			},
		},
		{
			name: "kept by a process manager that is its parent",
			build: func(h *tables.Machine) {
				h.Run(150, 1, time.Hour, "/usr/bin/python3 /usr/bin/supervisord")
				h.Run(200, 150, time.Hour, server).Stdin = tables.Pipe(scan.PeerClosed)
			},
		},
		{
			name: "an orphan that inherited a service's control group is still an orphan",
			build: func(h *tables.Machine) {
				p := h.Run(200, 1, time.Hour, server)
				p.Stdin, p.Cgroup = tables.Pipe(scan.PeerClosed), "/system.slice/agent.service"
			},
			safe: []int{200}, confidence: process.Certain,
		},
		{
			name:      "in a service's control group, stdin not looked at",
			build:     func(h *tables.Machine) { h.Run(200, 1, time.Hour, server).Cgroup = "/system.slice/agent.service" },
			onRequest: []int{200}, confidence: process.Possible, evidence: "agent.service",
		},
		{
			name: "no manager could be asked, stdin not looked at",
			build: func(h *tables.Machine) {
				h.Run(200, 1, time.Hour, server)
				h.Host.Services = nil
			},
			onRequest: []int{200}, confidence: process.Possible, evidence: "none could be asked",
		},
		{
			name:      "so young that it may be ending",
			build:     func(h *tables.Machine) { h.Run(200, 1, 3*time.Second, server).Stdin = tables.Pipe(scan.PeerClosed) },
			onRequest: []int{200}, confidence: process.Certain, evidence: "may be shutting down",
		},
		{
			name:  "its parent cannot be seen: hidepid is no death",
			build: func(h *tables.Machine) { h.Run(200, 77777, time.Hour, server) },
		},
		{
			name: "a gateway that is adopted, has lost its stdin and listens",
			build: func(h *tables.Machine) {
				p := h.Run(200, 1, time.Hour, "node /x/node_modules/.bin/supergateway --stdio foo --port 8000")
				p.Stdin, p.Listen = tables.Pipe(scan.PeerClosed), []string{"tcp:*:8000"}
				h.Run(201, 200, time.Hour, server).Stdin = tables.Pipe(scan.PeerOpen, 200)
			},
			onRequest: []int{200, 201}, confidence: process.Likely, evidence: "it listens on tcp:*:8000",
		},
		{
			name: "PM2's daemon has a dead stdin for its whole life",
			build: func(h *tables.Machine) {
				h.Run(200, 1, time.Hour, "PM2 v7.0.4: God Daemon (/home/dev/.pm2)").Stdin = tables.Pipe(scan.PeerClosed)
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := tables.NewMachine()
			c.build(h)
			r := Judge(process.Recognise(&h.Snapshot), Options{})
			var safe, onRequest []int
			for _, f := range r.Findings {
				safe, onRequest = append(safe, f.Reap.Safe...), append(onRequest, f.Reap.OnRequest...)
				if f.Rule != "orphan" || f.Confidence != c.confidence {
					t.Errorf("%s is %s, want %s: %s %q", f.Rule, f.Confidence, c.confidence, f.Title, f.Evidence)
				}
				if c.evidence != "" && !slices.ContainsFunc(f.Evidence, func(e string) bool { return strings.Contains(e, c.evidence) }) {
					t.Errorf("no evidence says %q: %q", c.evidence, f.Evidence)
				}
			}
			slices.Sort(safe)
			slices.Sort(onRequest)
			if !slices.Equal(safe, c.safe) || !slices.Equal(onRequest, c.onRequest) {
				t.Errorf("safe %v, on request %v; want %v and %v", safe, onRequest, c.safe, c.onRequest)
			}
		})
	}
}

// A second look turns the doubt about a living client's server into certainty.
func TestSettledServerUnderLivingClient(t *testing.T) {
	h := tables.NewMachine()
	h.Run(150, 100, time.Hour, "claude").TTY = "pts/0"
	p := h.Run(200, 150, time.Hour, "github-mcp-server stdio")
	p.Stdin = tables.Pipe(scan.PeerClosed)
	seen := process.Recognise(&h.Snapshot)
	d := OpenQuestions(seen)
	if want := []scan.ID{p.ID()}; !slices.Equal(d.Settling, want) {
		t.Fatalf("settling are %v, want %v", d.Settling, want)
	}
	r := Judge(seen, Options{Settled: map[scan.ID]bool{p.ID(): true}})
	if len(r.Findings) != 1 || r.Findings[0].Confidence != process.Certain || !slices.Equal(r.Findings[0].Reap.Safe, []int{200}) {
		t.Errorf("findings are %+v", r.Findings)
	}
}

// A server may ask another one once, and wait for its answer: it is known, but no client that talks to
// its servers until it ends them.
func TestSettledServerBelowAServer(t *testing.T) {
	for _, out := range []*scan.Stdin{
		{Type: scan.StdinPipe}, {Type: scan.StdinPipe, Peer: scan.PeerUnknown}, {Type: scan.StdinPipe, Peer: scan.PeerOpen},
		{Type: scan.StdinPipe, Peer: scan.PeerOpen, Holders: []int{}}, {Type: scan.StdinPipe, Peer: scan.PeerOpen, Holders: []int{150}},
	} {
		h := tables.NewMachine()
		h.Run(150, 100, 2*time.Hour, "python3 -m shell_mcp_server")
		p := h.Run(200, 150, time.Hour, "github-mcp-server stdio")
		p.Stdin, p.Stdout = tables.Pipe(scan.PeerClosed), out
		for _, f := range Judge(process.Recognise(&h.Snapshot), Options{Settled: map[scan.ID]bool{p.ID(): true}}).Findings {
			if len(f.Reap.Safe) > 0 {
				t.Errorf("stdout %+v: %s", out, f.Title)
			}
		}
	}
}

// A program that nobody knows may have asked once and wait for the answer.
func TestSettledServerUnderStranger(t *testing.T) {
	h := tables.NewMachine()
	h.Run(150, 100, time.Hour, "python3 ask.py")
	p := h.Run(200, 150, time.Hour, "github-mcp-server stdio")
	p.Stdin = tables.Pipe(scan.PeerClosed)
	f := Judge(process.Recognise(&h.Snapshot), Options{Settled: map[scan.ID]bool{p.ID(): true}}).Findings
	if len(f) != 1 || f[0].Confidence != process.Likely || len(f[0].Reap.Safe) != 0 || !slices.Equal(f[0].Reap.OnRequest, []int{200}) {
		t.Errorf("findings are %+v", f)
	}
	// When nobody reads its answers, its client is gone, and the parent has adopted it.
	for _, out := range []*scan.Stdin{{Type: scan.StdinSocket, Peer: scan.PeerClosed}, {Type: scan.StdinPipe, Peer: scan.PeerClosed}, {Type: scan.StdinPipe, Peer: scan.PeerOpen, Holders: []int{200}}} {
		p.Stdout = out
		f = Judge(process.Recognise(&h.Snapshot), Options{Settled: map[scan.ID]bool{p.ID(): true}}).Findings
		if len(f) != 1 || f[0].Confidence != process.Certain || !slices.Equal(f[0].Reap.Safe, []int{200}) {
			t.Errorf("stdout %+v: findings are %+v", out, f)
		}
	}
	p.Stdout = &scan.Stdin{Type: scan.StdinPipe, Holders: []int{150}}
	f = Judge(process.Recognise(&h.Snapshot), Options{Settled: map[scan.ID]bool{p.ID(): true}}).Findings
	if len(f) != 1 || f[0].Confidence != process.Likely || len(f[0].Reap.Safe) > 0 {
		t.Errorf("findings are %+v", f)
	}
}

// What a server has started in the course of its work may need it, whoever asked for it.
func TestJobOfAnOrphanKeepsIt(t *testing.T) {
	h := tables.NewMachine()
	h.Run(200, 1, time.Hour, "node /x/node_modules/.bin/desktop-commander").Stdin = tables.Pipe(scan.PeerClosed)
	h.Run(201, 200, 10*time.Minute, "npm run dev")
	f := Judge(process.Recognise(&h.Snapshot), Options{}).Findings
	if len(f) != 1 || len(f[0].Reap.Safe) != 0 || !slices.Equal(f[0].Reap.OnRequest, []int{200, 201}) {
		t.Errorf("findings are %+v", f)
	}
}

// What a server started itself and nobody knows is not ended unasked with it.
func TestStrangersBelowAnOrphanAreKept(t *testing.T) {
	h := tables.NewMachine()
	h.Run(200, 1, time.Hour, "node /x/node_modules/.bin/desktop-commander").Stdin = tables.Pipe(scan.PeerClosed)
	h.Run(201, 200, time.Hour, "npm run dev")
	f := Judge(process.Recognise(&h.Snapshot), Options{}).Findings
	if len(f) != 1 || !slices.Equal(f[0].Reap.Safe, []int{200}) || !slices.Equal(f[0].Reap.OnRequest, []int{201}) {
		t.Errorf("findings are %+v", f)
	}
}
