package rules

import (
	"cmp"
	"slices"

	"mcpdoctor/scan"
)

// none is the node number of nobody.
const none = -1

// lineage says what became of the parent that a process names.
type lineage uint8

const (
	rooted    lineage = iota // no parent is named (PID 0), or the kernel's
	living                   // the parent is in the table
	missing                  // the named PID is not in the table
	recycled                 // the named PID is younger than its child: it was given to another process
	untold                   // the source does not name parents
	untangled                // the named parents form a circle, which was cut here
)

// forest is the process table as trees. Nodes are numbered in PID order, so that whatever order
// the table came in, all that is derived from it is the same.
type forest struct {
	procs    []*scan.Process
	parent   []int32 // the node above, or none
	lineage  []lineage
	children [][]int32 // ascending; shares one array
	byPID    map[int]int32
}

func newForest(s *scan.Snapshot) *forest {
	n := len(s.Processes)
	f := &forest{
		procs:    make([]*scan.Process, n),
		parent:   make([]int32, n),
		lineage:  make([]lineage, n),
		children: make([][]int32, n),
		byPID:    make(map[int]int32, n),
	}
	for i := range s.Processes {
		f.procs[i] = &s.Processes[i]
	}
	slices.SortStableFunc(f.procs, func(a, b *scan.Process) int {
		if a.PID != b.PID {
			return a.PID - b.PID
		}
		return cmp.Compare(a.Start, b.Start)
	})
	for i, p := range f.procs {
		f.byPID[p.PID] = int32(i) // of two rows with one PID the later started is the living one
	}
	for i, p := range f.procs {
		f.parent[i], f.lineage[i] = f.findParent(int32(i), p)
	}
	f.cutCircles()
	f.linkChildren()
	return f
}

// findParent resolves the PID that p names as its parent. A process cannot be younger than its
// child, so a younger one only has the number of the dead parent (common on Windows, where the
// number stays for ever; proc_pid_stat(5) gives 1 or a subreaper instead).
func (f *forest) findParent(i int32, p *scan.Process) (int32, lineage) {
	switch {
	case p.PPID < 0:
		return none, untold
	case p.PPID == 0 || p.PID == 0:
		return none, rooted
	}
	at, ok := f.byPID[p.PPID]
	if !ok {
		return none, missing
	}
	if at == i {
		return none, untangled
	}
	if parent := f.procs[at]; parent.Start > 0 && p.Start > 0 && parent.Start > p.Start {
		return none, recycled
	}
	return at, living
}

// cutCircles makes a tree of whatever the table says. Circles cannot exist in one moment's truth,
// but a table is read over several milliseconds, and text may hold anything.
func (f *forest) cutCircles() {
	const (
		unseen = iota
		open
		done
	)
	mark := make([]uint8, len(f.procs))
	var path []int32
	for i := range f.procs {
		path = path[:0]
		at := int32(i)
		for at != none && mark[at] == unseen {
			mark[at] = open
			path = append(path, at)
			at = f.parent[at]
		}
		if at != none && mark[at] == open { // came back to this very path: cut above its lowest PID
			lowest := at
			for up := f.parent[at]; up != at; up = f.parent[up] {
				lowest = min(lowest, up)
			}
			f.parent[lowest], f.lineage[lowest] = none, untangled
		}
		for _, p := range path {
			mark[p] = done
		}
	}
}

func (f *forest) linkChildren() {
	count := make([]int32, len(f.procs))
	total := 0
	for _, p := range f.parent {
		if p != none {
			count[p]++
			total++
		}
	}
	room := make([]int32, total)
	for i, c := range count {
		f.children[i] = room[:0:c]
		room = room[c:]
	}
	for i, p := range f.parent {
		if p != none {
			f.children[p] = append(f.children[p], int32(i))
		}
	}
}

// at returns the node of a PID, or none.
func (f *forest) at(pid int) int32 {
	if i, ok := f.byPID[pid]; ok {
		return i
	}
	return none
}

// walk calls visit for every process, parents before children.
func (f *forest) walk(visit func(node int32)) {
	var stack []int32
	for i := range f.procs {
		if f.parent[i] != none {
			continue
		}
		stack = append(stack[:0], int32(i))
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			visit(at)
			below := f.children[at]
			for k := len(below) - 1; k >= 0; k-- {
				stack = append(stack, below[k])
			}
		}
	}
}
