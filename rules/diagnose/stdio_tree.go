package diagnose

import (
	"fmt"
	"slices"

	"mcpdoctor/rules/command"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/facts"
)

// trialTree is the tree of one start, and who of it was left.
type trialTree struct {
	os     string
	self   int // the PID of who checked
	order  []*scan.Process
	before map[int]*scan.Process // by PID
	below  map[int][]*scan.Process
	left   map[scan.ID]*facts.Leftover
	top    *scan.Process
	main   *scan.Process // the server, when there is a tree
	chain  []*scan.Process
}

// treeOf finds the chain from the process that was started down to the server.
func (c *checked) treeOf(tree []scan.Process) *trialTree {
	t := &trialTree{os: c.OS, self: c.Self, before: map[int]*scan.Process{}, below: map[int][]*scan.Process{}, left: map[scan.ID]*facts.Leftover{}}
	for i := range tree {
		p := &tree[i]
		t.order = append(t.order, p)
		t.before[p.PID] = p
		t.below[p.PPID] = append(t.below[p.PPID], p)
	}
	if len(t.order) == 0 {
		return t
	}
	t.top = t.order[0]
	for p := t.top; p != nil && !slices.Contains(t.chain, p); p = t.starts(p) {
		t.main, t.chain = p, append(t.chain, p)
	}
	return t
}

// starts returns what a wrapper has started; nil when p is none. A program that nobody knows for a
// launcher is one when it has started what is known for a server, and is not known for one itself.
func (t *trialTree) starts(p *scan.Process) *scan.Process {
	children := t.below[p.PID]
	if len(children) == 0 {
		return nil
	}
	if len(command.Parse(p, t.os).Launchers) > 0 {
		return children[0]
	}
	if rec := process.Classify(p, t.os); rec.Serves() {
		return nil
	}
	for _, child := range children {
		if rec := process.Classify(child, t.os); rec.Serves() {
			return child
		}
	}
	return nil
}

func (t *trialTree) kind(p *scan.Process) LayerKind {
	switch i := slices.IndexFunc(t.chain, func(q *scan.Process) bool { return q.ID() == p.ID() }); {
	case i < 0:
		return LayerHelper
	case i < len(t.chain)-1:
		return LayerWrapper
	}
	return LayerServer
}

// name is what a layer is called: the launcher, the interpreter, or the program.
func (t *trialTree) name(p *scan.Process) string {
	c := command.Parse(p, t.os)
	switch {
	case len(c.Launchers) > 0:
		return c.Launchers[0]
	case c.Runtime != "":
		return c.Runtime
	case c.Program != "":
		return c.Program
	}
	return p.Name
}

func (t *trialTree) says(p *scan.Process) string { return fmt.Sprintf("%s (pid %d)", t.name(p), p.PID) }
