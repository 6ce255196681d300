package main

import (
	"time"

	"mcpdoctor/scan"
)

// forms are command lines of servers, as in the cases in testdata: launchers first, the server last.
var forms = [][]string{
	{"node /srv/mcp/node_modules/.bin/mcp-server-everything"},
	{"sh -c 'node /srv/mcp/node_modules/.bin/mcp-server-filesystem /data'", "node /srv/mcp/node_modules/.bin/mcp-server-filesystem /data"},
	{
		"=npm exec @modelcontextprotocol/server-everything", "sh -c 'mcp-server-everything'",
		"node /home/dev/.npm/_npx/5b2d/node_modules/.bin/mcp-server-everything",
	},
	{"=npm exec @upstash/context7-mcp", "sh -c 'context7-mcp'", "node /home/dev/.npm/_npx/77aa/node_modules/.bin/context7-mcp"},
	{"uv tool uvx mcp-server-fetch", "/home/dev/.cache/uv/archive-v0/Qx1/bin/python /home/dev/.cache/uv/archive-v0/Qx1/bin/mcp-server-fetch"},
	{
		"uv tool uvx --python 3.13 --from chroma-mcp==0.2.6 chroma-mcp --client-type persistent",
		"/home/dev/.cache/uv/archive-v0/Qx2/bin/python /home/dev/.cache/uv/archive-v0/Qx2/bin/chroma-mcp --client-type persistent",
	},
	{"python3 -m mcp_server_git"},
	{"/usr/local/bin/github-mcp-server stdio"},
	{"node /home/dev/.npm-global/bin/codegraph serve --mcp --path /mnt/data/project"},
	{"node /opt/homebrew/bin/obsidian-mcp-server"},
	{"node /opt/bin/pnpm exec gitnexus mcp", "node ./node_modules/.bin/../gitnexus/dist/cli/index.js mcp"},
	{"bunx chrome-devtools-mcp@latest", "node /tmp/bunx-501-chrome-devtools-mcp@latest/node_modules/.bin/chrome-devtools-mcp"},
	{"node /home/dev/mcp/ridewithgps/dist/index.js"},
	{
		"=npm exec mcp-remote https://mcp.example.com/sse", "sh -c 'mcp-remote https://mcp.example.com/sse'",
		"node /home/dev/.npm/_npx/77ab/node_modules/.bin/mcp-remote https://mcp.example.com/sse",
	},
	{"mcp-server-sqlite --db-path /data/x.db"},
	{"/home/dev/.local/share/uv/tools/serena-agent/bin/python3 /home/dev/.local/bin/serena start-mcp-server --context=codex --project-from-cwd"},
}

// clientStyle is how a client starts its servers.
type clientStyle struct {
	kind             scan.StdinType // pipes, or socket pairs
	ownSession       bool           // each leads its own session
	leaksDescriptors bool           // no close-on-exec: each server inherits the pipes of earlier ones
	movesStdin       bool           // its servers move stdin to another descriptor (Python SDK 2)
}

// server starts a server in a random form, which is in use as long as the session is open.
func (s *simulation) server(client *task, how clientStyle, earlier []*unit, session *purpose) *unit {
	return s.serverOf(client, how, earlier, session, forms[s.IntN(len(forms))])
}

func (s *simulation) serverOf(client *task, how clientStyle, earlier []*unit, session *purpose, form []string) *unit {
	u := &unit{kind: orphan, session: session}
	up := client
	for i, line := range form {
		p := s.start(up, line)
		p.purposes = []*purpose{session}
		if i == 0 {
			p.tty = "-"
			if how.ownSession {
				p.setsid()
			}
			s.connect(client, p, how.kind)
			if how.leaksDescriptors {
				for _, e := range earlier {
					if w := e.tasks[0].stdin.pipe; w != nil && !e.tasks[0].exited {
						p.addWriter(w)
					}
				}
			}
		} else if how.leaksDescriptors {
			for _, w := range up.pipes {
				if w != up.stdin.pipe && w != up.stdout.pipe {
					p.addWriter(w)
				}
			}
		}
		u.tasks, up = append(u.tasks, p), p
		if i < len(form)-1 {
			p.exitsWithChildren, p.forwardsTerm = true, p.args[0] != "sh"
			p.termDelay = -1
			if p.args[0] == "sh" {
				p.termDelay = 0
			}
		}
	}
	u.main = up
	s.setBehaviour(u.main)
	if how.movesStdin && len(form[0]) > 0 && (form[len(form)-1][0] == 'p' || len(form) > 1 && form[0][0] == 'u') {
		u.main.stdin.fd = 5
	}
	if s.chance(4) { // what cannot be read
		u.main.unreadable = oneOf(s, []string{"stdin", "listen"}, []string{"listen"}, []string{"start"}, []string{"peer"})
	}
	s.units = append(s.units, u)
	return u
}

// setBehaviour draws how a server exits.
func (s *simulation) setBehaviour(p *task) {
	switch s.IntN(10) {
	case 0, 1, 2:
		p.eofDelay = s.between(0, time.Second)
	case 3:
		p.eofDelay = s.between(time.Second, 15*time.Second) // it closes a browser first, or saves something
	default:
		p.eofDelay = -1
	}
	switch s.IntN(10) {
	case 0:
		p.termDelay = -1
	case 1:
		p.termDelay = s.between(time.Second, 8*time.Second)
	default:
		p.termDelay = s.between(0, 300*time.Millisecond)
	}
	switch s.IntN(60) {
	case 0:
		p.unkillable, p.termDelay = true, -1
	case 1:
		p.signalErr = errNotPermitted
	case 2:
		p.state = "T"
	case 3:
		p.onTerm = func() { s.start(p, "node /srv/mcp/cleanup.js").purposes = p.purposes }
	}
}
