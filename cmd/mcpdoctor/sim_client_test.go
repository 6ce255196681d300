package main

import (
	"errors"
	"slices"
	"time"

	"mcpdoctor/scan"
)

var errNotPermitted = errors.New("operation not permitted")

// story starts one story now; most of it happens later.
func (s *simulation) story() {
	switch n := s.IntN(100); {
	case n < 40:
		s.storyClient()
	case n < 50:
		s.storyOneShot()
	case n < 60:
		s.storyDaemon()
	case n < 72:
		s.storyGateway()
	case n < 78:
		s.storyBrowser()
	case n < 82:
		s.storyHeadless()
	case n < 86:
		s.storyDeep()
	case n < 89:
		s.storyTools()
	case n < 91:
		s.storyContainer()
	case n < 94:
		s.storyReuse()
	case n < 96:
		s.storyClocks()
	default:
		s.storyBystanders()
	}
}

// runningClient is a client with its servers.
type runningClient struct {
	client  *task
	style   clientStyle
	servers []*unit
	shell   *task // nil if it has no terminal
}

// storyClient starts a client, which may do some things and exit.
func (s *simulation) storyClient() {
	o := s.startClient(s.account())
	s.startServers(o)
	for range s.IntN(3) {
		s.at(s.moment(s.present), func() { s.clientEvent(o) })
	}
	if s.chance(65) {
		s.at(s.moment(s.present), func() { s.exitClient(o) })
	}
}

func (s *simulation) startClient(a *account) *runningClient {
	o := &runningClient{style: clientStyle{
		kind:       oneOf(s, scan.StdinPipe, scan.StdinSocket),
		ownSession: s.chance(30), leaksDescriptors: s.chance(12), movesStdin: s.chance(12),
	}}
	sh := a.shells[s.IntN(len(a.shells))]
	if sh.exited {
		sh = s.logInShell(a, "/user.slice/")
		a.shells = append(a.shells, sh)
	}
	switch s.IntN(10) {
	case 0, 1, 2, 3:
		o.client, o.shell = s.start(sh, oneOf(s, "claude", "claude --resume", "opencode", "codex")), sh
	case 4, 5:
		o.client, o.shell = s.start(sh, oneOf(s, "python my_agent.py", "node agent.js", "/opt/agents/robot --watch")), sh
	case 6:
		o.client = s.start(a.manager, oneOf(s, "/opt/Cursor/cursor", "/usr/share/code/code", "/opt/claude-desktop/claude-desktop"))
		o.client.setsid()
		o.client.uid = a.uid
	case 7: // not interactive
		o.client, o.shell = s.start(sh, "claude -p 'tidy up' --output-format stream-json"), sh
		o.client.tty = "-"
	case 8:
		o.client = s.start(a.manager, "/opt/hermes/venv/bin/python -m hermes_cli.main gateway run")
		o.client.setsid()
		o.client.uid = a.uid
	default: // an unknown program that adopts what its servers leave behind
		o.client = s.start(a.manager, "/opt/agents/keeper --all")
		o.client.setsid()
		o.client.uid, o.client.subreaper = a.uid, true
	}
	o.client.leavesZombies = s.chance(8)
	o.client.purposes = []*purpose{{what: "a person uses it"}}
	o.client.termDelay = 0
	return o
}

// startServers starts a set of servers.
func (s *simulation) startServers(o *runningClient) {
	o.servers = nil
	for range 1 + s.IntN(4) {
		s.startServer(o)
	}
}

// startServer starts one more server.
func (s *simulation) startServer(o *runningClient) {
	session := &purpose{what: "its client talks to it", neededBy: o.client}
	o.servers = append(o.servers, s.server(o.client, o.style, o.servers, session))
}

// clientEvent is one thing that a client does.
func (s *simulation) clientEvent(o *runningClient) {
	if o.client.exited {
		return
	}
	servers := o.servers
	switch s.IntN(10) {
	case 0: // it restarts all servers
		s.closeServers(o.client, servers, true)
		s.startServers(o)
	case 1: // it starts all again and forgets the old ones
		s.startServers(o)
		for _, u := range servers {
			u.session.over = u.session.neededBy == o.client
		}
	case 2: // another conversation, with servers of its own
		s.startServers(o)
	case 3: // it closes stdin and does not check
		s.closeServers(o.client, servers, false)
	case 4: // one server crashes and is restarted
		if u := servers[s.IntN(len(servers))]; !u.main.exited {
			s.exit(u.main, "crashed")
			s.startServer(o)
		}
	case 5: // only a server's launcher is killed
		s.exit(servers[s.IntN(len(servers))].tasks[0], "killed by hand")
	case 6: // a worker of the client inherits all descriptors
		w := s.start(o.client, "python worker.py")
		w.purposes = []*purpose{{what: "it works for a client", over: s.chance(40)}}
		for _, u := range servers {
			if !w.purposes[0].over && !u.session.over {
				u.session.neededBy = w
			}
			if in, out := u.tasks[0].stdin.pipe, u.tasks[0].stdout.pipe; in != nil && out != nil {
				w.addWriter(in)
				w.addReader(out)
			}
		}
	case 7: // it is stopped, and continued later
		o.client.state = "T"
		s.at(s.moment(s.present), func() {
			if !o.client.exited {
				o.client.state = "S"
			}
		})
	case 8: // one end is passed to another process (SCM_RIGHTS)
		if w := servers[0].tasks[0].stdin.pipe; w != nil && w.hasWriter() {
			w.inTransit = true
			s.after(s.between(time.Millisecond, 3*time.Second), func() {
				if w.inTransit = false; len(w.writers) == 0 {
					w.hangUp(s.machine)
				}
			})
		}
	case 9: // it runs a command that asks a server once
		s.oneShot(o.client)
	}
}

// closeServers does what an SDK does: it closes stdin, waits 2 s, sends SIGTERM to the process that it started,
// waits again, and kills it.
func (s *simulation) closeServers(client *task, servers []*unit, kill bool) {
	for _, u := range servers {
		top := u.tasks[0]
		if w := top.stdin.pipe; w != nil {
			client.closePipe(w)
		}
		if out := top.stdout.pipe; out != nil && s.chance(50) {
			client.closePipe(out)
		}
		// It is in use until its client would signal it.
		s.after(2*time.Second, func() { u.session.over = u.session.over || u.session.neededBy == client })
		if kill {
			s.after(2*time.Second, func() {
				if !client.exited {
					s.deliver(top, "SIGTERM")
				}
			})
			s.after(4*time.Second, func() {
				if !client.exited {
					s.deliver(top, "SIGKILL")
				}
			})
		}
	}
}

// exitClient ends a client in one of several ways.
func (s *simulation) exitClient(o *runningClient) {
	if o.client.exited {
		return
	}
	switch s.IntN(6) {
	case 0, 1, 2:
		s.exit(o.client, oneOf(s, "killed", "crashed"))
	case 3:
		s.closeServers(o.client, o.servers, true)
		s.after(4100*time.Millisecond, func() { s.exit(o.client, "quit") })
	case 4: // it does not wait for its servers
		s.closeServers(o.client, o.servers, false)
		s.after(50*time.Millisecond, func() { s.exit(o.client, "quit") })
	case 5: // its terminal is closed: its session gets SIGHUP
		if o.shell == nil {
			return
		}
		for _, p := range s.sorted() {
			if p.sid == o.shell.sid && p != o.shell {
				s.exit(p, "its terminal was closed")
			}
		}
		s.exit(o.shell, "its terminal was closed")
	}
}

// oneShot asks a server once, like `printf ... | server`, and sends the answer somewhere. The server is in use until
// it has answered.
func (s *simulation) oneShot(asker *task) {
	form := forms[s.IntN(len(forms))]
	up, line := asker, form[len(form)-1]
	asked := &purpose{what: "a script waits for the answer"}
	if line[0] == '=' || len(form) > 1 {
		line, form = "mcp-server-fetch", []string{"mcp-server-fetch"}
	}
	switch s.IntN(4) {
	case 0:
	case 1, 2:
		up = s.start(asker, oneOf(s, "sh -c 'printf x | "+line+"'", "/bin/bash -lc 'cat requests.json | "+line+"'", "bash /home/dev/ask.sh"))
	case 3:
		up = s.start(asker, "python3 ask.py")
	}
	if up != asker {
		up.tty, up.exitsWithChildren = "-", true
		asked.neededBy = asker
		up.purposes = []*purpose{asked}
	}
	work := &purpose{what: "it works on an answer", neededBy: up}
	u := s.serverOf(up, clientStyle{kind: oneOf(s, scan.StdinPipe, scan.StdinPipe, scan.StdinSocket)}, nil, work, form)
	u.kind = other
	in, out := u.tasks[0].stdin.pipe, u.tasks[0].stdout.pipe
	if shell := up != asker && up.args[0] != "python3"; shell && len(asker.purposes) > 0 {
		asker.addReader(out) // a client reads the output of its commands
	} else if shell {
		for _, p := range u.tasks {
			p.setStdout(asker.stdout)
		}
	}
	in.unread = s.chance(10)
	long := s.between(time.Second, 40*time.Minute)
	switch s.IntN(5) {
	case 0: // into a file
		work.neededBy = nil
		for _, p := range u.tasks {
			p.setStdout(descriptor{kind: scan.StdinFile})
		}
	case 1: // to another program
		r := s.start(up, oneOf(s, "cat", "jq .result", "tee answer.json"))
		r.setStdin(descriptor{kind: out.kind, pipe: out})
		r.eofDelay = 0
		r.purposes = []*purpose{work}
		up.closePipe(out)
		work.neededBy = nil
	case 2: // to /dev/null: only its effect is wanted
		work.neededBy = nil
		for _, p := range u.tasks {
			p.setStdout(descriptor{kind: scan.StdinNull})
		}
	}
	up.closePipe(in)
	for _, p := range u.tasks { // it finishes its answer whatever happens to stdin
		p.eofDelay = -1
	}
	s.after(long, func() {
		work.over, asked.over = true, true
		if s.chance(80) {
			s.exit(u.main, "it has answered")
		}
	})
	if up != asker && s.chance(40) { // it is left running in the background
		s.at(s.moment(s.present), func() { s.exit(up, "left it in the background") })
	}
}

func (s *simulation) storyOneShot() {
	a := s.account()
	asker := a.shells[0]
	if s.chance(30) && !s.host.Container {
		if i := slices.IndexFunc(s.init.children, func(p *task) bool { return p.args[0] == "/usr/sbin/cron" }); i >= 0 {
			asker = s.start(s.init.children[i], "/usr/sbin/CRON -f")
			asker = s.start(asker, "/bin/sh -c /home/dev/bin/heartbeat.sh")
			asker.setsid()
			asker.uid = a.uid
		}
	}
	if !asker.exited {
		s.oneShot(asker)
	}
}

// storyReuse gives the PID of an orphan that exits to a server in use.
func (s *simulation) storyReuse() {
	o := s.startClient(s.account())
	s.startServers(o)
	s.at(s.now+s.between(-10*time.Second, 15*time.Second), func() {
		for _, u := range s.units {
			if !u.main.exited && u.main.needed() == "" && !o.client.exited {
				s.exit(u.main, "it ends by itself")
				if s.tasks[u.main.pid] == nil {
					s.nextPID = u.main.pid
				}
				s.startServer(o)
				return
			}
		}
	})
}

// storyBystanders starts programs that only look like MCP servers.
func (s *simulation) storyBystanders() {
	a := s.account()
	for range 1 + s.IntN(4) {
		up := oneOf(s, a.shells[0], a.manager, s.init)
		if up.exited {
			continue
		}
		p := s.start(up, oneOf(s,
			"tail -F /var/log/mcp-server.log",
			"grep -rn modelcontextprotocol /home/dev/src",
			"nvim /home/dev/.cursor/mcp.json",
			"git clone https://github.com/modelcontextprotocol/servers.git mcp-servers",
			"node /home/dev/src/mcp-server-demo/node_modules/.bin/vitest run packages/mcp-server",
			"node build.js",
			"postgres: writer",
			"/usr/bin/python3 /srv/mcp-server-metrics/collect_loop.py",
			"/bin/bash /home/dev/bin/nightly-backup.sh /home/dev/src/mcp-server-demo",
			"node /home/dev/.vscode/extensions/eslint/server.js --stdio",
			"/opt/google/chrome/chrome",
			"/opt/google/chrome/chrome_crashpad_handler --monitor-self",
		))
		p.uid = a.uid
		if s.chance(40) { // a closed stdin
			p.setStdin(descriptor{kind: scan.StdinPipe, pipe: &pipe{kind: scan.StdinPipe}})
		}
	}
}
