package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpdoctor/scan"
)

// storyDaemon starts a server that serves over the network or is supervised.
func (s *simulation) storyDaemon() {
	a := s.account()
	n := s.IntN(6)
	if n == 2 && !s.observer.systemd {
		n = 0
	}
	switch n {
	case 0, 1: // started in the background
		up := oneOf(s, a.manager, s.init)
		p := s.start(up, oneOf(s, "node /srv/mcp/node_modules/.bin/mcp-server-everything streamableHttp", "github-mcp-server http --port 8082",
			"python3 -m mcp_server_time", "context7-mcp --transport http --port 13711",
			"node /home/dev/.npm-global/bin/codegraph serve --mcp --path /mnt/data/project"))
		s.makeDaemon(p, a)
		p.stdin = oneOf(s, descriptor{kind: scan.StdinNull}, descriptor{kind: scan.StdinTTY}, descriptor{kind: scan.StdinFile})
		if s.chance(35) { // by a connection or launcher that is gone
			p.setStdin(descriptor{kind: scan.StdinPipe, pipe: &pipe{kind: oneOf(s, scan.StdinPipe, scan.StdinSocket)}})
		}
	case 2: // a systemd service
		p := s.start(s.init, oneOf(s, "github-mcp-server stdio", "bash /opt/run-mcp.sh", "mcp-server-fetch"))
		p.cgroup = "/system.slice/" + oneOf(s, "fetch-mcp", "github-mcp") + ".service"
		s.makeDaemon(p, a)
		p.env = map[string]string{"unit": strconv.Itoa(p.pid)}
		if s.chance(60) {
			p.env["SYSTEMD_EXEC_PID"] = strconv.Itoa(p.pid)
		}
		s.jobs[p] = true
		p.listens = nil
		if s.chance(30) {
			p.setStdin(descriptor{kind: scan.StdinPipe, pipe: &pipe{kind: scan.StdinPipe}})
		}
		if p.args[0] == "bash" {
			c := s.start(p, "mcp-server-fetch")
			c.purposes, s.jobs[c] = p.purposes, true
			c.setStdin(descriptor{kind: scan.StdinPipe, pipe: &pipe{kind: scan.StdinPipe}})
		}
	case 3: // below pm2
		god := s.start(a.manager, "=PM2 v7.0.4: God Daemon (/home/dev/.pm2)")
		god.name = "PM2 v7.0.4: God"
		s.makeDaemon(god, a)
		god.listens = nil
		god.setStdin(descriptor{kind: scan.StdinSocket, pipe: &pipe{kind: scan.StdinSocket}})
		for range 1 + s.IntN(2) {
			p := s.start(god, oneOf(s, "node /srv/mcp/node_modules/.bin/mcp-server-everything", "mcp-server-fetch"))
			s.makeDaemon(p, a)
			p.listens = nil
			s.connect(god, p, scan.StdinSocket)
			s.jobs[p] = true
		}
	case 4: // below supervisord
		sup := s.start(s.init, "/usr/bin/python3 /usr/bin/supervisord")
		s.makeDaemon(sup, a)
		sup.listens = nil
		p := s.start(sup, oneOf(s, "mcp-server-fetch", "python3 -m mcp_server_git"))
		s.makeDaemon(p, a)
		p.listens = nil
		s.connect(sup, p, scan.StdinPipe)
		s.jobs[p] = true
		if s.chance(20) { // it dies and leaves its job an orphan
			s.at(s.moment(s.present), func() {
				s.exit(sup, "killed")
				delete(s.jobs, p)
				p.purposes[0].over = true
			})
		}
	case 5: // a stdio server that others attach to; it outlives its client
		o := s.startClient(a)
		s.startServers(o)
		u := o.servers[0]
		u.main.listens = []string{oneOf(s, "unix:/run/user/1000/shared.sock", "tcp:127.0.0.1:4001")}
		u.kind = other
		shared := &purpose{what: "others are attached to it, or may be"}
		for _, p := range u.tasks {
			p.purposes = append(p.purposes, shared)
		}
		u.main.eofDelay, u.main.busyConnections = -1, s.IntN(3)
		if s.chance(60) {
			s.at(s.moment(s.present), func() { s.exitClient(o) })
		}
		if s.chance(30) {
			s.at(s.moment(s.present), func() { u.main.busyConnections, shared.over = 0, true })
			s.at(s.moment(s.now), func() { u.main.busyConnections, shared.over = 1, false })
		}
	}
}

// makeDaemon gives p what daemons have in common.
func (s *simulation) makeDaemon(p *task, a *account) {
	p.setsid()
	p.uid, p.termDelay = a.uid, 0
	p.listens = []string{fmt.Sprintf("tcp:127.0.0.1:%d", 3000+p.pid%2000)}
	p.busyConnections = s.IntN(3)
	p.purposes = []*purpose{{what: "it serves remote clients"}}
	if s.chance(5) {
		p.unreadable = []string{"listen"}
	}
}

// gatewayForm is the server that a gateway starts.
var gatewayForm = []string{"/bin/sh -c 'node /srv/mcp/mcp-server.mjs'", "node /srv/mcp/mcp-server.mjs"}

// storyGateway starts a gateway, which starts servers for requests or sessions.
func (s *simulation) storyGateway() {
	a := s.account()
	up := oneOf(s, a.manager, s.init, a.shells[0])
	if up.exited {
		up = s.init
	}
	var client *task
	if s.chance(20) { // started by an agent
		o := s.startClient(a)
		up, client = o.client, o.client
		s.at(s.moment(s.present), func() { s.exit(o.client, "killed") })
	}
	flags := oneOf(s,
		"--outputTransport streamableHttp --port 8000", "--outputTransport streamableHttp --port 8000",
		"--outputTransport streamableHttp --stateful --port 8000",
		"--outputTransport streamableHttp --stateful --sessionTimeout 60000 --port 8000", "--port 8000")
	line := "node /srv/mcp/node_modules/.bin/supergateway --stdio 'node /srv/mcp/mcp-server.mjs' " + flags
	var g *task
	if s.host.Container && s.chance(40) && len(s.init.purposes) == 0 { // it is PID 1 of a container
		g, client = s.init, nil
		g.args = lineWords(line)
		g.purposes = []*purpose{{what: "it serves remote clients"}}
		g.listens = []string{"tcp:*:8000"}
	} else {
		g = s.start(up, line)
		s.makeDaemon(g, a)
	}
	g.busyConnections, g.version = 0, oneOf(s, "3.4.3", "3.4.3", "4.0.0", "")
	stateful := strings.Contains(flags, "--stateful")
	if client != nil {
		s.connect(client, g, scan.StdinSocket)
		g.purposes[0].over = s.chance(50) // others may use it too
	}
	g.busyConnections, g.version = 0, oneOf(s, "3.4.3", "3.4.3", "4.0.0", "")
	if !strings.Contains(flags, "streamableHttp") { // one server for all clients
		u := s.serverOf(g, clientStyle{kind: scan.StdinSocket}, nil, &purpose{what: "its gateway talks to it", neededBy: g}, gatewayForm)
		u.main.eofDelay = 0
	} else {
		for range s.IntN(14) {
			s.at(s.moment(s.present), func() { s.request(g, stateful) })
		}
	}
	if s.chance(20) {
		s.at(s.moment(s.present), func() { s.exit(g, "killed") })
	}
}

// request is one request to a gateway, or one session.
func (s *simulation) request(g *task, session bool) {
	if g.exited {
		return
	}
	want := &purpose{what: "a request is being answered", neededBy: g}
	u := s.serverOf(g, clientStyle{kind: scan.StdinSocket}, nil, want, gatewayForm)
	u.kind = child
	u.main.unreadable = nil
	long := s.between(10*time.Millisecond, 20*time.Second)
	if s.chance(15) {
		long = s.between(20*time.Second, 3*time.Hour)
	}
	c := &connection{s.present}
	g.connections = append(g.connections, c)
	hangUp := func() { g.connections = slices.DeleteFunc(g.connections, func(x *connection) bool { return x == c }) }
	s.after(long, func() {
		if s.chance(30) { // the connection is kept open for a next request
			s.after(s.between(time.Second, 2*time.Hour), hangUp)
		} else {
			hangUp()
		}
		if session && s.chance(50) {
			return // the session goes on without a request in flight
		}
		want.over = true
		if g.version == "4.0.0" || s.chance(10) {
			s.exit(u.main, "its request is answered")
		}
	})
}
