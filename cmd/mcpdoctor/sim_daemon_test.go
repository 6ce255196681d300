package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpdoctor/scan"
)

// storyDaemon is a server that serves over the network, or that something keeps.
func (s *planet) storyDaemon() {
	a := s.account()
	n := s.IntN(6)
	if n == 2 && !s.eyes.systemd {
		n = 0
	}
	switch n {
	case 0, 1: // somebody started it in the background
		up := oneOf(s, a.manager, s.init)
		p := s.start(up, oneOf(s, "node /srv/mcp/node_modules/.bin/mcp-server-everything streamableHttp", "github-mcp-server http --port 8082",
			"python3 -m mcp_server_time", "context7-mcp --transport http --port 13711", "node /home/dev/.npm-global/bin/codegraph serve --mcp --path /mnt/data/project"))
		s.daemon(p, a)
		p.stdin = oneOf(s, input{kind: scan.StdinNull}, input{kind: scan.StdinTTY}, input{kind: scan.StdinFile})
		if s.chance(35) { // through a connection or a launcher that is gone
			p.read(input{kind: scan.StdinPipe, wire: &wire{kind: oneOf(s, scan.StdinPipe, scan.StdinSocket)}})
		}
	case 2: // systemd's
		p := s.start(s.init, oneOf(s, "github-mcp-server stdio", "bash /opt/run-mcp.sh", "mcp-server-fetch"))
		p.cgroup = "/system.slice/" + oneOf(s, "fetch-mcp", "github-mcp") + ".service"
		s.daemon(p, a)
		p.env = map[string]string{"unit": strconv.Itoa(p.pid)}
		if s.chance(60) {
			p.env["SYSTEMD_EXEC_PID"] = strconv.Itoa(p.pid)
		}
		s.jobs[p] = true
		p.listens = nil
		if s.chance(30) {
			p.read(input{kind: scan.StdinPipe, wire: &wire{kind: scan.StdinPipe}})
		}
		if p.args[0] == "bash" {
			c := s.start(p, "mcp-server-fetch")
			c.purposes, s.jobs[c] = p.purposes, true
			c.read(input{kind: scan.StdinPipe, wire: &wire{kind: scan.StdinPipe}})
		}
	case 3: // pm2's
		god := s.start(a.manager, "=PM2 v7.0.4: God Daemon (/home/dev/.pm2)")
		god.name = "PM2 v7.0.4: God"
		s.daemon(god, a)
		god.listens = nil
		god.read(input{kind: scan.StdinSocket, wire: &wire{kind: scan.StdinSocket}})
		for range 1 + s.IntN(2) {
			p := s.start(god, oneOf(s, "node /srv/mcp/node_modules/.bin/mcp-server-everything", "mcp-server-fetch"))
			s.daemon(p, a)
			p.listens = nil
			s.connect(god, p, scan.StdinSocket)
			s.jobs[p] = true
		}
	case 4: // supervisord's
		sup := s.start(s.init, "/usr/bin/python3 /usr/bin/supervisord")
		s.daemon(sup, a)
		sup.listens = nil
		p := s.start(sup, oneOf(s, "mcp-server-fetch", "python3 -m mcp_server_git"))
		s.daemon(p, a)
		p.listens = nil
		s.connect(sup, p, scan.StdinPipe)
		s.jobs[p] = true
		if s.chance(20) { // it dies, and leaves its job behind
			s.at(s.moment(s.present), func() {
				s.end(sup, "killed")
				delete(s.jobs, p)
				p.purposes[0].over = true
			})
		}
	case 5: // a server of a client that others attach to: it goes on when the client is gone
		o := s.startClient(a)
		s.set(o)
		u := o.servers[0]
		u.main.listens = []string{oneOf(s, "unix:/run/user/1000/shared.sock", "tcp:127.0.0.1:4001")}
		u.kind = other
		shared := &purpose{what: "others are attached to it, or may be"}
		for _, p := range u.tasks {
			p.purposes = append(p.purposes, shared)
		}
		u.main.eof, u.main.inbound = -1, s.IntN(3)
		if s.chance(60) {
			s.at(s.moment(s.present), func() { s.leave(o) })
		}
		if s.chance(30) {
			s.at(s.moment(s.present), func() { u.main.inbound, shared.over = 0, true })
			s.at(s.moment(s.now), func() { u.main.inbound, shared.over = 1, false })
		}
	}
}

// daemon is what daemons have in common.
func (s *planet) daemon(p *task, a *account) {
	p.own()
	p.uid, p.term = a.uid, 0
	p.listens = []string{fmt.Sprintf("tcp:127.0.0.1:%d", 3000+p.pid%2000)}
	p.inbound = s.IntN(3)
	p.purposes = []*purpose{{what: "it serves whoever comes"}}
	if s.chance(5) {
		p.veiled = []string{"listen"}
	}
}

// storyGateway is a gateway that starts servers for requests or sessions.
func (s *planet) storyGateway() {
	a := s.account()
	up := oneOf(s, a.manager, s.init, a.shells[0])
	if up.ended {
		up = s.init
	}
	var client *task
	if s.chance(20) { // an agent has started it
		o := s.startClient(a)
		up, client = o.client, o.client
		s.at(s.moment(s.present), func() { s.end(o.client, "killed") })
	}
	flags := oneOf(s, "--outputTransport streamableHttp --port 8000", "--outputTransport streamableHttp --port 8000", "--outputTransport streamableHttp --stateful --port 8000",
		"--outputTransport streamableHttp --stateful --sessionTimeout 60000 --port 8000", "--port 8000")
	line := "node /srv/mcp/node_modules/.bin/supergateway --stdio 'node /srv/mcp/mcp-server.mjs' " + flags
	var g *task
	if s.host.Container && s.chance(40) && len(s.init.purposes) == 0 { // the container is there for it
		g, client = s.init, nil
		g.args = lineWords(line)
		g.purposes = []*purpose{{what: "it serves whoever comes"}}
		g.listens = []string{"tcp:*:8000"}
	} else {
		g = s.start(up, line)
		s.daemon(g, a)
	}
	g.inbound, g.version = 0, oneOf(s, "3.4.3", "3.4.3", "4.0.0", "")
	stateful := strings.Contains(flags, "--stateful")
	if client != nil {
		s.connect(client, g, scan.StdinSocket)
		g.purposes[0].over = s.chance(50) // or it is there for others too
	}
	g.inbound, g.version = 0, oneOf(s, "3.4.3", "3.4.3", "4.0.0", "")
	if !strings.Contains(flags, "streamableHttp") { // one server is for all who come
		u := s.serverOf(g, manner{kind: scan.StdinSocket}, nil, &purpose{what: "its gateway talks to it", of: g}, []string{"/bin/sh -c 'node /srv/mcp/mcp-server.mjs'", "node /srv/mcp/mcp-server.mjs"})
		u.main.eof = 0
	} else {
		for range s.IntN(14) {
			s.at(s.moment(s.present), func() { s.request(g, stateful) })
		}
	}
	if s.chance(20) {
		s.at(s.moment(s.present), func() { s.end(g, "killed") })
	}
}

// request is one request to a gateway, or one session.
func (s *planet) request(g *task, session bool) {
	if g.ended {
		return
	}
	want := &purpose{what: "a request is being answered", of: g}
	u := s.serverOf(g, manner{kind: scan.StdinSocket}, nil, want, []string{"/bin/sh -c 'node /srv/mcp/mcp-server.mjs'", "node /srv/mcp/mcp-server.mjs"})
	u.kind = child
	u.main.veiled = nil
	long := s.within(10*time.Millisecond, 20*time.Second)
	if s.chance(15) {
		long = s.within(20*time.Second, 3*time.Hour)
	}
	c := &asked{s.present}
	g.asked = append(g.asked, c)
	hangUp := func() { g.asked = slices.DeleteFunc(g.asked, func(x *asked) bool { return x == c }) }
	s.after(long, func() {
		if s.chance(30) { // the connection is kept for the next request, which may not come
			s.after(s.within(time.Second, 2*time.Hour), hangUp)
		} else {
			hangUp()
		}
		if session && s.chance(50) {
			return // the session goes on, with no request in flight
		}
		want.over = true
		if g.version == "4.0.0" || s.chance(10) {
			s.end(u.main, "its request is answered")
		}
	})
}
