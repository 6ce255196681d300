// Package command tells what a command line really runs: it peels off launchers (npx, uv run, sh -c, docker
// run) and interpreters until the program is left. [Parse] takes a process, [ParseLine] a line of shell.
package command

import (
	"cmp"
	"slices"
	"strings"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/scan"
)

// Command is what a command line really runs, with its launchers and interpreter peeled off.
type Command struct {
	// Launchers are what is in front, the outermost first, by their canonical names: "npx" for
	// `npm exec` too, "sh" for any shell, "docker run".
	Launchers []string

	// Runtime is the interpreter ("node", "python", "java"); empty for a binary.
	Runtime string

	Kind ProgramKind

	// Program is the identity of what runs, in lower case, without version, extension and the
	// machine's folders: "@playwright/mcp", "mcp_server_git", "ghcr.io/github/github-mcp-server".
	// A script that has no telling name goes by its folder's. Empty when the line runs nothing that
	// has a name (an interactive shell, code on the command line).
	Program string

	// Version is the one that the line itself names: "6.2.3", "latest".
	Version string

	// Path is the program as it was written, when it is a path.
	Path string

	// Args is what comes after the program.
	Args []string

	// from is the package that a launcher was told to take the program from (`uvx --from`).
	From string

	// folder tells that Program is the name of the folder that the program was started in.
	NamedByFolder bool
}

// ProgramKind is how a program was named.
type ProgramKind string

// The ways to name a program.
const (
	KindPackage ProgramKind = "package" // an npm or PyPI package, or a binary that one has installed
	KindModule  ProgramKind = "module"  // python -m, a Java class
	KindScript  ProgramKind = "script"
	KindBinary  ProgramKind = "binary"
	KindImage   ProgramKind = "image" // of a container
)

// Resolve tells what a process runs.
func Parse(p *scan.Process, os string) Command {
	l := LineOf(p, os)
	return l.Resolve()
}

// ResolveLine tells what a line of shell runs, as configuration files and gateways have them.
func ParseLine(text, os string) Command {
	l := Line{OS: os}
	l.Words = l.shellCommand(text, false)
	return l.Resolve()
}

// Target tells what a gateway was told to start.
func Target(t catalog.Target, os string) Command {
	if t.Line != "" {
		return ParseLine(t.Line, os)
	}
	l := Line{OS: os, Words: t.Words}
	return l.Resolve()
}

// layers is how many launchers are looked through. Real chains have up to five (`sh -c`, `env`,
// `uv run`, `npx`, `tsx`); the limit keeps a made-up line from being peeled word by word.
const layers = 12

// line is a command line that is being peeled.
type Line struct {
	OS    string
	Words []string

	// On Windows: the whole text, and where each word begins in it. What follows `cmd /c` has
	// quotes of its own, which the words have lost.
	text   string
	starts []int

	// folder is the one that a relative path begins at, as far as that is known.
	folder string
}

// resolve peels launchers until something else is found.
func (l *Line) Resolve() (c Command) {
	for range layers {
		if len(l.Words) == 0 || l.Words[0] == "" {
			return c
		}
		name := FoldName(l.Words[0])
		switch l.launch(name, &c) {
		case peeled:
			continue
		case named:
			return c
		}
		if catalog.Load().IsShell(name) {
			return c // an interactive one, or it reads its commands
		}
		if interpreter := RuntimeOf(name); interpreter != nil {
			l.interpret(interpreter, &c)
		} else {
			l.binary(name, &c)
		}
		// Launchers are scripts too: node npx-cli.js, python /usr/bin/pipx.
		if !l.launches(&c) {
			l.wrapper(&c)
			return c
		}
	}
	return c
}

// launches tells that the program that was found is itself a launcher, and makes its name the next
// word to peel.
func (l *Line) launches(c *Command) bool {
	if c.Runtime == "" || c.Program == "" {
		return false
	}
	for _, name := range [...]string{Stem(c.Path), c.Program} {
		if row, rest := LauncherRow(name, c.Args); row != nil && len(rest.Words) > 0 {
			l.rest(append([]string{name}, c.Args...))
			*c = Command{Launchers: c.Launchers, From: c.From}
			return true
		}
	}
	return false
}

// wrapper looks through a script that only starts a server which its first argument names, as
// editors' extensions have them: a4d-mcp-wrapper.js @salesforce/mcp.
func (l *Line) wrapper(c *Command) {
	name := Stem(c.Path)
	if c.Runtime == "" || !strings.HasSuffix(name, "-wrapper") && !strings.HasSuffix(name, "-launcher") {
		return
	}
	if len(c.Args) == 0 || !strings.HasPrefix(c.Args[0], "@") {
		return
	}
	target := Command{Launchers: append(c.Launchers, name)}
	l.pack(c.Args, &target)
	*c = target
}

// peeling is what became of a first word that may be a launcher.
type peeling int

const (
	kept   peeling = iota // it is none, or starts nothing
	peeled                // what it starts is now the first word
	named                 // what it starts is named by a package or an image, and found
)

// launch peels one launcher off.
func (l *Line) launch(name string, c *Command) peeling {
	row, rest := LauncherRow(name, l.Words[1:])
	if row == nil {
		return kept
	}
	switch row.Starts {
	case catalog.StartsLine:
		return l.shell(row, rest, c)
	case catalog.StartsOption:
		if rest.from == "" {
			return kept // the project is the folder that it was started in
		}
		c.Launchers = append(c.Launchers, row.Name)
		c.Kind, c.Program, c.Args = KindBinary, strings.TrimSuffix(Stem(rest.from), ".csproj"), rest.Words
		return named
	}
	if rest.call != "" { // npx -c 'command line'
		c.Launchers = append(c.Launchers, row.Name)
		l.rest(l.shellCommand(rest.call, false))
		return peeled
	}
	words := skip(row, rest.Words)
	if len(words) == 0 {
		return kept // the launcher alone: interactive, or asked for help
	}
	c.Launchers = append(c.Launchers, row.Name)
	l.folder = cmp.Or(rest.folder, l.folder)
	c.From = cmp.Or(rest.from, c.From)
	switch {
	case row.Starts == catalog.StartsImage:
		c.Kind, c.Args = KindImage, words[1:]
		c.Program, c.Version = parseImage(words[0])
		return named
	case row.Starts == catalog.StartsScript:
		l.script("node", words, c)
		return named
	case row.Starts == catalog.StartsPackage:
		name, _ := parsePackage(words[0])
		if catalog.Load().Launchers[name] == nil && RuntimeOf(name) == nil {
			l.pack(words, c)
			return named
		}
		l.rest(append([]string{name}, words[1:]...)) // npx tsx server.ts
	case rest.module: // uv run -m module
		l.rest(append([]string{"python", "-m"}, words...))
	default:
		if l.starts != nil {
			l.starts = l.starts[len(l.Words)-len(words):]
		}
		l.Words = words
	}
	return peeled
}

// skip leaves out what stands between a launcher's options and what it starts.
func skip(row *catalog.Launcher, words []string) []string {
	if row.Starts == catalog.StartsCommand { // env A=B command
		for len(words) > 0 && isAssignment(words[0]) {
			words = words[1:]
		}
	}
	switch {
	case row.Skip > 0 && len(words) > 0:
		return words[1:]
	case row.Skip < 0:
		if i := slices.Index(words, "--"); i >= 0 {
			return words[i+1:]
		}
	}
	return words
}

// rest goes on with words that are no longer those of the text.
func (l *Line) rest(words []string) {
	l.Words, l.text, l.starts = words, "", nil
}

// pack takes a package and the arguments for its binary.
func (l *Line) pack(words []string, c *Command) {
	c.Kind, c.Args = KindPackage, words[1:]
	c.Program, c.Version = parsePackage(words[0])
	if IsPath(words[0]) && !strings.HasPrefix(words[0], "@") {
		c.Path = words[0]
	}
	if name, version := parsePackage(c.From); c.From != "" {
		if c.From = name; c.Version == "" && Canonical(name) == Canonical(c.Program) {
			c.Version = version
		}
	}
}

// binary takes a program that no interpreter runs, or a script that names its own.
func (l *Line) binary(name string, c *Command) {
	first, args := l.Words[0], l.Words[1:]
	if interpreter := runtimeOfScript(first); interpreter != "" {
		l.script(interpreter, l.Words, c)
		return
	}
	if IsPath(first) && catalog.Load().IsApp(name) {
		if script := asNode(args); script != nil {
			l.script("node", script, c)
			return
		}
	}
	if strings.Contains(first, ".bin") { // node_modules/.bin
		l.script("", l.Words, c)
		return
	}
	c.Kind, c.Args, c.Program = KindBinary, args, name
	if IsPath(first) {
		c.Path = first
	}
}

// asNode returns the script and its arguments when a desktop application is used as Node: for its own
// command, a language server, an extension. A document that it was told to open is no script.
func asNode(args []string) []string {
	for len(args) > 0 && (args[0] == "--ms-enable-electron-run-as-node" || strings.HasPrefix(args[0], "--max-old-space-size")) {
		args = args[1:]
	}
	if len(args) > 0 && IsPath(args[0]) && args[0][0] != '-' && (IsScript(args[0]) || strings.Contains(CleanPath(args[0]), "/extensions/")) {
		return args
	}
	return nil
}

// script takes a script that an interpreter runs.
func (l *Line) script(interpreter string, words []string, c *Command) {
	c.Runtime, c.Args, c.Path = interpreter, words[1:], words[0]
	c.Kind, c.Program = parseScript(words[0])
	if l.folder != "" && c.Kind == KindScript && generic[c.Program] && !IsAbsolute(words[0]) {
		_, c.Program = parseScript(l.folder + "/" + words[0]) // node dist/index.js
		c.NamedByFolder = true
	}
}

// Flag returns the value of an option of the program and reports whether it is there, as [catalog.Args.Flag] does.
func (c Command) Flag(name string) (value string, ok bool) { return catalog.Args(c.Args).Flag(name) }
