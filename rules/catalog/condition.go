package catalog

import (
	"slices"
	"strings"
)

// Condition is something that arguments can fulfil: the sub-command "mcp serve", the flag "--mcp".
type Condition []string

// Accepts reports whether a row's conditions hold for the arguments.
func (p *Program) Accepts(args []string) bool {
	holds := func(c Condition) bool { return c.holds(args) }
	return !slices.ContainsFunc(p.Without, holds) && (len(p.With) == 0 || slices.ContainsFunc(p.With, holds))
}

// holds reports whether arguments contain a flag, or begin with a sub-command.
func (c Condition) holds(args []string) bool {
	const searched = 24 // words that may stand before a sub-command
	if c[0][0] == '-' {
		return Args(args).Has(c[0])
	}
	for i, arg := range args {
		switch {
		case i >= searched:
			return false
		case c.begins(args[i:]):
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

// begins reports whether arguments begin with the words of a condition; "*" at the end of one matches any ending.
func (c Condition) begins(args []string) bool {
	if len(args) < len(c) {
		return false
	}
	for i, w := range c {
		prefix, open := strings.CutSuffix(w, "*")
		if !strings.HasPrefix(args[i], prefix) || !open && args[i] != w {
			return false
		}
	}
	return true
}
