// Package config is what the configuration files of MCP clients say, as plain values: which servers
// are configured, by which client, under what name, and how they are started. Package configfile
// reads them.
//
// These files hold secrets. The values of environment variables and of headers are never kept;
// arguments and URLs are kept as they were written, since processes are compared with them, and are
// to be redacted before anybody sees them.
package config

import (
	"fmt"
)

// Server is one entry of a configuration file.
type Server struct {
	Client string // the program that starts it, by the name that the catalog of package rules has
	Name   string // what its user calls it
	File   string // where it is written

	// Project is the folder that the entry is for; empty for all folders.
	Project string

	Transport Transport

	// Command and Args start the server, as they are written: "~", "${VAR}" and the like are not
	// expanded. Both are empty for one that is reached by URL.
	Command string
	Args    []string

	CWD string // where it is started; empty when the entry does not say
	URL string // empty for one that is started

	// Named tells that the file is none of its user's own, but one that a command line names.
	Named bool

	// Disabled tells that the entry says that it is not to be used.
	Disabled bool
}

// Transport is how a client talks to a server.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio" // the client starts it
	HTTP  Transport = "http"  // Streamable HTTP
	SSE   Transport = "sse"   // HTTP with server-sent events, deprecated since 2025
)

// State is what was found at a place.
type State string

// The states of a place.
const (
	Absent  State = "absent"
	Present State = "read"
	Broken  State = "broken"  // it is there, and it is not what it should be
	Refused State = "refused" // it may not, or should not, be read
)

// Place is one place that was looked at, and what was there.
type Place struct {
	Client string `json:"client"`
	Path   string `json:"path"`

	// Project is the folder whose file it is; empty for a user's own.
	Project string `json:"project,omitempty"`

	State State `json:"state"`

	// Servers counts the entries, also the disabled ones, when it was read.
	Servers int `json:"servers"`

	// Reason says why it is broken or refused; it never quotes the file. Line is where, 0 when the
	// whole file is meant.
	Reason string `json:"reason,omitempty"`
	Line   int    `json:"line,omitempty"`

	Named bool `json:"-"` // by a command line
}

// Found is what all places hold. It is empty when there are no configuration files.
type Found struct {
	Home    string   // of the user whose files they are, which "~" stands for
	Servers []Server // by client, file, project and name
	Places  []Place  // in the order of looking
}

// Problems returns one line for each file that is broken: "/home/me/.cursor/mcp.json:12: it is not
// valid JSON".
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

// Folder is a working directory, and the client that works there.
type Folder struct {
	Path   string
	Client string
}

// Named is a file that the command line of a client or gateway names, in the shape that most have.
type Named struct {
	Path   string
	Client string
}
