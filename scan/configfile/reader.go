package configfile

import (
	"context"
	"io/fs"
	"mcpdoctor/scan/config"
	"os"
	"path/filepath"
	"strings"
)

// maxMatches is how many files one pattern may stand for.
const maxMatches = 64

// reader goes from place to place and gathers what it finds.
type reader struct {
	ctx   context.Context
	o     Options
	found config.Found

	seen     map[string]bool // the paths that were looked at
	projects []config.Folder // the folders that files tell their client works in
}

// folder looks at the project files of the clients that are wanted.
func (r *reader) folder(dir string, rows []row, wanted func(client string) bool) {
	if !filepath.IsAbs(dir) {
		return
	}
	for _, row := range rows {
		if row.project() && row.on(r.o.System) && wanted(row.client) {
			r.row(row, dir)
		}
	}
}

// row looks at the place of one row of the table, or at all that its pattern fits.
func (r *reader) row(row row, project string) {
	base, rest := r.o.base(row.path, project)
	if base == "" {
		return // the variable that it is below is not set
	}
	paths := []string{filepath.Join(base, filepath.FromSlash(rest))}
	if strings.Contains(rest, "*") {
		// A pattern without a file is shown as it is. Errors of reading a folder are no news: the
		// folder is absent, or holds nothing for us.
		if names, _ := fs.Glob(os.DirFS(base), rest); len(names) > 0 {
			paths = paths[:0]
			for _, name := range names[:min(len(names), maxMatches)] {
				paths = append(paths, filepath.Join(base, filepath.FromSlash(name)))
			}
		}
	}
	for _, path := range paths {
		r.file(config.Place{Client: row.client, Path: path, Project: project}, row.keys)
	}
}

// file reads one file, once.
func (r *reader) file(at config.Place, keys []string) {
	if r.seen[at.Path] || r.ctx.Err() != nil {
		return
	}
	r.seen[at.Path] = true
	text, trouble := readFile(at.Path, r.o.Home)
	if trouble.state == "" {
		var doc any
		if doc, trouble = parse(at.Path, text); trouble.state == "" {
			at.State = config.Present
			at.Servers = r.entries(at, doc, keys)
		}
	}
	if trouble.state != "" {
		at.State, at.Reason, at.Line = trouble.state, trouble.reason, trouble.line
	}
	r.found.Places = append(r.found.Places, at)
}

// trouble is why a file has nothing to say. The zero value is none.
type trouble struct {
	state  config.State
	reason string
	line   int
}
