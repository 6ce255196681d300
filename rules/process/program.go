package process

import (
	"strings"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
	"mcpdoctor/scan"
)

// Role is what a process is to MCP; empty for one that has nothing to do with it.
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

// The degrees of confidence, in the words of the report.
const (
	Certain  Confidence = "certain"
	Likely   Confidence = "likely"
	Possible Confidence = "possible"
)

// How a process was recognised by its command line alone.
const (
	byCatalog    = "catalog"    // a known program
	ByConvention = "convention" // a name as MCP servers have it
)

// Recognition is what is known about one process: what it is to MCP, and how that is known.
type Recognition struct {
	Role       Role
	Name       string // for people: "Claude Code", "@playwright/mcp"
	By         string
	Confidence Confidence
	Command    command.Command

	// Client and Gateway are what the catalog knows about one; nil for all others.
	Client  *catalog.Client
	Gateway *catalog.Gateway

	// Target is the role of what a launcher starts; empty for all others.
	Target Role
}

// RoleOrNone returns the role; empty for no recognition at all.
func (rec *Recognition) RoleOrNone() Role {
	if rec == nil {
		return ""
	}
	return rec.Role
}

// target is the role of what a launcher starts; a server when that is not known.
func (rec *Recognition) target() Role {
	if rec.Target == "" {
		return RoleServer
	}
	return rec.Target
}

// Serves reports whether a process is a server, or launches one.
func (rec *Recognition) Serves() bool {
	return rec != nil && (rec.Role == RoleServer || rec.Role == RoleLauncher && rec.target() == RoleServer)
}

// Classify recognises a process by its command line. A false alarm is much worse than a miss, since a server that was
// missed may still be found by its relations: what is not clear has no role.
func Classify(p *scan.Process, os string) Recognition {
	l := command.LineOf(p, os)
	if len(l.Words) == 0 || catalog.Load().Lookalikes[l.Name()] {
		return Recognition{} // most processes of any table
	}
	c := l.Parse()
	r := identify(&c, l.Words)
	if r.Role == "" && c.Kind == command.KindImage && len(c.Args) > 0 {
		// The server may be started in the image of its language: docker run -i node:22 npx -y x-mcp.
		in := command.ParseWords(c.Args, "linux")
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

// Container reports whether a launcher's process stands for what runs in a container, which is not its descendant.
func Container(launcher string) bool {
	switch launcher {
	case "docker run", "docker exec", "podman run", "podman exec", "nerdctl run", "nerdctl exec":
		return true
	}
	return false
}

// GatewayOf returns the gateway that a command is; nil for none.
func GatewayOf(c command.Command) *catalog.Gateway {
	if row, _ := findProgram(&c); row != nil {
		return row.Gateway
	}
	return nil
}

var roles = map[catalog.Family]Role{
	catalog.Clients: RoleClient, catalog.Gateways: RoleGateway, catalog.Servers: RoleServer, catalog.Helpers: RoleHelper,
}

// identify decides what a resolved command is. The words are those of the whole line.
func identify(c *command.Command, words []string) Recognition {
	if name, sure := helper(c, words); sure != "" {
		return Recognition{Role: RoleHelper, Name: name, By: byCatalog, Confidence: sure}
	}
	x := catalog.Load()
	if c.Program == "" || x.Lookalikes[c.Program] {
		return Recognition{}
	}
	row, known := findProgram(c)
	switch {
	case row != nil:
		r := Recognition{Role: roles[row.Family], Name: row.Name, By: byCatalog, Confidence: Certain, Client: row.Client, Gateway: row.Gateway}
		if r.Name == "" || r.Role == RoleServer && !strings.Contains(r.Name, " ") {
			r.Name = c.Program // its own name says more than the one that it shares with its binary
		}
		return r
	case known && c.Kind != command.KindImage, x.Launchers[c.Program] != nil:
		return Recognition{}
	}
	if sure := convention(c); sure != "" {
		return Recognition{Role: RoleServer, Name: c.Program, By: ByConvention, Confidence: sure}
	}
	return Recognition{}
}
