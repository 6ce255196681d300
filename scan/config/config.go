// Package config has the values that the configuration files of MCP clients consist of: which servers are
// configured, by which client, and how they are started. Package configfile reads the files.
//
// The files contain secrets. The values of environment variables and headers are not kept. Arguments and URLs
// are kept as they are written, since processes are compared with them, and must be redacted in any output.
package config

import "fmt"

// Server is one entry of a configuration file.
type Server struct {
	Client    string // the program that reads the entry, by its name in the catalog
	Name      string // of the server, as its user chose it
	File      string
	Project   string // the folder that the entry is for; empty for all folders
	Transport Transport

	// Command and Args start the server. They are as written: "~" and "${VAR}" are not expanded. Both are
	// empty for a server that is reached by URL.
	Command string
	Args    []string

	CWD      string // where it is started; empty if the entry does not say
	URL      string // empty for a server that the client starts
	Named    bool   // the file is not one of the user's own, but one that a command line names
	Disabled bool
}

// Transport is how a client reaches a server.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio" // the client starts it
	HTTP  Transport = "http"  // Streamable HTTP
	SSE   Transport = "sse"   // HTTP with server-sent events, deprecated since 2025
)

// State is what is at a place.
type State string

// The states of a place.
const (
	Absent  State = "absent"
	Present State = "read"
	Broken  State = "broken"  // not a valid file
	Refused State = "refused" // not permitted to be read, or not safe
)

// Place is the place of one configuration file.
type Place struct {
	Client string `json:"client"`
	Path   string `json:"path"`

	Project string `json:"project,omitempty"` // empty for a file that is not in one
	State   State  `json:"state"`
	Servers int    `json:"servers"` // entries, including disabled ones

	// Reason is why the file is broken or refused. It never quotes the file. Line is 0 if the whole file is
	// meant.
	Reason string `json:"reason,omitempty"`
	Line   int    `json:"line,omitempty"`

	Named bool `json:"-"` // on a command line
}

// Found is what all configuration files contain.
type Found struct {
	Home    string   // of the user, for which "~" stands
	Servers []Server // by client, file, project and name
	Places  []Place  // in the order of reading
}

// Problems returns one line for each broken file: "/home/me/.cursor/mcp.json:12: invalid JSON".
func (f Found) Problems() []string {
	var out []string
	for _, p := range f.Places {
		switch {
		case p.State != Broken:
		case p.Line > 0:
			out = append(out, fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Reason))
		default:
			out = append(out, fmt.Sprintf("%s: %s", p.Path, p.Reason))
		}
	}
	return out
}

// Folder is the working directory of a client.
type Folder struct {
	Path   string
	Client string
}

// Named is a configuration file on the command line of a client or gateway.
type Named struct {
	Path   string
	Client string
}
