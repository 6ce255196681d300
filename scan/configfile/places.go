package configfile

import (
	_ "embed" // for places.txt
	"path/filepath"
	"regexp"
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

// namedKeys are the keys of the files that programs name on their command lines.
var namedKeys = []string{"mcpServers", "mcp_servers", "servers"}

// table returns the rows of places.txt. A test checks that each has its four columns.
var table = sync.OnceValue(func() []row {
	columns := regexp.MustCompile(` {2,}`)
	var rows []row
	for line := range strings.Lines(placesText) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		c := columns.Split(line, -1)
		rows = append(rows, row{client: c[0], systems: c[1], path: c[2], keys: strings.Split(c[3], ", ")})
	}
	return rows
})

// project reports whether the file is in a working directory.
func (r row) project() bool { return strings.HasPrefix(r.path, "{project}") }

// on reports whether the file exists on a system. The BSDs have the folders of Linux.
func (r row) on(system string) bool {
	if system != "darwin" && system != "windows" {
		system = "linux"
	}
	return r.systems == "all" || strings.Contains(r.systems, system)
}

// folder is a folder below the user's home, unless an environment variable names another.
type folder struct{ variable, inHome string }

// folders are by name, and by name and system where one system differs.
var folders = map[string]folder{
	"{home}":        {"", ""},
	"{config}":      {"XDG_CONFIG_HOME", ".config"},
	"{local}":       {"LOCALAPPDATA", "AppData/Local"},
	"{codex}":       {"CODEX_HOME", ".codex"},
	"{claude}":      {"CLAUDE_CONFIG_DIR", ".claude"},
	"{claude.json}": {"CLAUDE_CONFIG_DIR", ""}, // beside {claude}, or in the folder that the variable names
	"{cline}":       {"CLINE_DIR", ".cline"},
	"{support}":     {"XDG_CONFIG_HOME", ".config"},

	"{support} darwin":  {"", "Library/Application Support"},
	"{support} windows": {"APPDATA", "AppData/Roaming"},
}

// base returns the folder that a place is below, "" if it is not known, and the rest of the place.
func (o Options) base(place, project string) (dir, rest string) {
	name, rest, _ := strings.Cut(place, "/")
	switch name {
	case "": // an absolute path
		return "/", rest
	case "{project}":
		return project, rest
	}
	f, special := folders[name+" "+o.System]
	if !special {
		f = folders[name]
	}
	if o.Env != nil && f.variable != "" {
		if dir := o.Env(f.variable); filepath.IsAbs(dir) {
			return dir, rest
		}
	}
	if o.Home == "" {
		return "", rest
	}
	return filepath.Join(o.Home, filepath.FromSlash(f.inHome)), rest
}
