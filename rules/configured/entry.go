package configured

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan/config"
)

// entry is a configured command, ready to be compared with processes.
type entry struct {
	server   *config.Server
	windows  bool
	variable *regexp.Regexp // that matches the variables in configured words

	name        string   // of the command, as command.ProgramName spells it; empty if no process can be compared
	words, args []string // that follow it; that its program gets
	command     command.Command

	path   string // of the program's file; empty if the entry does not name one
	cwd    string // as configured
	folder string // where the server is started: cwd, an option of uv, or the project

	// generic is set if other programs may well have the same words. local is set if the words mean
	// different programs in different folders.
	generic, local bool

	// fromProject is set for an entry from a file in a project, which may be another person's work. ownFile
	// is set if it starts a file of that project.
	fromProject, ownFile bool
}

// compileEntry returns an entry without a name for a URL, and for a command that cannot be distinguished from
// those of other programs.
func compileEntry(s *config.Server, home, os string) *entry {
	words := append([]string{s.Command}, s.Args...)
	if len(s.Args) == 0 && !command.IsPath(s.Command) {
		words = strings.Fields(s.Command) // some write the whole line into this field
	}
	e := &entry{server: s, windows: os == "windows", variable: variable}
	if len(words) == 0 || words[0] == "" {
		return e
	}
	if e.windows {
		e.variable = windowsVariable
	}
	values := knownVariables(home, s)
	for i, word := range words {
		words[i] = expand(word, values)
	}
	e.command = command.ParseWords(words, os)
	e.words, e.args = fields(words[1:]), fields(e.command.Args)
	e.name = command.ProgramName(words[0])
	if !e.distinct() {
		return &entry{server: s}
	}
	c := &e.command
	e.cwd = expand(s.CWD, values)
	e.folder = e.cwd
	if dir := uvDirectory(c, words); dir != "" {
		e.folder = absolute(dir, e.folder)
	}
	e.folder = cmp.Or(e.folder, s.Project)
	if c.Path != "" && !isURL(c.Path) && (c.Kind != command.KindPackage || c.Runtime != "") {
		e.path = command.CleanPath(absolute(c.Path, e.folder))
	}
	e.local = e.isLocal()
	e.generic = e.isGeneric()
	e.fromProject = s.Project != "" && (s.File == "" || within(s.File, s.Project))
	tooWide := clean(s.Project) == "/" || within(home, s.Project) // not a project, whatever the file says
	e.ownFile = within(e.path, s.Project) && !tooWide && !e.viaShell()
	return e
}

// distinct reports whether the command says more than that an interpreter, launcher, client or everyday
// tool runs.
func (e *entry) distinct() bool {
	x := catalog.Load()
	if x.Lookalikes[e.name] || strings.ContainsAny(e.name, "$%{") {
		return false
	}
	if p := e.command.Program; p != "" {
		return !x.Lookalikes[p] && x.Launchers[p] == nil && !command.IsRuntime(p) && !startsClient(&e.command)
	}
	const minCode = 8 // bytes of a program on the command line: python -c '...'
	code := 0
	for _, word := range e.words {
		if word[0] != '-' && !e.variable.MatchString(word) {
			code += len(word)
		}
	}
	return code >= minCode
}

// startsClient reports whether the command starts a client as such, not as the server that some can also
// be: codex mcp-server, goose mcp developer.
func startsClient(c *command.Command) bool {
	if len(c.Args) > 0 && strings.HasPrefix(c.Args[0], "mcp") {
		return false
	}
	return slices.ContainsFunc(catalog.Load().Programs[c.Program], func(p *catalog.Program) bool {
		return p.Family == catalog.Clients && p.Below == ""
	})
}

func (e *entry) isLocal() bool {
	c := &e.command
	relative := c.Path == "" || !command.IsAbsolute(c.Path)
	switch {
	case c.Kind == command.KindImage:
		return false
	case c.Kind == command.KindModule, strings.HasPrefix(c.Program, "."), strings.HasPrefix(c.From, "."):
		return true
	case c.Path != "" && relative && !isURL(c.Path):
		return true
	}
	// uv run x, pnpm exec x and cargo run start what the project in the working directory has.
	return relative && slices.ContainsFunc(c.Launchers, func(l string) bool {
		return strings.ContainsRune(l, ' ') && !fetches(l) && !process.Container(l)
	})
}

var tools = catalog.List("tools")

func (e *entry) isGeneric() bool {
	c := &e.command
	program := command.LastSegment(c.Program)
	switch {
	case c.Program == "", tools(program), catalog.Load().Lookalikes[program], ofSystem(c):
		return true
	case c.Kind == command.KindImage:
		return false
	case e.variable.MatchString(e.path):
		return true
	case e.local, c.Kind == command.KindPackage, c.Path != "":
		return false
	}
	return e.variable.ReplaceAllString(strings.Join(c.Args, ""), "") == "" // a name alone
}

func (e *entry) viaShell() bool { return slices.ContainsFunc(e.command.Launchers, isShell) }

func isShell(launcher string) bool {
	return launcher == "sh" || launcher == "cmd" || launcher == "powershell"
}

// isURL reports whether a path is a package or module that Deno fetches: npm:x, https://host/x.ts.
func isURL(p string) bool {
	_, is := command.CutSpecifier(p)
	return is || strings.HasPrefix(p, "https://") || strings.HasPrefix(p, "http://")
}

var systemFolder = regexp.MustCompile(`^(/bin|/sbin|/usr/bin|/usr/sbin|/usr/libexec|/etc|/system|c:/windows)/`)

// ofSystem reports whether the program came with the system. What npm installs in /usr/bin did not.
func ofSystem(c *command.Command) bool {
	return c.Runtime != "node" && systemFolder.MatchString(strings.ToLower(command.CleanPath(c.Path)))
}

// uvDirectory returns the folder in `uv --directory FOLDER run server.py`, "" for other commands.
func uvDirectory(c *command.Command, words []string) string {
	if !slices.Contains(c.Launchers, "uv run") {
		return ""
	}
	dir, _ := command.Command{Args: words}.Flag("--directory")
	return dir
}

// The variables in configured words.
const braced = `\$\{[^}]*\}|\$\([^)]*\)|\{env:[^}]*\}`

var (
	variable        = regexp.MustCompile(braced + `|\$[A-Z_][A-Z0-9_]*`)
	windowsVariable = regexp.MustCompile(braced + `|%[^%]+%`)
)

// knownVariables returns the variables with the same value for all processes of an entry. The others are
// known only to the client.
func knownVariables(home string, s *config.Server) map[string]string {
	values := map[string]string{"/": "/", "pathSeparator": "/"}
	for _, name := range []string{"HOME", "userHome", "env:HOME", "USERPROFILE", "env:USERPROFILE"} {
		values[name] = home
	}
	for _, name := range []string{"workspaceFolder", "workspaceRoot", "CLAUDE_PROJECT_DIR"} {
		values[name] = s.Project
	}
	if dir := path.Dir(command.CleanPath(s.File)); dir != "." {
		values["CLAUDE_PLUGIN_ROOT"], values["extensionPath"] = dir, dir
	}
	return values
}

func expand(word string, values map[string]string) string {
	home := values["HOME"]
	if rest, ok := strings.CutPrefix(word, "~"); ok && home != "" && (rest == "" || rest[0] == '/' || rest[0] == '\\') {
		word = home + rest
	}
	return variable.ReplaceAllStringFunc(word, func(v string) string { return cmp.Or(values[strings.Trim(v, "${}")], v) })
}

// sameWord compares a word of the entry with one of a process. Variables match any text.
func (e *entry) sameWord(want, word string) bool {
	if !e.windows && !strings.ContainsAny(want, "${") {
		return want == word
	}
	literals := e.variable.Split(want, -1)
	if e.windows { // neither case nor the kind of slash matters
		word = foldWord(word)
		for i := range literals {
			literals[i] = foldWord(literals[i])
		}
	}
	if len(literals) == 1 {
		return literals[0] == word
	}
	for i := range literals {
		literals[i] = regexp.QuoteMeta(literals[i])
	}
	same, err := regexp.MatchString("(?s)^"+strings.Join(literals, ".*")+"$", word)
	return same && err == nil
}

func foldWord(word string) string { return strings.ToLower(strings.ReplaceAll(word, `\`, "/")) }

// fields splits words at spaces: a process title does not show where a word with spaces ended.
func fields(words []string) []string {
	if !slices.ContainsFunc(words, func(w string) bool { return w == "" || strings.ContainsAny(w, " \t\n") }) {
		return words
	}
	return strings.Fields(strings.Join(words, " "))
}
