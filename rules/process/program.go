package process

import (
	"strings"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
	"mcpdoctor/scan"
)

// Role is what a process is to MCP; empty for all that have nothing to do with it.
type Role string

// The roles.
const (
	RoleClient   Role = "client"   // owns servers
	RoleGateway  Role = "gateway"  // a server to one side, a client to the other
	RoleServer   Role = "server"   // speaks MCP
	RoleLauncher Role = "launcher" // only starts one of the others
	RoleHelper   Role = "helper"   // started by a server: a browser, a language server
)

// Confidence is how sure a statement is.
type Confidence string

// The degrees of confidence, with the words of the report.
const (
	Certain  Confidence = "certain"
	Likely   Confidence = "likely"
	Possible Confidence = "possible"
)

// Ways in which a command line alone tells what a process is.
const (
	byCatalog    = "catalog"    // a known program
	ByConvention = "convention" // a name as MCP servers have it
)

// Recognition is what is known of one process: what it is to MCP, and how that is known.
type Recognition struct {
	Role       Role
	Name       string // for people: "Claude Code", "supergateway", "@playwright/mcp"
	By         string
	Confidence Confidence
	Command    command.Command

	// Client and Gateway are what the catalog knows about one; nil for all others.
	Client  *catalog.Client
	Gateway *catalog.Gateway

	// Target is the role of what a launcher starts; empty for all others.
	Target Role
}

// classify recognises a process by its command line. A false alarm is much worse than a miss, since
// a missed server may still be found by its relations: what is not clear has no role.
func Classify(p *scan.Process, os string) Recognition {
	l := command.LineOf(p, os)
	if len(l.Words) == 0 || catalog.Load().Lookalikes[command.FoldName(l.Words[0])] {
		return Recognition{} // the greater part of any table
	}
	started := l.Words
	c := l.Resolve()
	r := identify(&c, started)
	if r.Role == "" && c.Kind == command.KindImage && len(c.Args) > 0 {
		// An image of a language, and in it the server: docker run -i node:22 npx -y x-mcp.
		inside := command.Line{OS: "linux", Words: c.Args}
		in := inside.Resolve()
		in.Launchers = append(c.Launchers, in.Launchers...)
		if found := identify(&in, c.Args); found.Role == RoleServer {
			r, c = found, in
		}
	}
	r.Command = c
	if r.Role != "" && len(c.Launchers) > 0 && !Container(c.Launchers[0]) {
		r.Role, r.Target = RoleLauncher, r.Role
	}
	return r
}

// container tells that a launcher's process stands for what runs in a container, which is no
// descendant of it.
func Container(launcher string) bool {
	switch launcher {
	case "docker run", "docker exec", "podman run", "podman exec", "nerdctl run", "nerdctl exec":
		return true
	}
	return false
}

// roles of the catalog's families.
var roles = map[catalog.Family]Role{
	catalog.Clients: RoleClient, catalog.Gateways: RoleGateway, catalog.Servers: RoleServer, catalog.Helpers: RoleHelper,
}

// identify decides what a resolved command is. The words are those of the whole line.
func identify(c *command.Command, words []string) Recognition {
	if name, sure := helper(c, words); sure != "" {
		return Recognition{Role: RoleHelper, Name: name, By: byCatalog, Confidence: sure}
	}
	if c.Program == "" {
		return Recognition{}
	}
	if catalog.Load().Lookalikes[c.Program] {
		return Recognition{}
	}
	row, known := findProgram(c)
	if row != nil {
		r := Recognition{Role: roles[row.Family], Name: row.Name, By: byCatalog, Confidence: Certain, Client: row.Client, Gateway: row.Gateway}
		if r.Name == "" || r.Role == RoleServer && !strings.Contains(r.Name, " ") {
			r.Name = c.Program // its own name says more than the one that it shares with its binary
		}
		return r
	}
	if known && c.Kind != command.KindImage || catalog.Load().Launchers[c.Program] != nil {
		return Recognition{}
	}
	if sure := convention(c); sure != "" {
		return Recognition{Role: RoleServer, Name: c.Program, By: ByConvention, Confidence: sure}
	}
	return Recognition{}
}

// GatewayOf returns the gateway that a command is; nil for none.
func GatewayOf(c command.Command) *catalog.Gateway {
	if row, _ := findProgram(&c); row != nil {
		return row.Gateway
	}
	return nil
}

// ConfigFlags are the options with which a client or gateway names a file with the servers that it starts.
func (rec *Recognition) ConfigFlags() []string {
	switch {
	case rec.Client != nil:
		return rec.Client.ConfigFlags
	case rec.Gateway != nil:
		return rec.Gateway.ConfigFlags
	}
	return nil
}
