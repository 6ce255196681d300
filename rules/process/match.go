package process

import (
	"strings"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
)

// find returns the row that a command fulfils; known tells that its program is in the catalog, so
// that its name alone says nothing more.
func findProgram(c *command.Command) (row *catalog.Program, known bool) {
	name := c.Program
	if c.Kind == command.KindImage {
		name = command.LastSegment(name)
	}
	if row, known = namedProgram(name, c); known {
		return row, true
	}
	if c.Kind == command.KindModule || c.Kind == command.KindPackage {
		// Python spells packages and modules differently, and names a module's entry with it.
		name = command.ModuleStem(name)
		if row, known = namedProgram(name, c); known {
			return row, true
		}
		if strings.IndexByte(name, '_') >= 0 {
			if row, known = namedProgram(strings.ReplaceAll(name, "_", "-"), c); known {
				return row, true
			}
		}
	}
	if c.From != "" {
		if row, known = namedProgram(c.From, c); known {
			return row, true
		}
	}
	for _, p := range catalog.Load().Prefixes {
		if strings.HasPrefix(c.Program, p.Program) && matches(p, c) {
			return p, true
		}
	}
	return nil, false
}

// named asks the rows of one name, those with a folder first. A program that is in the folder of one
// is no other program of its name.
func namedProgram(name string, c *command.Command) (row *catalog.Program, known bool) {
	placed := false
	for _, p := range catalog.Load().Programs[name] {
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

func isBelow(path, dir string) bool {
	if path == "" {
		return false
	}
	for _, d := range command.Parents(path) {
		if command.HasPrefixFold(d, dir) {
			return true
		}
	}
	return false
}

func matches(p *catalog.Program, c *command.Command) bool {
	if p.App && !isOwner(c) {
		return false
	}
	if c.Kind == command.KindImage && p.Family != catalog.Servers && p.Family != catalog.Gateways {
		return false // a client in a container is not the process that started it
	}
	return p.Accepts(c.Args)
}

// isOwner tells that a process of a desktop application is one that starts other programs: its
// main process, or an extension host. Those that draw or decode never do, and a name without a path
// is the command that a person types.
func isOwner(c *command.Command) bool {
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
