package rules

import (
	"cmp"
	"slices"

	"mcpdoctor/scan"
	"mcpdoctor/scan/config"
)

// A process that was started by the command of a client's configuration file, word for word, is a
// server: the strongest sign there is, and the only one of a private script. How far this goes is in
// configured_reach.go.

// byConfigured is how such a process was recognised.
const byConfigured = "configured"

// Configured is what the configuration files say about a process table.
type Configured struct {
	*Recognised
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
func Folders(r *Recognised) []config.Folder {
	var out []config.Folder
	for i, rec := range r.recs {
		p := r.forest.procs[i]
		if rec.role() != RoleClient || p.CWD == "" || foreign(r, p) {
			continue
		}
		if f := (config.Folder{Path: p.CWD, Client: rec.Name}); !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// Named returns the configuration files that clients and gateways name on their command lines.
func Named(r *Recognised) []config.Named {
	var out []config.Named
	for i, rec := range r.recs {
		p := r.forest.procs[i]
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
func foreign(r *Recognised, p *scan.Process) bool {
	me := r.snap.Host.UID
	return me != nil && p.UID != nil && *p.UID != *me
}

// Configure recognises the processes that the entries of configuration files started, and what this
// tells about others. It is to be asked after the closer look at what was recognised without. The
// few processes that nobody had a reason to look at before are given to look, which may be nil:
// where a process was started can decide whether it is the one that is configured.
func Configure(r *Recognised, found config.Found, look func(pids []int)) *Configured {
	if look == nil {
		look = func([]int) {}
	}
	c := &Configured{Recognised: r, found: found, entries: compileEntries(found, r.snap.Host.OS), by: map[key][]int{}, candidates: map[int32]bool{}, matches: map[int32][]int{}, named: map[int32]bool{}}
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
	for i, p := range r.forest.procs {
		if r.recs[i] == nil && len(c.matching(int32(i), true)) > 0 {
			c.candidates[int32(i)] = true
			pids = append(pids, p.PID)
		}
	}
	lookNew(pids)
	r.forest.walk(c.configure)
	r.promoteOwners()
	r.followDescent()
	lookNew(r.Look())
	return c
}

// configure decides on one process whose parent has been decided on already.
func (c *Configured) configure(node int32) {
	rec := c.recs[node]
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
	up := c.forest.parent[node]
	if up == none || !c.named[up] || c.recs[up].role() != RoleLauncher || !mayBeNamed(rec) {
		return
	}
	var sure Confidence
	if c.recs[up].By == byConfigured {
		sure = c.recs[up].Confidence
	}
	if resolved := c.resolved(node); (rec != nil || sure != "") && resolved.Command.Program != "" && c.forest.procs[node].State != "Z" {
		c.call(node, c.recs[up].Name, sure)
	}
}

// resolved is what is known of a process without its configuration.
func (c *Configured) resolved(node int32) Recognition {
	if c.recs[node] != nil {
		return *c.recs[node]
	}
	return classify(c.forest.procs[node], c.snap.Host.OS)
}

// mayBeNamed tells that a process may be called what a user calls its server. Gateways keep their
// own names, by which their manners are known; so do clients and helpers.
func mayBeNamed(rec *Recognition) bool {
	return rec == nil || rec.Role == RoleServer || rec.Role == RoleLauncher && (rec.Target == RoleServer || rec.Target == "")
}

// call gives a process the name of a configured server, and makes a server, or its launcher, of it
// when that is sure to any degree, and surer than what is known of it.
func (c *Configured) call(node int32, name string, sure Confidence) {
	rec := c.resolved(node)
	rec.Name = name
	c.named[node] = true
	c.recs[node] = &rec
	if sure == "" || certainty[sure] < certainty[rec.Confidence] {
		return // what is known without is surer
	}
	rec.By, rec.Confidence = byConfigured, sure
	if rec.Role == "" {
		rec.Role = RoleServer
		if l := rec.Command.Launchers; len(l) > 0 && !container(l[0]) {
			rec.Role, rec.Target = RoleLauncher, RoleServer
		}
	}
	if rec.Command.Program == "" {
		rec.Command.Program = lower(name) // code on the command line has no name but this one
	}
}

// match is an entry that a process has the words of.
type match struct {
	index int        // into found.Servers
	sure  Confidence // empty when only its name is known by it
	words int        // how many words of its command were compared, and whether its folder is the one
}

// matching returns the entries that a process was started by: the most exact, and all that are alike.
// Early asks before the closer look, when the folder that it was started in is not known yet.
func (c *Configured) matching(node int32, early bool) []match {
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
		if sure == Certain && s.client == nil && s.shellLine() && !c.holds(node, e) {
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
func (c *Configured) subject(node int32) (s subject, ok bool) {
	p, x := c.forest.procs[node], loadIndex()
	l := lineOf(p, c.snap.Host.OS)
	if len(l.words) == 0 {
		return s, false
	}
	s = subject{p: p, rec: c.recs[node], windows: c.snap.Host.OS == "windows"}
	s.setWords(l.words)
	if x.lookalikes[s.name] || s.rec == nil && s.runtime == nil && x.launchers[s.name] == nil && c.by[key{byName, s.name}] == nil {
		return s, false // the greater part of any table
	}
	if s.rec != nil {
		s.command = s.rec.Command
	} else {
		s.command = l.resolve()
	}
	s.folder = p.CWD
	if dir := directory(s.command, s.words); dir != "" {
		s.folder = absolute(dir, s.folder)
	}
	c.setOrigin(&s, node)
	return s, true
}

var certainty = map[Confidence]int{Certain: 3, Likely: 2, Possible: 1}

// setOrigin finds who started a process. A program that is called a client only for what it started
// is none here: it may be anything.
func (c *Configured) setOrigin(s *subject, node int32) {
	up := c.forest.parent[node]
	for up != none && c.recs[up].role() == RoleLauncher {
		up = c.forest.parent[up]
	}
	if up != none {
		if rec := c.recs[up]; (rec.role() == RoleClient || rec.role() == RoleGateway) && rec.By != byRelation {
			s.client, s.clientCWD = rec, c.forest.procs[up].CWD
			return
		}
	}
	s.left = c.left(node)
	for ; up != none && !s.job; up = c.forest.parent[up] {
		s.job = otherStarter(c.forest.procs[up])
	}
}

// left tells that whoever started a process is gone.
func (c *Configured) left(node int32) bool {
	if up := c.forest.parent[node]; up != none {
		return c.adopter(up)
	}
	l := c.forest.lineage[node]
	return c.snap.Host.OS == "windows" && (l == missing || l == recycled)
}

// holds tells that an entry started a process below a shell too: what its line says is no sign, what
// came of it is.
func (c *Configured) holds(node int32, e *entry) bool {
	return slices.ContainsFunc(c.forest.children[node], func(child int32) bool {
		s, ok := c.subject(child)
		if !ok || s.shellLine() {
			return false
		}
		words, exact := e.started(&s)
		sure, _ := e.recognises(&s, exact)
		return words > 0 && sure == Certain
	})
}

// about returns the entries that may have to do with a process, ascending.
func (c *Configured) about(s *subject) []int {
	var out []int
	for _, k := range s.keys() {
		out = append(out, c.by[k]...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ofOwner chooses among equal entries the one of the client that the process is below.
func (c *Configured) ofOwner(node int32, matches []match) match {
	for up := c.forest.parent[node]; up != none; up = c.forest.parent[up] {
		if role := c.recs[up].role(); role != RoleClient && role != RoleGateway {
			continue
		}
		for _, m := range matches {
			if c.found.Servers[m.index].Client == c.recs[up].Name {
				return m
			}
		}
		break
	}
	return matches[0]
}
