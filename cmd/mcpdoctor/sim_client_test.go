package main

import (
	"errors"
	"slices"
	"time"

	"mcpdoctor/scan"
)

var errNotPermitted = errors.New("operation not permitted")

// story lets something begin now, of which most will happen later.
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

// open is a client and what it has started.
type runningClient struct {
	client  *task
	style     clientStyle
	servers []*unit
	shell   *task // nil when it has no terminal
}

// storyClient is the life of one client.
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
	o := &runningClient{style: clientStyle{kind: oneOf(s, scan.StdinPipe, scan.StdinSocket), ownSession: s.chance(30), leaksDescriptors: s.chance(12), movesStdin: s.chance(12)}}
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
	case 7: // without a person in front of it
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

// set starts a set of servers.
func (s *simulation) startServers(o *runningClient) {
	o.servers = nil
	for range 1 + s.IntN(4) {
		s.startServer(o)
	}
}

// another starts one more server.
func (s *simulation) startServer(o *runningClient) {
	session := &purpose{what: "its client talks to it", neededBy: o.client}
	o.servers = append(o.servers, s.server(o.client, o.style, o.servers, session))
}

// turn is something that a client does in its life.
func (s *simulation) clientEvent(o *runningClient) {
	if o.client.exited {
		return
	}
	servers := o.servers
	switch s.IntN(10) {
	case 0: // it starts all again, and ends the old ones
		s.closeServers(o.client, servers, true)
		s.startServers(o)
	case 1: // it starts all again, and forgets the old ones
		s.startServers(o)
		for _, u := range servers {
			u.session.over = u.session.neededBy == o.client
		}
	case 2: // another conversation, which uses servers of its own
		s.startServers(o)
	case 3: // it closes stdin, and believes that this is enough
		s.closeServers(o.client, servers, false)
	case 4: // one server crashes, and is started again
		if u := servers[s.IntN(len(servers))]; !u.main.exited {
			s.exit(u.main, "crashed")
			s.startServer(o)
		}
	case 5: // a server's launcher alone is killed
		s.exit(servers[s.IntN(len(servers))].tasks[0], "killed by hand")
	case 6: // a helper of the client gets all descriptors, and goes on with the work
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
	case 7: // it is stopped, and goes on later
		o.client.state = "T"
		s.at(s.moment(s.present), func() {
			if !o.client.exited {
				o.client.state = "S"
			}
		})
	case 8: // one end is on its way to another process, for a moment
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

// close is how an SDK ends servers: it closes their stdin, waits two seconds, terminates the process
// that it started, waits again, and kills.
func (s *simulation) closeServers(client *task, servers []*unit, kill bool) {
	for _, u := range servers {
		top := u.tasks[0]
		if w := top.stdin.pipe; w != nil {
			client.closePipe(w)
		}
		if out := top.stdout.pipe; out != nil && s.chance(50) {
			client.closePipe(out)
		}
		// It is in use until its client would end it by a signal itself.
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

// leave is how a client ends.
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
	case 4: // it does not wait for them
		s.closeServers(o.client, o.servers, false)
		s.after(50*time.Millisecond, func() { s.exit(o.client, "quit") })
	case 5: // its terminal is closed: all in its session are told
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

// ask lets somebody ask a server once: `printf ... | server`, with the answer going somewhere. Until it
// has answered it is in use.
func (s *simulation) oneShot(who *task) {
	form := forms[s.IntN(len(forms))]
	up, line := who, form[len(form)-1]
	asked := &purpose{what: "somebody asked once"}
	if line[0] == '=' || len(form) > 1 {
		line, form = "mcp-server-fetch", []string{"mcp-server-fetch"}
	}
	switch s.IntN(4) {
	case 0:
	case 1, 2:
		up = s.start(who, oneOf(s, "sh -c 'printf x | "+line+"'", "/bin/bash -lc 'cat requests.json | "+line+"'", "bash /home/dev/ask.sh"))
	case 3:
		up = s.start(who, "python3 ask.py")
	}
	if up != who {
		up.tty, up.exitsWithChildren = "-", true
		asked.neededBy = who
		up.purposes = []*purpose{asked}
	}
	work := &purpose{what: "it works on an answer", neededBy: up}
	u := s.serverOf(up, clientStyle{kind: oneOf(s, scan.StdinPipe, scan.StdinPipe, scan.StdinSocket)}, nil, work, form)
	u.kind = other
	in, out := u.tasks[0].stdin.pipe, u.tasks[0].stdout.pipe
	if shell := up != who && up.args[0] != "python3"; shell && len(who.purposes) > 0 {
		who.addReader(out) // a client reads what its commands write
	} else if shell {
		for _, p := range u.tasks {
			p.setStdout(who.stdout)
		}
	}
	in.unread = s.chance(10)
	long := s.between(time.Second, 40*time.Minute)
	switch s.IntN(5) {
	case 0: // into a file, which is there afterwards
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
	case 2: // nobody wants the answer, but what it does
		work.neededBy = nil
		for _, p := range u.tasks {
			p.setStdout(descriptor{kind: scan.StdinNull})
		}
	}
	up.closePipe(in)
	for _, p := range u.tasks { // an answer is finished whatever happens to stdin
		p.eofDelay = -1
	}
	s.after(long, func() {
		work.over, asked.over = true, true
		if s.chance(80) {
			s.exit(u.main, "it has answered")
		}
	})
	if up != who && s.chance(40) { // who asked leaves it to work in the background
		s.at(s.moment(s.present), func() { s.exit(up, "left it in the background") })
	}
}

func (s *simulation) storyOneShot() {
	a := s.account()
	who := a.shells[0]
	if s.chance(30) && !s.host.Container {
		if i := slices.IndexFunc(s.init.children, func(p *task) bool { return p.args[0] == "/usr/sbin/cron" }); i >= 0 {
			who = s.start(s.init.children[i], "/usr/sbin/CRON -f")
			who = s.start(who, "/bin/sh -c /home/dev/bin/heartbeat.sh")
			who.setsid()
			who.uid = a.uid
		}
	}
	if !who.exited {
		s.oneShot(who)
	}
}

// storyReuse gives the number of an orphan that ends to something that lives.
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

// storyBystanders are programs that look like something and are nothing.
func (s *simulation) storyBystanders() {
	a := s.account()
	for range 1 + s.IntN(4) {
		up := oneOf(s, a.shells[0], a.manager, s.init)
		if up.exited {
			continue
		}
		p := s.start(up, oneOf(s, "tail -F /var/log/mcp-server.log", "grep -rn modelcontextprotocol /home/dev/src", "nvim /home/dev/.cursor/mcp.json",
			"git clone https://github.com/modelcontextprotocol/servers.git mcp-servers", "node /home/dev/src/mcp-server-demo/node_modules/.bin/vitest run packages/mcp-server",
			"node build.js", "postgres: writer", "/usr/bin/python3 /srv/mcp-server-metrics/collect_loop.py", "/bin/bash /home/dev/bin/nightly-backup.sh /home/dev/src/mcp-server-demo",
			"node /home/dev/.vscode/extensions/eslint/server.js --stdio", "/opt/google/chrome/chrome", "/opt/google/chrome/chrome_crashpad_handler --monitor-self"))
		p.uid = a.uid
		if s.chance(40) { // a stdin that nobody is at
			p.setStdin(descriptor{kind: scan.StdinPipe, pipe: &pipe{kind: scan.StdinPipe}})
		}
	}
}
