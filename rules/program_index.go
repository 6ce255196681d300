package rules

import (
	"slices"
	"strings"
	"sync"

	"mcpdoctor/rules/catalog"
)

// index is the catalog, ready to be asked.
type index struct {
	programs   map[string][]*catalog.Program
	prefixes   []*catalog.Program // those that end in "*"
	launchers  map[string][]*catalog.Launcher
	lookalikes map[string]bool
	names      map[string]string // a server's package or binary to the one name of both
}

// loadIndex reads the embedded catalog, once and only when it is needed. That it can be read is
// proved by the catalog's own tests.
var loadIndex = sync.OnceValue(buildIndex)

func buildIndex() *index {
	c, err := catalog.Embedded()
	if err != nil {
		panic("rules: the embedded catalog is broken: " + err.Error())
	}
	return newIndex(c)
}

func newIndex(c *catalog.Catalog) *index {
	x := &index{
		programs: make(map[string][]*catalog.Program, len(c.Programs)), launchers: make(map[string][]*catalog.Launcher, len(c.Launchers)),
		lookalikes: make(map[string]bool, len(c.Lookalikes)), names: make(map[string]string),
	}
	for i := range c.Programs {
		p := &c.Programs[i]
		if name, ok := strings.CutSuffix(p.Program, "*"); ok {
			p.Program = name
			x.prefixes = append(x.prefixes, p)
			continue
		}
		x.programs[p.Program] = append(x.programs[p.Program], p)
		if p.Name != "" && (p.Family == catalog.Servers || p.Family == catalog.Gateways) && !strings.Contains(p.Name, " ") {
			x.names[p.Program] = p.Name
		}
	}
	for _, rows := range x.programs {
		// A row that also asks for a folder says more, and is asked first.
		slices.SortStableFunc(rows, func(a, b *catalog.Program) int { return strings.Compare(below(b), below(a)) })
	}
	for i := range c.Launchers {
		l := &c.Launchers[i]
		x.launchers[l.Words[0]] = append(x.launchers[l.Words[0]], l)
	}
	for _, rows := range x.launchers {
		slices.SortStableFunc(rows, func(a, b *catalog.Launcher) int { return len(b.Words) - len(a.Words) })
	}
	for _, name := range c.Lookalikes {
		x.lookalikes[name] = true
	}
	return x
}

// below sorts: rows with a folder after those without, whatever the folder.
func below(p *catalog.Program) string {
	if p.Below != "" {
		return "1"
	}
	return ""
}

// isApp tells that a desktop application has this name.
func (x *index) isApp(name string) bool {
	for _, p := range x.programs[name] {
		if p.App {
			return true
		}
	}
	return name == "electron"
}

// isShell tells that a launcher's rows are those of a shell.
func (x *index) isShell(name string) bool {
	rows := x.launchers[name]
	return len(rows) > 0 && rows[0].Starts == catalog.StartsLine
}

// find returns the row that a command fulfils; known tells that its program is in the catalog, so
// that its name alone says nothing more.
func (x *index) find(c *Command) (row *catalog.Program, known bool) {
	name := c.Program
	if c.Kind == KindImage {
		name = lastSegment(name)
	}
	if row, known = x.named(name, c); known {
		return row, true
	}
	if c.Kind == KindModule || c.Kind == KindPackage {
		// Python spells packages and modules differently, and names a module's entry with it.
		name = moduleStem(name)
		if row, known = x.named(name, c); known {
			return row, true
		}
		if strings.IndexByte(name, '_') >= 0 {
			if row, known = x.named(strings.ReplaceAll(name, "_", "-"), c); known {
				return row, true
			}
		}
	}
	if c.from != "" {
		if row, known = x.named(c.from, c); known {
			return row, true
		}
	}
	for _, p := range x.prefixes {
		if strings.HasPrefix(c.Program, p.Program) && matches(p, c) {
			return p, true
		}
	}
	return nil, false
}

// named asks the rows of one name, those with a folder first. A program that is in the folder of one
// is no other program of its name.
func (x *index) named(name string, c *Command) (row *catalog.Program, known bool) {
	placed := false
	for _, p := range x.programs[name] {
		switch in := p.Below != "" && isBelow(c.Path, p.Below); {
		case p.Below != "" && !in, p.Below == "" && placed:
			continue
		case in:
			placed = true
		}
		if known = true; matches(p, c) {
			return p, true
		}
	}
	return nil, known
}

// moduleStem takes the entry off a module: hermes_cli.main.
func moduleStem(module string) string {
	if i := strings.LastIndexByte(module, '.'); i > 0 && generic[module[i+1:]] {
		return module[:i]
	}
	return module
}

func isBelow(path, dir string) bool {
	if path == "" {
		return false
	}
	for _, d := range parents(path) {
		if hasPrefixFold(d, dir) {
			return true
		}
	}
	return false
}

func matches(p *catalog.Program, c *Command) bool {
	if p.App && !isOwner(c) {
		return false
	}
	if c.Kind == KindImage && p.Family != catalog.Servers && p.Family != catalog.Gateways {
		return false // a client in a container is not the process that started it
	}
	for _, w := range p.Without {
		if fulfils(w, c.Args) {
			return false
		}
	}
	for _, w := range p.With {
		if fulfils(w, c.Args) {
			return true
		}
	}
	return len(p.With) == 0
}

// isOwner tells that a process of a desktop application is one that starts other programs: its
// main process, or an extension host. Those that draw or decode never do, and a name without a path
// is the command that a person types.
func isOwner(c *Command) bool {
	if c.Path == "" || c.Runtime != "" || len(c.Launchers) > 0 {
		return false
	}
	kind, ok := c.Flag("--type")
	switch {
	case !ok, kind == "extensionHost":
		return true
	case kind == "utility":
		sub, _ := c.Flag("--utility-sub-type")
		return sub == "node.mojom.NodeService"
	}
	return false
}

// fulfils tells that arguments contain a flag, or begin with a sub-command.
func fulfils(want catalog.Condition, args []string) bool {
	if want[0][0] == '-' {
		return hasFlag(args, want[0])
	}
	for i, arg := range args {
		switch {
		case i >= searched:
			return false
		case begins(args[i:], want):
			return true
		case arg == "" || arg == "--":
			return false
		case arg[0] == '-':
		case i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "="):
			// It may be the value of the option before it: codex -c key=value mcp-server.
		default:
			return false
		}
	}
	return false
}

// searched is how many words may stand before a sub-command.
const searched = 24

func hasFlag(args []string, flag string) bool {
	for _, arg := range args {
		if arg == "--" {
			return false
		}
		if rest, ok := strings.CutPrefix(arg, flag); ok && (rest == "" || rest[0] == '=') {
			return true
		}
	}
	return false
}

func begins(args []string, want catalog.Condition) bool {
	if len(args) < len(want) {
		return false
	}
	for i, w := range want {
		if prefix, ok := strings.CutSuffix(w, "*"); ok && strings.HasPrefix(args[i], prefix) {
			continue
		}
		if args[i] != w {
			return false
		}
	}
	return true
}
