// Package configured relates the entries of clients' configuration files to the processes that they
// started, and says what about a configuration invites leaks. [Attribute] matches entries and processes,
// [Attribution.Report] is what `mcpdoctor config` prints.
package configured

import (
	"cmp"
	"slices"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/config"
)

// A process that was started by the command of a client's configuration file, word for word, is a
// server: the strongest sign there is, and the only one of a private script. How far this goes is in
// configured_reach.go.

// byConfigured is how such a process was recognised.
const byConfigured = "configured"

// Configured is what the configuration files say about a process table.
type Attribution struct {
	*process.Recognised
	found   config.Found
	entries []entry
	by      map[key][]int // indexes into entries, ascending

	// candidates are nodes that nobody knew and that may be configured.
	candidates map[int32]bool

	// matches are the entries that a node was started by, as indexes into found.Servers: several
	// when the same command is configured more than once.
	matches map[int32][]int

	named map[int32]bool // nodes that have the name of an entry
}

// Folders returns the working directories of the living clients, in which project files may be.
// They are known after the closer look.
func Folders(r *process.Recognised) []config.Folder {
	var out []config.Folder
	for i, rec := range r.Recognitions {
		p := r.Forest.Processes[i]
		if rec.RoleOrNone() != process.RoleClient || p.CWD == "" || foreign(r, p) {
			continue
		}
		if f := (config.Folder{Path: p.CWD, Client: rec.Name}); !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// Named returns the configuration files that clients and gateways name on their command lines.
func Named(r *process.Recognised) []config.Named {
	var out []config.Named
	for i, rec := range r.Recognitions {
		p := r.Forest.Processes[i]
		if rec == nil || foreign(r, p) {
			continue
		}
		var flags []string
		switch rec.Name {
		case "Claude Code":
			flags = []string{"--mcp-config"}
		case "mcp-proxy":
			flags = []string{"--named-server-config"}
		case "mcpo", "mcp-hub":
			flags = []string{"--config", "-c"}
		}
		for _, flag := range flags {
			file, _ := rec.Command.Flag(flag)
			if file == "" || file[0] == '{' { // Claude Code also takes the text itself
				continue
			}
			if n := (config.Named{Path: absolute(file, p.CWD), Client: rec.Name}); !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// foreign tells that a process belongs to another user than the one who looks.
func foreign(r *process.Recognised, p *scan.Process) bool {
	me := r.Snapshot.Host.UID
	return me != nil && p.UID != nil && *p.UID != *me
}

// Configure recognises the processes that the entries of configuration files started, and what this
// tells about others. It is to be asked after the closer look at what was recognised without. The
// few processes that nobody had a reason to look at before are given to look, which may be nil:
// where a process was started can decide whether it is the one that is configured.
func Attribute(r *process.Recognised, found config.Found, look func(pids []int)) *Attribution {
	if look == nil {
		look = func([]int) {}
	}
	c := &Attribution{Recognised: r, found: found, entries: compileEntries(found, r.Snapshot.Host.OS), by: map[key][]int{}, candidates: map[int32]bool{}, matches: map[int32][]int{}, named: map[int32]bool{}}
	if len(c.entries) == 0 {
		return c
	}
	for i := range c.entries {
		for _, k := range c.entries[i].keys() {
			c.by[k] = append(c.by[k], i)
		}
	}
	looked := map[int]bool{}
	for _, pid := range r.Look() {
		looked[pid] = true
	}
	lookNew := func(pids []int) {
		pids = slices.DeleteFunc(pids, func(pid int) bool { return looked[pid] })
		for _, pid := range pids {
			looked[pid] = true
		}
		if len(pids) > 0 {
			look(pids)
		}
	}
	var pids []int
	for i, p := range r.Forest.Processes {
		if r.Recognitions[i] == nil && len(c.matching(int32(i), true)) > 0 {
			c.candidates[int32(i)] = true
			pids = append(pids, p.PID)
		}
	}
	lookNew(pids)
	r.Forest.Walk(c.configure)
	r.PromoteOwners()
	r.FollowDescent()
	lookNew(r.Look())
	return c
}

// configure decides on one process whose parent has been decided on already.
func (c *Attribution) configure(node int32) {
	rec := c.Recognitions[node]
	var matches []match
	if rec != nil || c.candidates[node] {
		matches = c.matching(node, false)
	}
	if len(matches) > 0 {
		indexes := make([]int, len(matches))
		for i, m := range matches {
			indexes[i] = m.index
		}
		c.matches[node] = indexes
		if mayBeNamed(rec) {
			best := c.ofOwner(node, matches)
			c.call(node, c.found.Servers[best.index].Name, best.sure)
		}
		return
	}
	// What a configured launcher started is what is configured, under whatever name.
	up := c.Forest.Parent[node]
	if up == process.None || !c.named[up] || c.Recognitions[up].RoleOrNone() != process.RoleLauncher || !mayBeNamed(rec) {
		return
	}
	var sure process.Confidence
	if c.Recognitions[up].By == byConfigured {
		sure = c.Recognitions[up].Confidence
	}
	if resolved := c.resolved(node); (rec != nil || sure != "") && resolved.Command.Program != "" && c.Forest.Processes[node].State != "Z" {
		c.call(node, c.Recognitions[up].Name, sure)
	}
}

// resolved is what is known of a process without its configuration.
func (c *Attribution) resolved(node int32) process.Recognition {
	if c.Recognitions[node] != nil {
		return *c.Recognitions[node]
	}
	return process.Classify(c.Forest.Processes[node], c.Snapshot.Host.OS)
}

// mayBeNamed tells that a process may be called what a user calls its server. Gateways keep their
// own names, by which their manners are known; so do clients and helpers.
func mayBeNamed(rec *process.Recognition) bool {
	return rec == nil || rec.Role == process.RoleServer || rec.Role == process.RoleLauncher && (rec.Target == process.RoleServer || rec.Target == "")
}

// call gives a process the name of a configured server, and makes a server, or its launcher, of it
// when that is sure to any degree, and surer than what is known of it.
func (c *Attribution) call(node int32, name string, sure process.Confidence) {
	rec := c.resolved(node)
	rec.Name = name
	c.named[node] = true
	c.Recognitions[node] = &rec
	if sure == "" || certainty[sure] < certainty[rec.Confidence] {
		return // what is known without is surer
	}
	rec.By, rec.Confidence = byConfigured, sure
	if rec.Role == "" {
		rec.Role = process.RoleServer
		if l := rec.Command.Launchers; len(l) > 0 && !process.Container(l[0]) {
			rec.Role, rec.Target = process.RoleLauncher, process.RoleServer
		}
	}
	if rec.Command.Program == "" {
		rec.Command.Program = command.Lower(name) // code on the command line has no name but this one
	}
}

// match is an entry that a process has the words of.
type match struct {
	index int                // into found.Servers
	sure  process.Confidence // empty when only its name is known by it
	words int                // how many words of its command were compared, and whether its folder is the one
}

// matching returns the entries that a process was started by: the most exact, and all that are alike.
// Early asks before the closer look, when the folder that it was started in is not known yet.
func (c *Attribution) matching(node int32, early bool) []match {
	s, ok := c.subject(node)
	if !ok {
		return nil
	}
	s.early = early
	var best []match
	for _, i := range c.about(&s) {
		e := &c.entries[i]
		words, exact := e.started(&s)
		if words == 0 {
			continue
		}
		sure, ok := e.recognises(&s, exact)
		if sure == process.Certain && s.client == nil && s.shellLine() && !c.holds(node, e) {
			sure, ok = "", s.rec != nil
		}
		if ok {
			if sameFolder(s.folder, e.folder, s.windows) {
				words++
			}
			best = append(best, match{index: e.index, sure: sure, words: words})
		}
	}
	if len(best) < 2 {
		return best
	}
	slices.SortStableFunc(best, func(a, b match) int {
		return cmp.Or(cmp.Compare(certainty[b.sure], certainty[a.sure]), cmp.Compare(b.words, a.words))
	})
	return slices.DeleteFunc(best, func(m match) bool { return m.sure != best[0].sure || m.words != best[0].words })
}

// subject makes a process ready to be compared; false when no entry can have started it.
func (c *Attribution) subject(node int32) (s subject, ok bool) {
	p, x := c.Forest.Processes[node], catalog.Load()
	l := command.LineOf(p, c.Snapshot.Host.OS)
	if len(l.Words) == 0 {
		return s, false
	}
	s = subject{p: p, rec: c.Recognitions[node], windows: c.Snapshot.Host.OS == "windows"}
	s.setWords(l.Words)
	if x.Lookalikes[s.name] || s.rec == nil && s.runtime == nil && x.Launchers[s.name] == nil && c.by[key{byName, s.name}] == nil {
		return s, false // the greater part of any table
	}
	if s.rec != nil {
		s.command = s.rec.Command
	} else {
		s.command = l.Resolve()
	}
	s.folder = p.CWD
	if dir := directory(s.command, s.words); dir != "" {
		s.folder = absolute(dir, s.folder)
	}
	c.setOrigin(&s, node)
	return s, true
}

var certainty = map[process.Confidence]int{process.Certain: 3, process.Likely: 2, process.Possible: 1}

// setOrigin finds who started a process. A program that is called a client only for what it started
// is none here: it may be anything.
func (c *Attribution) setOrigin(s *subject, node int32) {
	up := c.Forest.Parent[node]
	for up != process.None && c.Recognitions[up].RoleOrNone() == process.RoleLauncher {
		up = c.Forest.Parent[up]
	}
	if up != process.None {
		if rec := c.Recognitions[up]; (rec.RoleOrNone() == process.RoleClient || rec.RoleOrNone() == process.RoleGateway) && rec.By != process.ByRelation {
			s.client, s.clientCWD = rec, c.Forest.Processes[up].CWD
			return
		}
	}
	s.left = c.left(node)
	for ; up != process.None && !s.job; up = c.Forest.Parent[up] {
		s.job = process.OtherStarter(c.Forest.Processes[up])
	}
}

// left tells that whoever started a process is gone.
func (c *Attribution) left(node int32) bool {
	if up := c.Forest.Parent[node]; up != process.None {
		return c.IsAdopter(up)
	}
	l := c.Forest.ParentStates[node]
	return c.Snapshot.Host.OS == "windows" && (l == process.ParentMissing || l == process.ParentReused)
}

// holds tells that an entry started a process below a shell too: what its line says is no sign, what
// came of it is.
func (c *Attribution) holds(node int32, e *entry) bool {
	return slices.ContainsFunc(c.Forest.Children[node], func(child int32) bool {
		s, ok := c.subject(child)
		if !ok || s.shellLine() {
			return false
		}
		words, exact := e.started(&s)
		sure, _ := e.recognises(&s, exact)
		return words > 0 && sure == process.Certain
	})
}

// about returns the entries that may have to do with a process, ascending.
func (c *Attribution) about(s *subject) []int {
	var out []int
	for _, k := range s.keys() {
		out = append(out, c.by[k]...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ofOwner chooses among equal entries the one of the client that the process is below.
func (c *Attribution) ofOwner(node int32, matches []match) match {
	for up := c.Forest.Parent[node]; up != process.None; up = c.Forest.Parent[up] {
		if role := c.Recognitions[up].RoleOrNone(); role != process.RoleClient && role != process.RoleGateway {
			continue
		}
		for _, m := range matches {
			if c.found.Servers[m.index].Client == c.Recognitions[up].Name {
				return m
			}
		}
		break
	}
	return matches[0]
}
