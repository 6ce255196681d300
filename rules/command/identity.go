package command

import (
	"mcpdoctor/rules/catalog"
	"slices"
	"strings"
)

// Identity is what the copies of one server have in common: its program, by the one name that its
// package and its binary share, and the arguments that distinguish it. Two configured entries of
// one package with different arguments are two servers; the order of options, a version, and what
// changes from start to start (ports, process and session IDs, log files) make no difference. It is
// for comparing and may hold secrets: never show it.
func (c Command) Identity() string {
	if c.Program == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString(Canonical(c.Program))
	if c.Kind == KindScript && IsPath(c.Path) {
		// Scripts have names like server.js, so that only the path tells two of them apart.
		b.WriteString(" " + stablePath(c.Path))
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
		if !passingOptions[strings.TrimLeft(name, "-")] {
			options = append(options, name+"="+value)
		}
	}
	slices.Sort(options)
	for _, list := range [...][]string{options, words} {
		for _, w := range list {
			b.WriteByte(' ')
			b.WriteString(w)
		}
	}
	return b.String()
}

// passingOptions have another value at every start.
var passingOptions = map[string]bool{
	"port": true, "parent-pid": true, "ppid": true, "pid": true, "session-id": true, "sessionId": true, "log-file": true, "logFile": true,
	"log-level": true, "logLevel": true, "verbose": true, "v": true, "debug": true,
}

// stablePath is a path without the versions in it, which an update changes.
func stablePath(p string) string {
	segments := strings.Split(CleanPath(p), "/")
	for i, s := range segments {
		if isVersion(s) {
			segments[i] = "*"
		}
	}
	return strings.Join(segments, "/")
}

// sameProgram tells that a launcher's target and the process below it are one program, though one
// may be named by its package and the other by its binary: @modelcontextprotocol/server-filesystem
// and mcp-server-filesystem, @playwright/mcp and playwright-mcp. False when that cannot be known.
func SameProgram(a, b Command) bool {
	if a.Program == "" || b.Program == "" {
		return false
	}
	if a.Kind == KindScript && b.Kind == KindScript && a.Path != "" && b.Path != "" {
		return samePath(a.Path, b.Path)
	}
	switch x, y := Canonical(a.Program), Canonical(b.Program); {
	case x == y, strings.HasPrefix(x, y+"/"), strings.HasPrefix(y, x+"/"):
		return true
	}
	x, y := Essence(a.Program), Essence(b.Program)
	if x != "" && x == y {
		return true
	}
	return a.From != "" && Essence(a.From) == y && y != "" || b.From != "" && Essence(b.From) == x && x != ""
}

// samePath tells that two paths are one, as far as that can be seen: one of them may be relative to
// a folder that is not known.
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

func IsAbsolute(p string) bool { return strings.HasPrefix(p, "/") || windowsPath(p) }

// canonical is a program's one name, spelled one way.
func Canonical(program string) string {
	if name, ok := catalog.Load().Names[program]; ok {
		program = name
	}
	return Spell(program)
}

// spell writes a name as its binary would be called.
func Spell(program string) string {
	if name, ok := strings.CutPrefix(program, "@modelcontextprotocol/server-"); ok {
		return "mcp-server-" + name
	}
	scope, base, scoped := strings.Cut(program, "/")
	switch {
	case scoped && !strings.HasPrefix(scope, "@"):
		return program // an image, or one script of several in a package
	case scoped:
		program = base
		if empty(base) { // @playwright/mcp: only the scope says whose
			program = scope[1:] + "-" + base
		}
	}
	return Spelling.Replace(ModuleStem(program))
}

var Spelling = strings.NewReplacer("_", "-", ".", "-")

// essence is what remains of a name without the words that any MCP server has in it, in one word:
// "azuredevops" of both @azure-devops/mcp and mcp-server-azuredevops.
func Essence(program string) string {
	scope, base := "", program
	if i := strings.LastIndexByte(program, '/'); i >= 0 {
		scope, base = program[:i], program[i+1:]
	}
	if e := strip(base); e != "" || !strings.HasPrefix(scope, "@") {
		return e
	}
	return strip(scope[1:])
}

// empty tells that nothing but such words is in a name.
func empty(name string) bool { return strip(name) == "" }

func strip(name string) string {
	var b strings.Builder
	for w := range strings.FieldsFuncSeq(name, Separator) {
		switch w {
		case "mcp", "server", "cli", "main", "stdio", "js", "ts", "py":
		default:
			b.WriteString(w)
		}
	}
	return b.String()
}

func Separator(r rune) bool { return r == '-' || r == '_' || r == '.' }
