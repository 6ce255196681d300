package command

import (
	"iter"
	"slices"
	"strings"

	"mcpdoctor/rules/catalog"
)

// Identity is the same for all copies of one server. It consists of the program, by one name for its package and
// its binary, and of the arguments that distinguish it from other servers of that program. The order of options
// does not matter, nor do versions and what changes from start to start (ports, process and session IDs, log
// files). It is for comparing and may contain secrets: never show it.
func (c Command) Identity() string {
	if c.Program == "" {
		return ""
	}
	parts := []string{Canonical(c.Program)}
	if c.Kind == KindScript && IsPath(c.Path) { // many scripts are called server.js
		parts = append(parts, withoutVersions(c.Path))
	}
	var options, words []string
	for i := 0; i < len(c.Args); i++ {
		arg := c.Args[i]
		if len(arg) < 2 || arg[0] != '-' || arg == "--" {
			words = append(words, arg)
			continue
		}
		name, value, attached := strings.Cut(arg, "=")
		if !attached && i+1 < len(c.Args) && !strings.HasPrefix(c.Args[i+1], "-") {
			i++
			value = c.Args[i]
		}
		if !changingOptions[strings.TrimLeft(name, "-")] {
			options = append(options, name+"="+value)
		}
	}
	slices.Sort(options)
	return strings.Join(slices.Concat(parts, options, words), " ")
}

// changingOptions differ from start to start.
var changingOptions = catalog.Words("port parent-pid ppid pid session-id sessionId log-file logFile log-level logLevel verbose v debug")

// withoutVersions returns a path without the folders that change with an update.
func withoutVersions(p string) string {
	segments := strings.Split(CleanPath(p), "/")
	for i, s := range segments {
		if isVersion(s) {
			segments[i] = "*"
		}
	}
	return strings.Join(segments, "/")
}

// SameProgram reports whether two commands run one program, though one may name the package and the other the
// binary: @modelcontextprotocol/server-filesystem and mcp-server-filesystem, @playwright/mcp and playwright-mcp.
// It returns false if that is unknown.
func SameProgram(a, b Command) bool {
	if a.Program == "" || b.Program == "" {
		return false
	}
	if a.Kind == KindScript && b.Kind == KindScript && a.Path != "" && b.Path != "" {
		return samePath(a.Path, b.Path)
	}
	x, y := Canonical(a.Program), Canonical(b.Program)
	if x == y || strings.HasPrefix(x, y+"/") || strings.HasPrefix(y, x+"/") {
		return true
	}
	x, y = essence(a.Program), essence(b.Program)
	return x != "" && (x == y || b.From != "" && x == essence(b.From)) ||
		y != "" && a.From != "" && y == essence(a.From)
}

// samePath reports whether two paths may be one: a relative path begins in an unknown folder.
func samePath(a, b string) bool {
	a, b = CleanPath(a), CleanPath(b)
	switch {
	case a == b:
		return true
	case IsAbsolute(a) == IsAbsolute(b):
		return false
	case IsAbsolute(b):
		a, b = b, a
	}
	return strings.HasSuffix(a, "/"+strings.TrimPrefix(b, "./"))
}

// Canonical returns the one name of a program, whatever of its names this is.
func Canonical(program string) string {
	if name, ok := catalog.Load().Names[program]; ok {
		program = name
	}
	return BinaryName(program)
}

// BinaryName returns the name that the binary of a package usually has.
func BinaryName(program string) string {
	if name, ok := strings.CutPrefix(program, "@modelcontextprotocol/server-"); ok {
		return "mcp-server-" + name
	}
	scope, base, scoped := strings.Cut(program, "/")
	switch {
	case scoped && !strings.HasPrefix(scope, "@"):
		return program // an image, or one of the scripts of a package
	case scoped:
		program = base
		if distinctive(base) == "" { // @playwright/mcp
			program = scope[1:] + "-" + base
		}
	}
	return WithDashes(ModuleStem(program))
}

var dashes = strings.NewReplacer("_", "-", ".", "-")

// WithDashes returns a name with dashes between its words.
func WithDashes(name string) string { return dashes.Replace(name) }

// WordsOf yields the words of a name: those of x-mcp_server.main are x, mcp, server and main.
func WordsOf(name string) iter.Seq[string] {
	return strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
}

// essence is what distinguishes a name from those of other servers, in one word: "azuredevops" for both
// @azure-devops/mcp and mcp-server-azuredevops.
func essence(program string) string {
	scope, base := "", program
	if i := strings.LastIndexByte(program, '/'); i >= 0 {
		scope, base = program[:i], program[i+1:]
	}
	if e := distinctive(base); e != "" || !strings.HasPrefix(scope, "@") {
		return e
	}
	return distinctive(scope[1:])
}

// distinctive returns a name without the words that any server may have in its name.
func distinctive(name string) string {
	var b strings.Builder
	for w := range WordsOf(name) {
		switch w {
		case "mcp", "server", "cli", "main", "stdio", "js", "ts", "py":
		default:
			b.WriteString(w)
		}
	}
	return b.String()
}
