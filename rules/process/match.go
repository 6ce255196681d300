package process

import (
	"slices"
	"strings"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
)

// findProgram returns the row of the catalog that a command fulfils. A program that is known but fulfils none of its
// rows is not recognised by its name alone.
func findProgram(c *command.Command) (row *catalog.Program, known bool) {
	names := [...]string{c.Program, "", "", c.From}
	switch c.Kind {
	case command.KindImage:
		names[0] = command.LastSegment(c.Program)
	case command.KindModule, command.KindPackage:
		// Python spells packages and modules differently, and names a module's entry with it.
		names[1] = command.ModuleStem(c.Program)
		names[2] = strings.ReplaceAll(names[1], "_", "-")
	}
	for _, name := range names {
		if row, known = findRow(name, c); known {
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

// findRow tries the rows of one name, those with a folder first. A program that lies in the folder of one row is none of
// the other programs of its name.
func findRow(name string, c *command.Command) (row *catalog.Program, known bool) {
	placed := false
	for _, p := range catalog.Load().Programs[name] {
		in := p.Below != "" && isBelow(c.Path, p.Below)
		if placed && p.Below == "" || p.Below != "" && !in {
			continue
		}
		placed = placed || in
		if known = true; matches(p, c) {
			return p, true
		}
	}
	return nil, known
}

func isBelow(path, dir string) bool {
	return path != "" && slices.ContainsFunc(command.Parents(path), func(d string) bool {
		return len(d) >= len(dir) && strings.EqualFold(d[:len(dir)], dir)
	})
}

func matches(p *catalog.Program, c *command.Command) bool {
	switch {
	case p.App && !isOwner(c):
		return false
	case c.Kind == command.KindImage && p.Family != catalog.Servers && p.Family != catalog.Gateways:
		return false // a client in a container is not the process that started it
	}
	return p.Accepts(c.Args)
}

// isOwner reports whether a process of a desktop application starts other programs: its main process does, and an
// extension host. A name without a path is a command that a person typed.
func isOwner(c *command.Command) bool {
	if c.Path == "" || c.Runtime != "" || len(c.Launchers) > 0 {
		return false
	}
	switch kind, typed := c.Flag("--type"); {
	case !typed, kind == "extensionHost":
		return true
	case kind == "utility":
		sub, _ := c.Flag("--utility-sub-type")
		return sub == "node.mojom.NodeService"
	}
	return false
}
