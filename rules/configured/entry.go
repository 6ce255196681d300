package configured

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/config"
)

// entry is a configured command, ready to be compared with processes.
type entry struct {
	index   int // into found.Servers
	server  *config.Server
	name    string // of the command, as foldName has it
	words   []pattern
	command command.Command
	args    []pattern // those of the program, when the command is resolved

	// path is where the program lies when the entry says so; nil when it does not. It begins in
	// folder, when that is known: the one that the server is started in.
	path   pattern
	folder string
	cwd    string // the same, when the entry itself has it

	reach  reach
	lent   bool // its file came with a project, and may be somebody else's work
	inside bool // it is lent, and its project is a folder like any other: not / or somebody's home
}

// compileEntries returns the entries that can be told from other commands.
func compileEntries(found config.Found, os string) []entry {
	var out []entry
	for i := range found.Servers {
		if e, ok := compileEntry(&found.Servers[i], found.Home, os); ok {
			e.index = i
			out = append(out, e)
		}
	}
	return out
}

func compileEntry(s *config.Server, home, os string) (e entry, ok bool) {
	if s.Command == "" {
		return e, false
	}
	w := writer{home: home, project: s.Project, file: s.File, windows: os == "windows"}
	words := append([]string{s.Command}, s.Args...)
	if len(s.Args) == 0 && !command.IsPath(s.Command) {
		words = strings.Fields(s.Command) // some write the whole line into the one field
	}
	if len(words) == 0 {
		return e, false
	}
	for i, word := range words {
		words[i] = w.known(word)
	}
	l := command.Line{OS: os, Words: slices.Clone(words)}
	e.server, e.name, e.command = s, command.FoldName(words[0]), l.Resolve()
	e.words, e.args = w.patterns(words[1:]), w.patterns(e.command.Args)
	if strings.ContainsAny(e.name, "$%{") || !e.tells() {
		return e, false
	}
	e.cwd = w.known(s.CWD)
	e.folder = e.cwd
	if dir := directory(e.command, words); dir != "" {
		e.folder = absolute(dir, e.folder)
	}
	e.folder = cmp.Or(e.folder, s.Project)
	if p := e.command.Path; p != "" && !specifier(p) && (e.command.Kind != command.KindPackage || e.command.Runtime != "") {
		e.path = w.pattern(command.CleanPath(absolute(p, e.folder)))
	}
	e.lent = s.Project != "" && (s.File == "" || within(s.File, s.Project, w.windows))
	e.inside = e.lent && strings.Trim(command.CleanPath(s.Project), "/") != "" && !within(home, s.Project, w.windows)
	e.reach = e.reaches()
	return e, true
}

// tells tells that a command says more than that an interpreter, a launcher, a client or a tool of
// everyday work runs: all of those are in any process list.
func (e *entry) tells() bool {
	x := catalog.Load()
	if x.Lookalikes[e.name] {
		return false
	}
	if p := e.command.Program; p != "" {
		return !x.Lookalikes[p] && x.Launchers[p] == nil && command.RuntimeOf(p) == nil && !plainClient(&e.command)
	}
	// Code on the command line: python -c '...'.
	const telling = 8
	code := 0
	for _, p := range e.words {
		if len(p) == 1 && p[0][0] != '-' {
			code += len(p[0])
		}
	}
	return code >= telling
}

// plainClient tells that a command starts a client as such, and not as the server that some are too:
// codex mcp-server, goose mcp developer.
func plainClient(c *command.Command) bool {
	if len(c.Args) > 0 && strings.HasPrefix(c.Args[0], "mcp") {
		return false
	}
	return slices.ContainsFunc(catalog.Load().Programs[c.Program], func(p *catalog.Program) bool { return p.Family == catalog.Clients && p.Below == "" })
}

// key is something that an entry and a process have in common when the one started the other.
type key struct {
	by   byte
	name string
}

// The kinds of keys.
const (
	byName    = 'n' // of the command
	byProgram = 'p' // the canonical name of what it runs
	byEssence = 'e' // what of that name remains without the words that all servers have
	byScript  = 's' // the name of a script's file
)

func (e *entry) keys() []key {
	keys := append(programKeys(&e.command), key{byName, e.name})
	if e.path != nil {
		keys = append(keys, key{byScript, command.LastSegment(e.path[len(e.path)-1])})
	}
	return keys
}

// keys of a process: also of the script that is seen behind its interpreter.
func (s *subject) keys() []key {
	keys := append(programKeys(&s.command), key{byName, s.name})
	if s.behind != "" {
		keys = append(keys, key{byName, s.behind})
	}
	if file := command.LastSegment(s.command.Path); file != "" {
		if s.windows {
			file = strings.ToLower(file)
		}
		keys = append(keys, key{byScript, file})
	}
	return keys
}

func programKeys(c *command.Command) []key {
	if c.Program == "" {
		return nil
	}
	keys := make([]key, 0, 6)
	keys = append(keys, key{byProgram, command.Canonical(c.Program)})
	for _, program := range [...]string{c.Program, c.From} {
		if name := command.Essence(program); name != "" {
			keys = append(keys, key{byEssence, name})
		}
	}
	return keys
}

// directory returns the folder that a line tells uv to work in, "" when it does not: uv --directory X
// run server.py.
func directory(c command.Command, words []string) string {
	if !slices.Contains(c.Launchers, "uv run") {
		return ""
	}
	dir, _ := command.Command{Args: words}.Flag("--directory")
	return dir
}

// subject is a process that is compared with entries.
type subject struct {
	p       *scan.Process
	words   []string
	name    string           // of the first, as foldName has it
	runtime *command.Runtime // nil when the first is no interpreter
	behind  string           // then: the stem of the script behind it
	command command.Command
	folder  string               // that it was started in
	rec     *process.Recognition // what it is known as; nil for nobody
	early   bool                 // its working directory and its stdin have not been looked up yet
	windows bool

	// client is the living client or gateway that started it, with nothing but launchers between
	// them, and clientCWD where that works; nil when there is none. Without one left tells that
	// whoever started it is gone, and job that something did which starts programs for others.
	client    *process.Recognition
	clientCWD string
	left, job bool
}

func (s *subject) setWords(words []string) {
	s.words = words
	s.name = command.FoldName(words[0])
	if s.runtime = command.RuntimeOf(s.name); s.runtime != nil && len(words) > 1 && command.IsPath(words[1]) {
		s.behind = command.Stem(words[1])
	}
}

// started tells that an entry and a process have the same words, by how many these are, and whether
// they are all that the process has. Zero when they have not.
func (e *entry) started(s *subject) (words int, exact bool) {
	if e.name == s.name && e.lies(s) {
		if ok, exact := e.covers(e.words, s.words[1:], s.windows); ok {
			return 1 + len(e.words), exact
		}
	}
	// A script that names its interpreter is seen behind it: node /usr/local/bin/x-mcp --stdio.
	if s.behind != "" && e.name == s.behind && e.lies(s) {
		if ok, exact := e.covers(e.words, s.words[2:], s.windows); ok {
			return 1 + len(e.words), exact
		}
	}
	// A launcher rewrites its line, and the program below it has another one: npx -y x is seen as
	// `npm exec x` and as `node .../.bin/x`.
	if e.resembles(s) {
		if ok, exact := e.covers(e.args, s.command.Args, s.windows); ok {
			return 1 + len(e.args), exact
		}
	}
	return 0, false
}

// resembles tells that the program of an entry and that of a process are one, whatever started them.
// Containers are told apart by their options alone, so that for them only the whole line counts.
func (e *entry) resembles(s *subject) bool {
	a, b := e.command, s.command
	switch {
	case a.Program == "" || b.Program == "" || a.Kind == command.KindImage || b.Kind == command.KindImage:
		return false
	case len(b.Launchers) > 0 && len(a.Launchers) == 0:
		return false // it was started in another way than is configured
	case a.Runtime != "" && a.Runtime != b.Runtime:
		return false
	case e.path != nil:
		return b.Path != "" && e.lies(s)
	case s.rec != nil && command.SameProgram(a, b):
		return true
	}
	// A binary may be anybody's: npx redis-mcp-server is not redis-server. One that an interpreter
	// or a launcher runs has its name from the package that is configured.
	return (b.Runtime != "" || len(b.Launchers) > 0) && command.Canonical(a.Program) == command.Canonical(b.Program)
}

// covers tells that the words of an entry are those of a process, from the first one on, and whether
// they are all. What is behind them may be a client's own; but a bare name followed by something is
// what a person types.
func (e *entry) covers(want []pattern, words []string, windows bool) (ok, exact bool) {
	words = fields(words)
	if len(words) < len(want) {
		return false, false
	}
	for i, p := range want {
		if !p.fits(words[i], windows) {
			return false, false
		}
	}
	exact = len(words) == len(want)
	bare := len(want) == 0 && e.command.Kind == command.KindBinary || e.command.Program == ""
	return exact || !bare, exact
}

// lies tells that a process's program is the configured one and not another of its name. One that a
// client started by the same words is; else their folders tell, which may be known for neither.
func (e *entry) lies(s *subject) bool {
	if e.path == nil || s.early || s.client != nil && s.command.Path == e.command.Path {
		return true
	}
	here := s.path()
	if len(e.path) == 1 && command.IsAbsolute(here) && command.IsAbsolute(e.path[0]) {
		return e.path.fits(command.CleanPath(here), s.windows)
	}
	return s.client != nil && (here == "" || command.LastSegment(here) == command.LastSegment(e.path[len(e.path)-1]))
}

// path is where a process's program lies, as far as that is known.
func (s *subject) path() string {
	if s.command.Path == "" && s.command.Kind == command.KindBinary && len(s.command.Launchers) == 0 {
		return s.p.Exe
	}
	return absolute(s.command.Path, s.folder)
}

// absolute puts a relative path into a folder, when that is known.
func absolute(p, folder string) string {
	if p == "" || folder == "" || command.IsAbsolute(p) || p[0] == '$' {
		return p
	}
	return path.Join(command.CleanPath(folder), command.CleanPath(p))
}

// within tells that a path is a folder or lies in it. Both have to be known from the root.
func within(p, folder string, windows bool) bool {
	if !command.IsAbsolute(p) || !command.IsAbsolute(folder) {
		return false
	}
	p, folder = path.Clean(command.CleanPath(p)), path.Clean(command.CleanPath(folder))
	if windows {
		p, folder = strings.ToLower(p), strings.ToLower(folder)
	}
	rest, ok := strings.CutPrefix(p, folder)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(folder, "/"))
}
