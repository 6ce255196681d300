// Package command finds out what a command line really runs: it removes launchers (npx, uv run, sh -c, docker run)
// and interpreters from the front until the program is left.
package command

import (
	"cmp"
	"slices"
	"strings"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/scan"
)

// Command is a command line in its parts.
type Command struct {
	// Launchers are those in front of the program, the outermost first, by their canonical names: "npx" for
	// `npm exec` too, "sh" for any POSIX shell, "docker run".
	Launchers []string

	// Runtime is the interpreter ("node", "python", "java"); empty for a binary.
	Runtime string

	Kind ProgramKind

	// Program is the name of what runs, in lower case, without version, extension and folders:
	// "@playwright/mcp", "mcp_server_git", "ghcr.io/github/github-mcp-server". A script with a general name is
	// called as its folder. Empty for an interactive shell and for code on the command line.
	Program string

	// Version is the one in the command line: "6.2.3", "latest".
	Version string

	// Path is the program as it was written, if that is a path.
	Path string

	// Args follow the program.
	Args []string

	// From is the package that a launcher takes the program from: `uvx --from`.
	From string

	// NamedByFolder is set if Program is the name of the folder that the program was started in.
	NamedByFolder bool
}

// ProgramKind is how a program was named.
type ProgramKind string

// The ways to name a program.
const (
	KindPackage ProgramKind = "package" // from npm or PyPI, or a binary that such a package installed
	KindModule  ProgramKind = "module"  // python -m, a Java class
	KindScript  ProgramKind = "script"
	KindBinary  ProgramKind = "binary"
	KindImage   ProgramKind = "image" // of a container
)

// Parse returns what a process runs.
func Parse(p *scan.Process, os string) Command { return LineOf(p, os).Parse() }

// ParseWords returns what an argument vector runs.
func ParseWords(words []string, os string) Command { return Line{Words: words, os: os}.Parse() }

// ParseLine returns what a line of shell runs, as it stands in configuration files and behind the options of
// gateways.
func ParseLine(text, os string) Command { return ParseWords(shellCommand(text, os), os) }

// Target returns what a gateway was told to start.
func Target(t catalog.Target, os string) Command {
	if t.Line != "" {
		return ParseLine(t.Line, os)
	}
	return ParseWords(t.Words, os)
}

// Flag returns the value of an option of the program and reports whether it is there, as [catalog.Args.Flag] does.
func (c Command) Flag(name string) (value string, ok bool) { return catalog.Args(c.Args).Flag(name) }

// maxLaunchers bounds the work for made-up lines. Real chains have up to five launchers: sh -c, env, uv run, npx,
// tsx.
const maxLaunchers = 12

// Parse returns what the line runs.
func (l Line) Parse() (c Command) {
	for range maxLaunchers {
		if len(l.Words) == 0 || l.Words[0] == "" {
			return c
		}
		name := l.Name()
		switch l.launch(name, &c) {
		case launches:
			continue
		case found:
			return c
		}
		if catalog.Load().IsShell(name) {
			return c // interactive, or it reads its commands from stdin
		}
		if r := runtimeOf(name); r != nil {
			l.interpret(r, &c)
		} else {
			l.binary(name, &c)
		}
		if !l.isLauncherScript(&c) {
			l.unwrap(&c)
			return c
		}
	}
	return c
}

// isLauncherScript reports whether the program is a launcher that an interpreter runs, as in `node npx-cli.js`
// and `python /usr/bin/pipx`. Its name becomes the first word.
func (l *Line) isLauncherScript(c *Command) bool {
	if c.Runtime == "" || c.Program == "" {
		return false
	}
	for _, name := range [...]string{Stem(c.Path), c.Program} {
		if row, rest := findLauncher(name, c.Args); row != nil && len(rest.words) > 0 {
			l.replace(append([]string{name}, c.Args...))
			*c = Command{Launchers: c.Launchers, From: c.From}
			return true
		}
	}
	return false
}

// unwrap looks through a script of an editor's extension that starts the package in its first argument:
// a4d-mcp-wrapper.js @salesforce/mcp.
func (l *Line) unwrap(c *Command) {
	name := Stem(c.Path)
	if c.Runtime == "" || !strings.HasSuffix(name, "-wrapper") && !strings.HasSuffix(name, "-launcher") {
		return
	}
	if len(c.Args) > 0 && strings.HasPrefix(c.Args[0], "@") {
		target := Command{Launchers: append(c.Launchers, name)}
		target.setPackage(c.Args)
		*c = target
	}
}

// launching is the result of looking for a launcher.
type launching int

const (
	noLauncher launching = iota // or one that starts nothing
	launches                    // the line now begins with what it starts
	found                       // the program is known
)

// launch removes one launcher.
func (l *Line) launch(name string, c *Command) launching {
	row, rest := findLauncher(name, l.Words[1:])
	if row == nil {
		return noLauncher
	}
	if row.Starts == catalog.StartsLine {
		return l.launchShell(row, rest, c)
	}
	if row.Starts == catalog.StartsOption {
		if rest.from == "" {
			return noLauncher // the project in the working directory
		}
		c.Launchers = append(c.Launchers, row.Name)
		c.Kind, c.Program, c.Args = KindBinary, strings.TrimSuffix(Stem(rest.from), ".csproj"), rest.words
		return found
	}
	if rest.call != "" {
		c.Launchers = append(c.Launchers, row.Name)
		l.replace(shellCommand(rest.call, l.os))
		return launches
	}
	words := skip(row, rest.words)
	if len(words) == 0 {
		return noLauncher // interactive, or asked for help
	}
	c.Launchers = append(c.Launchers, row.Name)
	l.folder = cmp.Or(rest.folder, l.folder)
	c.From = cmp.Or(rest.from, c.From)
	switch {
	case row.Starts == catalog.StartsImage:
		c.Kind, c.Args = KindImage, words[1:]
		c.Program, c.Version = parseImage(words[0])
		return found
	case row.Starts == catalog.StartsScript:
		l.script("node", words, c)
		return found
	case row.Starts == catalog.StartsPackage:
		name, _ := parsePackage(words[0])
		if catalog.Load().Launchers[name] == nil && runtimeOf(name) == nil {
			c.setPackage(words)
			return found
		}
		l.replace(append([]string{name}, words[1:]...)) // npx tsx server.ts
	case rest.module:
		l.replace(append([]string{"python", "-m"}, words...))
	default:
		l.skip(len(l.Words) - len(words))
	}
	return launches
}

// skip returns the words without what stands between the options of a launcher and what it starts.
func skip(row *catalog.Launcher, words []string) []string {
	if row.Starts == catalog.StartsCommand {
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

// setPackage sets the program to a package, which the first of the words names.
func (c *Command) setPackage(words []string) {
	c.Kind, c.Args = KindPackage, words[1:]
	c.Program, c.Version = parsePackage(words[0])
	if IsPath(words[0]) && !strings.HasPrefix(words[0], "@") {
		c.Path = words[0]
	}
	if c.From == "" {
		return
	}
	name, version := parsePackage(c.From)
	if c.From = name; c.Version == "" && Canonical(name) == Canonical(c.Program) {
		c.Version = version
	}
}

// binary handles a program without an interpreter in front of it, which may be a script all the same.
func (l *Line) binary(name string, c *Command) {
	first, args := l.Words[0], l.Words[1:]
	if r := scriptRuntimes[extensionOf(first)]; r != "" {
		l.script(r, l.Words, c)
		return
	}
	if IsPath(first) && catalog.Load().IsApp(name) {
		if script := runAsNode(args); script != nil {
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

// runAsNode returns the script and its arguments if a desktop application runs as Node, as for its command-line
// tool, a language server, an extension. Nil for a document that it opens.
func runAsNode(args []string) []string {
	for len(args) > 0 && (args[0] == "--ms-enable-electron-run-as-node" || strings.HasPrefix(args[0], "--max-old-space-size")) {
		args = args[1:]
	}
	if len(args) == 0 || !IsPath(args[0]) || args[0][0] == '-' {
		return nil
	}
	if IsScript(args[0]) || strings.Contains(CleanPath(args[0]), "/extensions/") {
		return args
	}
	return nil
}

// script sets the program to a script, which is the first of the words.
func (l *Line) script(runtime string, words []string, c *Command) {
	c.Runtime, c.Args, c.Path = runtime, words[1:], words[0]
	c.Kind, c.Program = parseScript(words[0])
	if l.folder != "" && c.Kind == KindScript && generalNames[c.Program] && !IsAbsolute(words[0]) {
		_, c.Program = parseScript(l.folder + "/" + words[0]) // node dist/index.js
		c.NamedByFolder = true
	}
}
