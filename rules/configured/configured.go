// Package configured relates the entries of clients' configuration files to the processes that they
// started, and says which configurations invite leaks. [Attribute] matches entries and processes,
// [Attribution.Report] is what `mcpdoctor config` prints.
package configured

import (
	"cmp"
	"slices"
	"strings"

	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/config"
)

// byConfigured is how a process was recognised that the command of an entry started: the strongest sign
// that there is, and the only one for a private script.
const byConfigured = "configured"

// Attribution is a process table together with the configured servers that run in it.
type Attribution struct {
	*process.Recognised
	found   config.Found
	entries []*entry        // of found.Servers
	names   map[string]bool // of the entries' commands

	// matches are the entries that started a node, as indexes into found.Servers: several if the same
	// command is configured more than once.
	matches map[int32][]int

	named map[int32]bool // nodes that have the name of an entry
}

// Folders returns the working directories of the running clients, which may contain project files. They
// are known after the closer look.
func Folders(r *process.Recognised) []config.Folder {
	var out []config.Folder
	for i, rec := range r.Recognitions {
		p := r.Forest.Processes[i]
		if rec.RoleOrNone() != process.RoleClient || p.CWD == "" || otherUser(r, p) {
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
		if rec == nil || otherUser(r, p) {
			continue
		}
		for _, flag := range rec.ConfigFlags() {
			file, _ := rec.Command.Flag(flag)
			if file == "" || file[0] == '{' || strings.Contains(file, "://") { // Claude Code also accepts the text itself
				continue
			}
			if n := (config.Named{Path: absolute(file, p.CWD), Client: rec.Name}); !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// otherUser reports whether a process belongs to another user than the one who runs mcpdoctor.
func otherUser(r *process.Recognised, p *scan.Process) bool {
	me := r.Snapshot.Host.UID
	return me != nil && p.UID != nil && *p.UID != *me
}

// Attribute recognises the processes that the configured commands started, and what follows from them for
// others. It expects the closer look at r to be done. It calls look, unless nil, for the few further
// processes whose working directory and stdin it needs.
func Attribute(r *process.Recognised, found config.Found, look func(pids []int)) *Attribution {
	a := &Attribution{
		Recognised: r, found: found,
		names: map[string]bool{}, matches: map[int32][]int{}, named: map[int32]bool{},
	}
	for i := range found.Servers {
		e := compileEntry(&found.Servers[i], found.Home, r.Snapshot.Host.OS)
		a.entries = append(a.entries, e)
		a.names[e.name] = true
	}
	if len(a.entries) == 0 {
		return a
	}
	looked := map[int]bool{}
	for _, pid := range r.NeedsExamination() {
		looked[pid] = true
	}
	lookAt := func(pids []int) {
		pids = slices.DeleteFunc(pids, func(pid int) bool { return looked[pid] })
		for _, pid := range pids {
			looked[pid] = true
		}
		if len(pids) > 0 && look != nil {
			look(pids)
		}
	}
	lookAt(a.candidates())
	r.Forest.Walk(a.configure)
	r.FollowRelations()
	lookAt(r.NeedsExamination())
	return a
}

// candidates returns the PIDs of processes with the words of an entry that were not recognised without it.
func (a *Attribution) candidates() (pids []int) {
	for i, p := range a.Forest.Processes {
		if a.Recognitions[i] != nil {
			continue
		}
		s, ok := a.subject(int32(i))
		if ok && slices.ContainsFunc(a.entries, func(e *entry) bool { words, _ := e.startedWith(s); return words > 0 }) {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// configure decides about one process; its parent has been decided about before.
func (a *Attribution) configure(node int32) {
	rec := a.Recognitions[node]
	if matches := a.matching(node); len(matches) > 0 {
		for _, m := range matches {
			a.matches[node] = append(a.matches[node], m.index)
		}
		if mayBeNamed(rec) {
			a.name(node, a.found.Servers[matches[0].index].Name, matches[0].sure)
		}
		return
	}
	// What a configured launcher started is the configured server, whatever it is called.
	up := a.Forest.Parent[node]
	if up == process.None || !a.named[up] || a.Recognitions[up].RoleOrNone() != process.RoleLauncher || !mayBeNamed(rec) {
		return
	}
	launcher := a.Recognitions[up]
	var sure process.Confidence
	if launcher.By == byConfigured {
		sure = launcher.Confidence
	}
	if (rec != nil || sure != "") && a.classify(node).Command.Program != "" && a.Forest.Processes[node].State != "Z" {
		a.name(node, launcher.Name, sure)
	}
}

// classify returns what is known of a process without its configuration.
func (a *Attribution) classify(node int32) process.Recognition {
	if a.Recognitions[node] != nil {
		return *a.Recognitions[node]
	}
	return process.Classify(a.Forest.Processes[node], a.Snapshot.Host.OS)
}

// mayBeNamed reports whether a process may have the name of a configured server. Gateways, clients and
// helpers keep their own, by which rules know them.
func mayBeNamed(rec *process.Recognition) bool {
	return rec == nil || rec.Role == process.RoleServer ||
		rec.Role == process.RoleLauncher && (rec.Target == process.RoleServer || rec.Target == "")
}

// name gives a process the name of a configured server. If sure is at least as much as is known without, it
// also makes a server or its launcher of the process.
func (a *Attribution) name(node int32, name string, sure process.Confidence) {
	rec := a.classify(node)
	rec.Name = name
	a.named[node] = true
	a.Recognitions[node] = &rec
	if sure == "" || certainty[sure] < certainty[rec.Confidence] {
		return
	}
	rec.By, rec.Confidence = byConfigured, sure
	if rec.Role == "" {
		rec.Role = process.RoleServer
		if l := rec.Command.Launchers; len(l) > 0 && !process.Container(l[0]) {
			rec.Role, rec.Target = process.RoleLauncher, process.RoleServer
		}
	}
	if rec.Command.Program == "" {
		rec.Command.Program = strings.ToLower(name) // code on the command line has no other name
	}
}

var certainty = map[process.Confidence]int{process.Certain: 3, process.Likely: 2, process.Possible: 1}

// match is an entry that started a process.
type match struct {
	index int                // into found.Servers
	sure  process.Confidence // empty if the process only gets its name
	words int                // that are the same; one more if the folder is
}

// matching returns the entries that started a process: the best, and all that are as good, first
// the one of the client that started it.
func (a *Attribution) matching(node int32) []match {
	s, ok := a.subject(node)
	if !ok {
		return nil
	}
	var out []match
	for i, e := range a.entries {
		sure, words := e.compare(s)
		named := words > 0 && s.rec != nil && e.mayName(s)
		if sure != "" && s.client == nil && s.runsLine() && !a.started(node, e) {
			sure, named = "", s.rec != nil
		}
		if sure == "" && !named {
			continue
		}
		if sameFolder(s.folder, e.folder) {
			words++
		}
		out = append(out, match{i, sure, words})
	}
	compare := func(a, b match) int {
		return cmp.Or(cmp.Compare(certainty[b.sure], certainty[a.sure]), cmp.Compare(b.words, a.words))
	}
	slices.SortStableFunc(out, compare)
	out = slices.DeleteFunc(out, func(m match) bool { return compare(m, out[0]) != 0 })
	own := func(m match) bool { return s.client != nil && a.found.Servers[m.index].Client == s.client.Name }
	if i := slices.IndexFunc(out, own); i > 0 {
		out[0], out[i] = out[i], out[0]
	}
	return out
}

// started reports whether the entry started a child of the process. Away from a client a line of shell
// is recognised only by what came of it.
func (a *Attribution) started(node int32, e *entry) bool {
	return slices.ContainsFunc(a.Forest.Children[node], func(child int32) bool {
		s, ok := a.subject(child)
		if !ok || s.runsLine() {
			return false
		}
		sure, _ := e.compare(s)
		return sure == process.Certain
	})
}
