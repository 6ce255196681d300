// Package configfile reads the configuration files of MCP clients into the values of package config.
// It reads what is there and does not judge it. Which files there are is written in places.txt.
package configfile

import (
	"cmp"
	"context"
	"mcpdoctor/scan/config"
	"path/filepath"
	"slices"
)

// Options say whose files are read.
type Options struct {
	System string // linux, darwin, windows ...: which places there are
	Home   string // the user's folder; without it only Folders and Named are read

	// Env looks up the few environment variables that move files; nil when none is set.
	Env func(name string) string

	// Folders are working directories, whose project files are read as well.
	Folders []config.Folder

	// Named are files that a running program names on its command line.
	Named []config.Named
}

// maxFolders is how many folders are looked into. Programs that work in more do so in copies of one.
const maxFolders = 64

// Read reads every configuration file that there is. When ctx ends first, as it does for a file
// system that does not answer, it returns without them and says so.
func Read(ctx context.Context, o Options) config.Found {
	done := make(chan config.Found, 1)
	go func() { done <- read(ctx, o) }()
	select {
	case f := <-done:
		return f
	case <-ctx.Done():
		late := config.Place{Path: o.Home, State: config.Broken, Reason: "reading the configuration files did not end in time"}
		return config.Found{Places: []config.Place{late}}
	}
}

// read does the work of Read. It goes on alone when nobody waits for it any more, until the next
// file.
func read(ctx context.Context, o Options) config.Found {
	r := reader{ctx: ctx, o: o, found: config.Found{Home: o.Home}, seen: map[string]bool{}}
	rows := table()
	for _, row := range rows {
		if !row.project() && row.on(o.System) {
			r.row(row, "")
		}
	}
	for _, n := range o.Named {
		if filepath.IsAbs(n.Path) {
			r.file(config.Place{Client: n.Client, Path: n.Path, Named: true}, namedKeys)
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
	slices.SortStableFunc(r.found.Servers, func(a, b config.Server) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.File, b.File), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Name, b.Name))
	})
	return r.found
}
