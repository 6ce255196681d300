package process

import (
	"cmp"
	"slices"

	"mcpdoctor/scan"
)

// None is the node of a process that is not in the table.
const None = -1

// ParentState is what is known about the parent that a process names.
type ParentState uint8

// The states of a parent.
const (
	ParentNone    ParentState = iota // no parent is named (PID 0), or it is the kernel
	ParentAlive                      // the parent is in the table
	ParentMissing                    // the named PID is not in the table
	ParentReused                     // the named PID is younger than its child: it belongs to another process now
	ParentUnknown                    // the source does not name parents
	ParentCyclic                     // the named parents form a circle, which was cut here
)

// Forest is the process table as trees. Nodes are numbered by PID, so that the order of the table changes nothing
// that is derived from it.
type Forest struct {
	Processes    []*scan.Process
	Parent       []int32 // the node above, or None
	ParentStates []ParentState
	Children     [][]int32 // ascending
	byPID        map[int]int32
}

// newForest builds the forest of a snapshot.
func newForest(s *scan.Snapshot) *Forest {
	n := len(s.Processes)
	f := &Forest{
		Processes:    make([]*scan.Process, n),
		Parent:       make([]int32, n),
		ParentStates: make([]ParentState, n),
		Children:     make([][]int32, n),
		byPID:        make(map[int]int32, n),
	}
	for i := range s.Processes {
		f.Processes[i] = &s.Processes[i]
	}
	slices.SortStableFunc(f.Processes, func(a, b *scan.Process) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Start, b.Start))
	})
	for i, p := range f.Processes {
		f.byPID[p.PID] = int32(i) // of two rows with one PID, the process that started later is running
	}
	for i, p := range f.Processes {
		f.Parent[i], f.ParentStates[i] = f.findParent(int32(i), p)
	}
	f.cutCircles()
	for i, up := range f.Parent {
		if up != None {
			f.Children[up] = append(f.Children[up], int32(i))
		}
	}
	return f
}

// findParent resolves the PID that p names as its parent. No process is younger than its child, so a younger one has
// been given the PID of the dead parent. This is common on Windows, where that number never changes; on Linux an
// orphan's is that of its adopter (proc_pid_stat(5)).
func (f *Forest) findParent(node int32, p *scan.Process) (int32, ParentState) {
	switch {
	case p.PPID < 0:
		return None, ParentUnknown
	case p.PPID == 0 || p.PID == 0:
		return None, ParentNone
	}
	up, ok := f.byPID[p.PPID]
	switch {
	case !ok:
		return None, ParentMissing
	case up == node:
		return None, ParentCyclic
	case f.Processes[up].Start > 0 && p.Start > 0 && f.Processes[up].Start > p.Start:
		return None, ParentReused
	}
	return up, ParentAlive
}

// cutCircles cuts circles of parents above their lowest PID. A table is read over several milliseconds, so PIDs may be
// reused meanwhile, and pasted text may contain anything.
func (f *Forest) cutCircles() {
	walk := make([]int32, len(f.Processes)) // the first walk that came to a node, counted from 1
	for i := range f.Processes {
		node := int32(i)
		for node != None && walk[node] == 0 {
			walk[node] = int32(i) + 1
			node = f.Parent[node]
		}
		if node == None || walk[node] != int32(i)+1 {
			continue
		}
		lowest := node
		for up := f.Parent[node]; up != node; up = f.Parent[up] {
			lowest = min(lowest, up)
		}
		f.Parent[lowest], f.ParentStates[lowest] = None, ParentCyclic
	}
}

// Node returns the node of a PID, or None.
func (f *Forest) Node(pid int) int32 {
	if i, ok := f.byPID[pid]; ok {
		return i
	}
	return None
}

// Walk calls visit for every process, parents before children.
func (f *Forest) Walk(visit func(node int32)) {
	var stack []int32
	for i, up := range f.Parent {
		if up != None {
			continue
		}
		stack = append(stack, int32(i))
		for len(stack) > 0 {
			node := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			visit(node)
			for _, child := range slices.Backward(f.Children[node]) {
				stack = append(stack, child)
			}
		}
	}
}
