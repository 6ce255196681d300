// Package config reads the configuration files of MCP clients: which servers are configured, by
// whom, under what name, and how they are started. It is a room of package scan: it reads what is
// there and does not judge it.
//
// These files hold secrets. The values of environment variables and of headers are never kept;
// arguments and URLs are kept as they were written, since processes are compared with them, and are
// to be redacted before anybody sees them.
//
// Which files there are is written in places.txt.
package config

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
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

	named bool // by a command line
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

// Options say whose files are read.
type Options struct {
	System string // linux, darwin, windows ...: which places there are
	Home   string // the user's folder; without it only Folders and Named are read

	// Env looks up the few environment variables that move files; nil when none is set.
	Env func(name string) string

	// Folders are working directories, whose project files are read as well.
	Folders []Folder

	// Named are files that a running program names on its command line.
	Named []Named
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

// maxFolders is how many folders are looked into. Programs that work in more do so in copies of one.
const maxFolders = 64

// Read reads every configuration file that there is. When ctx ends first, as it does for a file
// system that does not answer, it returns without them and says so.
func Read(ctx context.Context, o Options) Found {
	done := make(chan Found, 1)
	go func() { done <- read(ctx, o) }()
	select {
	case f := <-done:
		return f
	case <-ctx.Done():
		late := Place{Path: o.Home, State: Broken, Reason: "reading the configuration files did not end in time"}
		return Found{Places: []Place{late}}
	}
}

// read does the work of Read. It goes on alone when nobody waits for it any more, until the next
// file.
func read(ctx context.Context, o Options) Found {
	r := reader{ctx: ctx, o: o, found: Found{Home: o.Home}, seen: map[string]bool{}}
	rows := table()
	for _, row := range rows {
		if !row.project() && row.on(o.System) {
			r.row(row, "")
		}
	}
	for _, n := range o.Named {
		if filepath.IsAbs(n.Path) {
			r.file(Place{Client: n.Client, Path: n.Path, named: true}, namedKeys)
		}
	}
	for _, f := range o.Folders[:min(len(o.Folders), maxFolders)] {
		// A file that several clients read is that of the client who works there.
		r.folder(f.Path, rows, func(client string) bool { return client == f.Client })
		r.folder(f.Path, rows, func(client string) bool { return client != f.Client })
	}
	for _, f := range r.projects[:min(len(r.projects), maxFolders)] {
		r.folder(f.Path, rows, func(client string) bool { return client == f.Client })
	}
	slices.SortStableFunc(r.found.Servers, func(a, b Server) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.File, b.File), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Name, b.Name))
	})
	return r.found
}
