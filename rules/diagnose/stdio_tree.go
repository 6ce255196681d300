package diagnose

import (
	"cmp"
	"fmt"
	"slices"

	"mcpdoctor/rules/command"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

// processTree is the server with its wrappers and helpers, at one start.
type processTree struct {
	os    string
	order []*scan.Process // as given: the root first
	byPID map[int]*scan.Process
	below map[int][]*scan.Process
	kinds map[scan.ID]LayerKind // from the root down to the server; the others are helpers
	root  *scan.Process         // the process that was started first; nil for an empty tree
	main  *scan.Process         // the server; nil for an empty tree
}

func (j *stdioJudge) tree(processes []scan.Process) *processTree {
	t := &processTree{os: j.OS, byPID: map[int]*scan.Process{}, below: map[int][]*scan.Process{}, kinds: map[scan.ID]LayerKind{}}
	for i := range processes {
		p := &processes[i]
		t.order = append(t.order, p)
		t.byPID[p.PID] = p
		t.below[p.PPID] = append(t.below[p.PPID], p)
	}
	if len(t.order) == 0 {
		return t
	}
	t.root = t.order[0]
	for p := t.root; p != nil && t.kinds[p.ID()] == ""; p = t.wrapped(p) {
		t.main, t.kinds[p.ID()] = p, LayerWrapper
	}
	t.kinds[t.main.ID()] = LayerServer
	return t
}

// wrapped returns the process that a wrapper started; nil when p is not a wrapper. An unknown program is one when it
// has started a known server and is not one itself.
func (t *processTree) wrapped(p *scan.Process) *scan.Process {
	children := t.below[p.PID]
	if len(children) == 0 {
		return nil
	}
	if len(command.Parse(p, t.os).Launchers) > 0 {
		return children[0]
	}
	serves := func(p *scan.Process) bool {
		rec := process.Classify(p, t.os)
		return rec.Serves()
	}
	if i := slices.IndexFunc(children, serves); i >= 0 && !serves(p) {
		return children[i]
	}
	return nil
}

func (t *processTree) kind(p *scan.Process) LayerKind {
	return cmp.Or(t.kinds[p.ID()], LayerHelper)
}

// name returns the launcher, the interpreter or the program of a process.
func (t *processTree) name(p *scan.Process) string {
	c := command.Parse(p, t.os)
	if len(c.Launchers) > 0 {
		return c.Launchers[0]
	}
	return cmp.Or(c.Runtime, c.Program, p.Name)
}

func (t *processTree) describe(p *scan.Process) string {
	return fmt.Sprintf("%s (pid %d)", t.name(p), p.PID)
}
