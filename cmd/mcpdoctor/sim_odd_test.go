package main

import (
	"time"

	"mcpdoctor/scan"
)

// storyHeadless starts a non-interactive client that works on something. What started it may exit; the result is
// wanted all the same.
func (s *simulation) storyHeadless() {
	a := s.account()
	up := a.shells[0]
	if up.exited {
		return
	}
	if s.chance(50) {
		up = s.start(up, "bash /home/dev/bin/nightly.sh")
	}
	c := s.start(up, oneOf(s,
		"claude -p 'tidy up' --output-format stream-json", "claude -p x", "codex exec 'tidy up'", "opencode run 'tidy up'"))
	c.tty, c.termDelay = "-", 0
	closed := descriptor{kind: scan.StdinPipe, pipe: &pipe{kind: scan.StdinPipe}}
	c.setStdin(oneOf(s, descriptor{kind: scan.StdinNull}, closed, descriptor{kind: scan.StdinFile}))
	c.setStdout(oneOf(s, descriptor{kind: scan.StdinNull}, descriptor{kind: scan.StdinFile}))
	work := &purpose{what: "its result is wanted"}
	c.purposes = []*purpose{work}
	o := &runningClient{client: c, style: clientStyle{kind: scan.StdinPipe}}
	s.startServers(o)
	if up != a.shells[0] {
		s.at(s.moment(s.present), func() { s.exit(up, "left it in the background") })
	}
	if s.chance(50) {
		s.at(s.moment(s.present), func() {
			work.over = true
			if s.chance(60) {
				s.exit(c, "has done its work")
			}
		})
	}
}

// storyDeep starts a server that is a client of others, or a client that drives another.
func (s *simulation) storyDeep() {
	o := s.startClient(s.account())
	if s.chance(50) { // a desktop application and its sessions
		app := s.start(o.client, "/opt/claude/claude --output-format stream-json --input-format stream-json")
		app.tty, app.termDelay = "-", 0
		app.purposes = []*purpose{{what: "an application drives it", neededBy: o.client}}
		s.connect(o.client, app, scan.StdinSocket)
		inner := &runningClient{client: app, style: clientStyle{kind: scan.StdinSocket}}
		s.startServers(inner)
		for range s.IntN(3) {
			s.at(s.moment(s.present), func() { s.clientEvent(inner) })
		}
	} else {
		session := &purpose{what: "its client talks to it", neededBy: o.client}
		line := oneOf(s, "node /home/dev/.npm-global/bin/1mcp", "python3 -m mcp_server_hub", "/usr/local/bin/nanobot run /config/nanobot.yaml")
		hub := s.serverOf(o.client, o.style, nil, session, []string{line})
		o.servers = []*unit{hub}
		for range 1 + s.IntN(3) {
			s.server(hub.main, o.style, nil, &purpose{what: "its hub talks to it", neededBy: hub.main})
		}
	}
	if s.chance(60) {
		s.at(s.moment(s.present), func() {
			if len(o.servers) > 0 {
				s.exitClient(o)
			} else {
				s.exit(o.client, "killed")
			}
		})
	}
}

// storyTools starts a server whose tools start programs that a person uses, even after the server has exited.
func (s *simulation) storyTools() {
	o := s.startClient(s.account())
	session := &purpose{what: "its client talks to it", neededBy: o.client}
	u := s.serverOf(o.client, o.style, nil, session, []string{"node /home/dev/.npm-global/bin/desktop-commander"})
	o.servers = []*unit{u}
	for range 1 + s.IntN(2) {
		p := s.start(u.main, oneOf(s,
			"npm run dev", "bash -c 'make -j8'", "python3 train.py", "node /srv/app/server.js", "vite --port 5173", "claude -p fix"))
		p.purposes = []*purpose{{what: "a person works with it"}}
		p.setStdin(descriptor{kind: scan.StdinNull})
	}
	if s.chance(70) {
		s.at(s.moment(s.present), func() { s.exitClient(o) })
	}
}

// storyContainer starts a server in a container, by way of the container engine's client. The container outlives
// that client.
func (s *simulation) storyContainer() {
	o := s.startClient(s.account())
	session := &purpose{what: "its client talks to it", neededBy: o.client}
	line := oneOf(s, "docker run --rm -i --init ghcr.io/github/github-mcp-server", "docker run -i --rm mcp/time")
	u := s.serverOf(o.client, o.style, nil, session, []string{line})
	u.kind = other
	shim := s.start(s.init, "/usr/bin/containerd-shim-runc-v2 -namespace moby -id 0123456789abcdef")
	shim.subreaper, shim.uid = true, 0
	inside := s.start(shim, oneOf(s, "/server/github-mcp-server stdio", "python3 -m mcp_server_time"))
	inside.setsid()
	inside.uid = oneOf(s, 0, 1000)
	inside.purposes = []*purpose{session}
	s.connect(shim, inside, scan.StdinPipe)
	o.servers = []*unit{u}
	if s.chance(60) {
		s.at(s.moment(s.present), func() {
			s.exitClient(o)
			if s.chance(50) {
				shim.closePipe(inside.stdin.pipe)
			}
		})
	}
}

// storyClocks suspends the machine or sets its clock while reap is running.
func (s *simulation) storyClocks() {
	s.at(s.now+s.between(0, 9*time.Second), func() {
		switch s.IntN(3) {
		case 0:
			s.suspend(s.between(time.Second, 20*time.Hour))
		case 1:
			s.clockSet += s.between(time.Second, 40*time.Hour)
		case 2:
			s.clockSet -= s.between(time.Second, 40*time.Hour)
		}
	})
}
