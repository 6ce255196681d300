// Package descendants starts commands and finds and terminates everything below them, including processes that
// forked twice, changed their session or lost their parent.
package descendants

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"time"

	"mcpdoctor/scan"
	"mcpdoctor/scan/terminate"
)

// Tree is the set of the commands that this process started with [Tree.Start] and their descendants.
//
// On Linux, a process that has no other children becomes a child subreaper: it adopts every descendant that
// loses its parent, so that all processes below it are the tree. Elsewhere, and in a process that has children
// of other origin, a descendant that loses its parent is part of the tree only if [Tree.Look] saw it before.
type Tree struct {
	// Found is called with each process that Look finds for the first time; it may be nil.
	Found func(scan.ID)

	now       func() time.Time
	self      scan.ID
	exclusive bool         // this process has no children but those of the tree
	subreaper bool         // and adopts what loses its parent below it
	started   map[int]bool // by Start: os/exec waits for them
	known     map[scan.ID]bool
}

// New returns an empty tree. Close it when nothing is left in it.
func New(ctx context.Context, now func() time.Time) (*Tree, error) {
	s, err := scan.Take(ctx, scan.Options{Now: now()})
	if err != nil {
		return nil, err
	}
	self := os.Getpid()
	t := &Tree{now: now, exclusive: self != 1, started: map[int]bool{}, known: map[scan.ID]bool{}} // PID 1 adopts all orphans
	for i := range s.Processes {
		switch p := &s.Processes[i]; self {
		case p.PID:
			t.self = p.ID()
		case p.PPID:
			t.exclusive = false
		}
	}
	if t.self.PID == 0 {
		return nil, errors.New("the process table does not show mcpdoctor itself")
	}
	if t.exclusive {
		t.subreaper, err = setSubreaper(true)
	}
	return t, err
}

// Close makes this process stop adopting.
func (t *Tree) Close() {
	if t.subreaper {
		_, _ = setSubreaper(false)
	}
}

// Start starts a command in a session of its own, and closes exited when it has exited and cmd.ProcessState
// is set.
func (t *Tree) Start(cmd *exec.Cmd) (exited <-chan struct{}, err error) {
	Detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t.started[cmd.Process.Pid] = true
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // ProcessState has the result
		close(done)
	}()
	return done, nil
}

// Remember adds a process that was found by other means.
func (t *Tree) Remember(id scan.ID) {
	if t.known[id] {
		return
	}
	t.known[id] = true
	if t.Found != nil {
		t.Found(id)
	}
}

// Look takes a snapshot and returns it with the running processes of the tree, parents before their children
// and siblings by start.
func (t *Tree) Look(ctx context.Context) (*scan.Snapshot, []*scan.Process, error) {
	s, err := scan.Take(ctx, scan.Options{Now: t.now()})
	if err != nil {
		return nil, nil, err
	}
	byStart := make([]*scan.Process, len(s.Processes))
	for i := range s.Processes {
		byStart[i] = &s.Processes[i]
	}
	slices.SortFunc(byStart, func(a, b *scan.Process) int { return cmp.Or(cmp.Compare(a.Start, b.Start), a.PID-b.PID) })
	children := map[int][]*scan.Process{}
	for _, p := range byStart {
		children[p.PPID] = append(children[p.PPID], p)
	}

	var running []*scan.Process
	seen := map[*scan.Process]bool{}
	var add func(p *scan.Process)
	add = func(p *scan.Process) {
		if seen[p] {
			return
		}
		seen[p] = true
		t.Remember(p.ID())
		switch {
		case p.State != "Z":
			running = append(running, p)
		case p.PPID == t.self.PID && !t.started[p.PID]:
			reap(p.PID)
		}
		for _, child := range children[p.PID] {
			if child.Start >= p.Start { // a Windows PPID may name an exited process whose PID was reused
				add(child)
			}
		}
	}
	for _, p := range children[t.self.PID] {
		if t.started[p.PID] || t.exclusive && p.Start >= t.self.Start {
			add(p)
		}
	}
	for _, p := range byStart {
		if t.known[p.ID()] {
			add(p)
		}
	}
	return s, running, nil
}

// Strays returns processes of a snapshot that may be descendants without being known as such: they started
// after this process and have no parent. There are none where this process adopts its orphans.
func (t *Tree) Strays(s *scan.Snapshot) []scan.Process {
	if t.subreaper {
		return nil
	}
	start := make(map[int]int64, len(s.Processes))
	for _, p := range s.Processes {
		start[p.PID] = p.Start
	}
	var out []scan.Process
	for _, p := range s.Processes {
		parentStart, hasParent := start[p.PPID]
		orphan := p.PPID == 1 || !hasParent || parentStart > p.Start // reused, as in Look
		if orphan && p.Start >= t.self.Start && p.ID() != t.self && p.State != "Z" && !t.known[p.ID()] {
			out = append(out, p)
		}
	}
	return out
}

// Group returns processes in the order of [Tree.Look] as a group to terminate, the deepest first.
func Group(processes []*scan.Process) terminate.Group {
	depth := map[int]int{}
	var stages [][]scan.ID
	for _, p := range processes {
		d := 0
		if parent, ok := depth[p.PPID]; ok {
			d = parent + 1
		}
		depth[p.PID] = d
		if d == len(stages) {
			stages = append(stages, nil)
		}
		stages[d] = append(stages[d], p.ID())
	}
	slices.Reverse(stages)
	return terminate.Group{Stages: stages}
}

// Terminate terminates all processes of the tree, also when ctx has ended, and returns those that survived.
// They have grace between SIGTERM and SIGKILL.
func (t *Tree) Terminate(ctx context.Context, grace time.Duration) []*scan.Process {
	ctx = context.WithoutCancel(ctx)
	_, left, err := t.Look(ctx)
	if err == nil && len(left) > 0 {
		terminate.Terminate(ctx, terminate.Open, []terminate.Group{Group(left)}, grace)
		_, left, err = t.Look(ctx)
	}
	// Processes may have started others meanwhile. These have no grace, and each is a group of its own: one that
	// cannot be signalled must not protect the others.
	const rounds = 3
	for round := 0; round < rounds && err == nil && len(left) > 0; round++ {
		var each []terminate.Group
		for _, p := range left {
			each = append(each, Group([]*scan.Process{p}))
		}
		terminate.Terminate(ctx, terminate.Open, each, 0)
		_, left, err = t.Look(ctx)
	}
	return left
}
