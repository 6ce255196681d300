// Package configfile reads the configuration files of MCP clients into the values of package config, without
// judging them. The files are listed in places.txt.
package configfile

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcpdoctor/scan/config"
)

// Options say whose files are read.
type Options struct {
	System string // linux, darwin, windows ...
	Home   string // of the user; if empty, only Folders and Named are read

	// Env looks up the environment variables that move files; nil if none is set.
	Env func(name string) string

	Folders []config.Folder // whose project files are read as well
	Named   []config.Named
}

const (
	maxFolders = 64 // that are looked into; programs that work in more do so in copies of one
	maxMatches = 64 // files of one pattern
)

// Read reads all configuration files. If ctx is done first, because a file system does not answer, it returns
// nothing but a place that says so.
func Read(ctx context.Context, o Options) config.Found {
	done := make(chan config.Found, 1)
	go func() { done <- read(ctx, o) }()
	select {
	case f := <-done:
		return f
	case <-ctx.Done():
		late := config.Place{Path: o.Home, State: config.Broken, Reason: "reading the configuration files timed out"}
		return config.Found{Places: []config.Place{late}}
	}
}

// read stops at the next file when ctx is done.
func read(ctx context.Context, o Options) config.Found {
	r := reader{ctx: ctx, o: o, found: config.Found{Home: o.Home}, seen: map[string]bool{}}
	for _, row := range table() {
		if !row.project() {
			r.row(row, "")
		}
	}
	for _, n := range o.Named {
		if filepath.IsAbs(n.Path) {
			r.file(config.Place{Client: n.Client, Path: n.Path, Named: true}, namedKeys)
		}
	}
	for _, f := range o.Folders[:min(len(o.Folders), maxFolders)] {
		r.folder(f, true)
		r.folder(f, false) // a file that several clients read is attributed to the one that works there
	}
	for _, f := range r.projects[:min(len(r.projects), maxFolders)] {
		r.folder(f, true)
	}
	slices.SortStableFunc(r.found.Servers, func(a, b config.Server) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.File, b.File), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Name, b.Name))
	})
	return r.found
}

// reader goes from place to place and collects what it finds.
type reader struct {
	ctx   context.Context
	o     Options
	found config.Found

	seen     map[string]bool // paths that were looked at
	projects []config.Folder // that a file names as its client's
}

// folder reads the project files in a folder: those of its own client, or those of all others.
func (r *reader) folder(f config.Folder, own bool) {
	if !filepath.IsAbs(f.Path) {
		return
	}
	for _, row := range table() {
		if row.project() && (row.client == f.Client) == own {
			r.row(row, f.Path)
		}
	}
}

// row reads the file of one row of the table, or all files that match its pattern.
func (r *reader) row(row row, project string) {
	base, rest := r.o.base(row.path, project)
	if base == "" || !row.on(r.o.System) {
		return
	}
	names := []string{rest}
	if strings.Contains(rest, "*") {
		// A pattern without a match is shown as it is. A folder that cannot be read has no match.
		if matches, _ := fs.Glob(os.DirFS(base), rest); len(matches) > 0 {
			names = matches[:min(len(matches), maxMatches)]
		}
	}
	for _, name := range names {
		r.file(config.Place{Client: row.client, Path: filepath.Join(base, filepath.FromSlash(name)), Project: project}, row.keys)
	}
}

// file reads one file, once.
func (r *reader) file(at config.Place, keys []string) {
	if r.seen[at.Path] || r.ctx.Err() != nil {
		return
	}
	r.seen[at.Path] = true
	at.State = config.Present
	text, err := r.o.readFile(at.Path)
	if err == nil {
		var doc any
		if doc, err = parse(at.Path, text); err == nil {
			at.Servers = r.entries(at, doc, keys)
		}
	}
	if err != nil {
		p := problemOf(err)
		at.State, at.Reason, at.Line = p.state, p.reason, p.line
	}
	r.found.Places = append(r.found.Places, at)
}

// problem is why a file was not read.
type problem struct {
	state  config.State
	reason string
	line   int
}

func (p problem) Error() string { return p.reason }

func broken(reason string) problem  { return problem{state: config.Broken, reason: reason} }
func refused(reason string) problem { return problem{state: config.Refused, reason: reason} }
