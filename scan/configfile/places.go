package configfile

import (
	_ "embed" // for places.txt
	"path/filepath"
	"strings"
	"sync"
)

//go:embed places.txt
var placesText string

// row is one line of places.txt.
type row struct {
	client  string
	systems string
	path    string
	keys    []string
}

// namedKeys are where the files have their servers that programs name on their command lines.
var namedKeys = []string{"mcpServers", "mcp_servers", "servers"}

// table returns the rows of places.txt. That each has its four columns is proved by a test.
var table = sync.OnceValue(func() []row {
	var rows []row
	for line := range strings.Lines(placesText) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		var columns []string
		for column := range strings.SplitSeq(line, "  ") {
			if column = strings.TrimSpace(column); column != "" {
				columns = append(columns, column)
			}
		}
		rows = append(rows, row{client: columns[0], systems: columns[1], path: columns[2], keys: strings.Split(columns[3], ", ")})
	}
	return rows
})

// project tells that the place is in a working directory.
func (r row) project() bool { return strings.HasPrefix(r.path, "{project}") }

// on tells that the place is one of this system's.
func (r row) on(system string) bool {
	switch system {
	case "darwin", "windows":
		return r.systems == "all" || strings.Contains(r.systems, system)
	}
	return r.systems == "all" || strings.Contains(r.systems, "linux") // and the BSDs, which have its folders
}

// base returns the folder that a place is below, "" when it is not known, and the rest of the place.
func (o Options) base(place, project string) (dir, rest string) {
	name, rest, _ := strings.Cut(place, "/")
	switch name {
	case "": // an absolute path
		return "/", rest
	case "{project}":
		return project, rest
	case "{home}":
		return o.Home, rest
	case "{config}":
		return o.folder("XDG_CONFIG_HOME", ".config"), rest
	case "{support}":
		switch o.System {
		case "darwin":
			return o.folder("", "Library/Application Support"), rest
		case "windows":
			return o.folder("APPDATA", "AppData/Roaming"), rest
		}
		return o.folder("XDG_CONFIG_HOME", ".config"), rest
	case "{local}":
		return o.folder("LOCALAPPDATA", "AppData/Local"), rest
	case "{codex}":
		return o.folder("CODEX_HOME", ".codex"), rest
	case "{claude}":
		return o.folder("CLAUDE_CONFIG_DIR", ".claude"), rest
	case "{claude.json}": // the file beside the folder, or in the one that the variable names
		return o.folder("CLAUDE_CONFIG_DIR", ""), rest
	case "{cline}":
		return o.folder("CLINE_DIR", ".cline"), rest
	}
	return "", rest
}

// folder is what a variable says, else a folder in the user's home.
func (o Options) folder(variable, inHome string) string {
	if o.Env != nil && variable != "" {
		if dir := o.Env(variable); filepath.IsAbs(dir) {
			return dir
		}
	}
	if o.Home == "" {
		return ""
	}
	return filepath.Join(o.Home, filepath.FromSlash(inHome))
}
