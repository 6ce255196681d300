package process

import (
	"cmp"
	"slices"

	"mcpdoctor/scan"
)

// none is the node number of nobody.
const None = -1

// lineage says what became of the parent that a process names.
type ParentState uint8

const (
	ParentNone    ParentState = iota // no parent is named (PID 0), or the kernel's
	ParentAlive                      // the parent is in the table
	ParentMissing                    // the named PID is not in the table
	ParentReused                     // the named PID is younger than its child: it was given to another process
	ParentUnknown                    // the source does not name parents
	ParentCyclic                     // the named parents form a circle, which was cut here
)

// forest is the process table as trees. Nodes are numbered in PID order, so that whatever order
// the table came in, all that is derived from it is the same.
type forest struct {
	Processes    []*scan.Process
	Parent       []int32 // the node above, or none
	ParentStates []ParentState
	Children     [][]int32 // ascending; shares one array
	byPID        map[int]int32
}

func NewForest(s *scan.Snapshot) *forest {
	n := len(s.Processes)
	f := &forest{
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
		if a.PID != b.PID {
			return a.PID - b.PID
		}
		return cmp.Compare(a.Start, b.Start)
	})
	for i, p := range f.Processes {
		f.byPID[p.PID] = int32(i) // of two rows with one PID the later started is the living one
	}
	for i, p := range f.Processes {
		f.Parent[i], f.ParentStates[i] = f.findParent(int32(i), p)
	}
	f.cutCircles()
	f.linkChildren()
	return f
}

// findParent resolves the PID that p names as its parent. A process cannot be younger than its
// child, so a younger one only has the number of the dead parent (common on Windows, where the
// number stays for ever; proc_pid_stat(5) gives 1 or a subreaper instead).
func (f *forest) findParent(i int32, p *scan.Process) (int32, ParentState) {
	switch {
	case p.PPID < 0:
		return None, ParentUnknown
	case p.PPID == 0 || p.PID == 0:
		return None, ParentNone
	}
	at, ok := f.byPID[p.PPID]
	if !ok {
		return None, ParentMissing
	}
	if at == i {
		return None, ParentCyclic
	}
	if parent := f.Processes[at]; parent.Start > 0 && p.Start > 0 && parent.Start > p.Start {
		return None, ParentReused
	}
	return at, ParentAlive
}

// cutCircles makes a tree of whatever the table says. Circles cannot exist in one moment's truth,
// but a table is read over several milliseconds, and text may hold anything.
func (f *forest) cutCircles() {
	const (
		unseen = iota
		open
		done
	)
	mark := make([]uint8, len(f.Processes))
	var path []int32
	for i := range f.Processes {
		path = path[:0]
		at := int32(i)
		for at != None && mark[at] == unseen {
			mark[at] = open
			path = append(path, at)
			at = f.Parent[at]
		}
		if at != None && mark[at] == open { // came back to this very path: cut above its lowest PID
			lowest := at
			for up := f.Parent[at]; up != at; up = f.Parent[up] {
				lowest = min(lowest, up)
			}
			f.Parent[lowest], f.ParentStates[lowest] = None, ParentCyclic
		}
		for _, p := range path {
			mark[p] = done
		}
	}
}

func (f *forest) linkChildren() {
	count := make([]int32, len(f.Processes))
	total := 0
	for _, p := range f.Parent {
		if p != None {
			count[p]++
			total++
		}
	}
	room := make([]int32, total)
	for i, c := range count {
		f.Children[i] = room[:0:c]
		room = room[c:]
	}
	for i, p := range f.Parent {
		if p != None {
			f.Children[p] = append(f.Children[p], int32(i))
		}
	}
}

// at returns the node of a PID, or none.
func (f *forest) Node(pid int) int32 {
	if i, ok := f.byPID[pid]; ok {
		return i
	}
	return None
}

// walk calls visit for every process, parents before children.
func (f *forest) Walk(visit func(node int32)) {
	var stack []int32
	for i := range f.Processes {
		if f.Parent[i] != None {
			continue
		}
		stack = append(stack[:0], int32(i))
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			visit(at)
			below := f.Children[at]
			for k := len(below) - 1; k >= 0; k-- {
				stack = append(stack, below[k])
			}
		}
	}
}
