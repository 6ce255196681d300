package configured

import (
	"slices"
	"strings"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

// A process that has the words of an entry is not yet its server: a job of the user may have the same. There
// are two ways to be one. A process that a client started is compared by the first of its words: the client
// may add others. Elsewhere all words must be the same, and these must say by themselves what is started.

// subject is a process that is compared with entries.
type subject struct {
	p       *scan.Process
	rec     *process.Recognition // nil if it was not recognised
	name    string               // of the command, as command.ProgramName spells it
	command command.Command
	folder  string // where it was started

	line        []string // all words after the command
	words, args []string // line and the arguments of the program, split at spaces

	// client is the client or gateway that started it, with only launchers between them, and clientCWD
	// is its working directory. Without one, left is set if the process that started it has exited, and
	// job if a program is above it that starts programs for others.
	client    *process.Recognition
	clientCWD string
	left, job bool
}

// subject returns false for a process that no entry can have started.
func (a *Attribution) subject(node int32) (*subject, bool) {
	p, x := a.Forest.Processes[node], catalog.Load()
	l := command.LineOf(p, a.Snapshot.Host.OS)
	if len(l.Words) == 0 {
		return nil, false
	}
	s := &subject{p: p, rec: a.Recognitions[node], name: l.Name(), line: l.Words[1:], folder: p.CWD}
	if x.Lookalikes[s.name] || s.rec == nil && !command.IsRuntime(s.name) && x.Launchers[s.name] == nil && !a.names[s.name] {
		return nil, false // most processes of any machine
	}
	if s.rec != nil {
		s.command = s.rec.Command
	} else {
		s.command = l.Parse()
	}
	s.words, s.args = fields(s.line), fields(s.command.Args)
	if dir := uvDirectory(&s.command, s.line); dir != "" {
		s.folder = absolute(dir, s.folder)
	}
	a.findStarter(s, node)
	return s, true
}

// findStarter finds the client that started the process. A program that was taken for a client because of
// what it started is none.
func (a *Attribution) findStarter(s *subject, node int32) {
	up := a.Forest.Parent[node]
	for up != process.None && a.Recognitions[up].RoleOrNone() == process.RoleLauncher {
		up = a.Forest.Parent[up]
	}
	if up != process.None {
		rec := a.Recognitions[up]
		if role := rec.RoleOrNone(); (role == process.RoleClient || role == process.RoleGateway) && rec.By != process.ByRelation {
			s.client, s.clientCWD = rec, a.Forest.Processes[up].CWD
			return
		}
	}
	if up := a.Forest.Parent[node]; up != process.None {
		s.left = a.IsAdopter(up)
	} else {
		state := a.Forest.ParentStates[node]
		s.left = a.Snapshot.Host.OS == "windows" && (state == process.ParentMissing || state == process.ParentReused)
	}
	for ; up != process.None && !s.job; up = a.Forest.Parent[up] {
		s.job = process.OtherStarter(a.Forest.Processes[up])
	}
}

// runsLine reports whether the process is a shell that was given a line to run, or was started by one.
func (s *subject) runsLine() bool {
	i := slices.IndexFunc(s.command.Launchers, isShell)
	if i != 0 {
		return i > 0
	}
	_, isLine := command.ShellLine(append([]string{s.name}, s.line...)...)
	return isLine || !catalog.Load().IsShell(s.name)
}

// compare returns how surely a process is the server of the entry, "" if it is not, and how many words they have
// in common, 0 if the entry has nothing to do with it.
func (e *entry) compare(s *subject) (sure process.Confidence, words int) {
	words, exact := e.startedWith(s)
	if words == 0 || !e.samePath(s) {
		return "", 0
	}
	return e.confidence(s, exact), words
}

// startedWith returns how many words entry and process have in common, 0 if the process lacks some of the
// entry's. It is exact if the process has no others.
func (e *entry) startedWith(s *subject) (words int, exact bool) {
	if e.name == "" {
		return 0, false
	}
	if e.name == s.name {
		if words, exact = e.begins(e.words, s.words); words > 0 {
			return words, exact
		}
	}
	// A launcher rewrites its line, and what it starts has another: `npx -y x` becomes `npm exec x` and
	// `node .../.bin/x`. A script is seen behind its interpreter.
	words, exact = e.begins(e.args, s.args)
	if words > 0 && !e.sameProgram(s) {
		return 0, false
	}
	return words, exact
}

// begins compares words, and counts the command as one. A bare name with arguments is what a person types,
// not what a client adds to.
func (e *entry) begins(want, have []string) (words int, exact bool) {
	if len(have) < len(want) {
		return 0, false
	}
	bare := e.command.Program == "" || len(want) == 0 && e.command.Kind == command.KindBinary
	if bare && len(have) > len(want) || !slices.EqualFunc(want, have[:len(want)], e.sameWord) {
		return 0, false
	}
	return 1 + len(want), len(have) == len(want)
}

// sameProgram reports whether entry and process run one program, whatever launched it. Containers differ in
// their options, so only their whole lines are compared.
func (e *entry) sameProgram(s *subject) bool {
	a, b := e.command, s.command
	switch {
	case a.Program == "" || b.Program == "" || a.Kind == command.KindImage || b.Kind == command.KindImage:
		return false
	case len(b.Launchers) > 0 && len(a.Launchers) == 0, a.Runtime != "" && a.Runtime != b.Runtime:
		return false
	case e.path != "":
		return b.Path != ""
	case s.rec != nil && command.SameProgram(a, b):
		return true
	}
	// The name of a binary proves nothing: redis-server is not what `npx @acme/redis-server` started.
	return (b.Runtime != "" || len(b.Launchers) > 0) && command.Canonical(a.Program) == command.Canonical(b.Program)
}

// samePath reports whether the process runs the file that the entry names. Below a client the name of the
// file is enough if the folders are not known.
func (e *entry) samePath(s *subject) bool {
	if e.path == "" || s.client != nil && s.command.Path == e.command.Path {
		return true
	}
	here := absolute(s.command.Path, s.folder)
	if here == "" && s.command.Kind == command.KindBinary && len(s.command.Launchers) == 0 {
		here = s.p.Exe
	}
	if command.IsAbsolute(here) && command.IsAbsolute(e.path) && !e.variable.MatchString(e.path) {
		return e.sameWord(e.path, command.CleanPath(here))
	}
	return s.client != nil && (here == "" || command.LastSegment(here) == command.LastSegment(e.path))
}

// confidence returns how surely a process that was started with the words of the entry is its server, "" if
// it is not.
func (e *entry) confidence(s *subject, exact bool) process.Confidence {
	switch {
	case !process.OnPipe(s.p):
		return ""
	case e.startedBy(s):
		switch {
		case e.fromProject && (e.generic || e.viaShell()): // clients start hooks in the same way
			return process.Possible
		case exact:
			return process.Certain
		}
		return process.Likely
	case !exact || s.job || e.generic || e.server.Named:
		return ""
	case e.fromProject:
		if s.left && e.ownFile && within(s.p.CWD, e.server.Project) {
			return process.Possible
		}
	case e.identifies(s):
		return process.Certain
	}
	return ""
}

// startedBy reports whether a client started the process that reads the file of the entry.
func (e *entry) startedBy(s *subject) bool {
	switch {
	case s.client == nil:
		return false
	case e.fromProject:
		return s.client.Name == e.server.Client && within(s.clientCWD, e.server.Project)
	}
	return !e.server.Named || s.client.Name == e.server.Client
}

// identifies reports whether the words of the entry by themselves say what the process is: a file, a
// package, or what the folder that both were started in makes of them. A name with arguments is enough
// for a process that was left behind.
func (e *entry) identifies(s *subject) bool {
	c := &e.command
	switch {
	case e.cwd != "" && !sameFolder(s.p.CWD, e.cwd):
		return false
	case c.Kind == command.KindImage, e.path != "", isURL(c.Path):
		return true
	case e.local:
		return sameFolder(s.folder, e.folder)
	}
	return s.left || c.Kind == command.KindPackage && isFetched(&s.command)
}

// isFetched reports whether a launcher that fetches packages runs the program, or did: a project has its own
// copies elsewhere.
func isFetched(c *command.Command) bool {
	p := command.CleanPath(c.Path)
	return slices.ContainsFunc(c.Launchers, fetches) ||
		slices.ContainsFunc([]string{"/_npx/", "/uv/", "/pipx/", "/dlx", "/bunx-"}, func(part string) bool { return strings.Contains(p, part) })
}

// mayName reports whether a process that was recognised without the entry may get its name.
func (e *entry) mayName(s *subject) bool {
	switch {
	case e.fromProject:
		return within(s.p.CWD, e.server.Project)
	case e.server.Named:
		return false
	}
	return e.path != "" || e.folder == "" || s.folder == "" || sameFolder(s.folder, e.folder)
}
