package process

import (
	"testing"

	"mcpdoctor/scan"
)

func TestForest(t *testing.T) {
	row := func(pid, ppid int, start int64) scan.Process { return scan.Process{PID: pid, PPID: ppid, Start: start} }
	for _, c := range []struct {
		name string
		rows []scan.Process
		want map[int]ParentState
	}{
		{"a tree", []scan.Process{row(1, 0, 1), row(2, 1, 2), row(3, 2, 3)}, map[int]ParentState{1: ParentNone, 2: ParentAlive, 3: ParentAlive}},
		{"a parent younger than its child", []scan.Process{row(5, 0, 9), row(6, 5, 2)}, map[int]ParentState{6: ParentReused}},
		{"born in the same tick", []scan.Process{row(5, 0, 2), row(6, 5, 2)}, map[int]ParentState{6: ParentAlive}},
		{"a start that is not known", []scan.Process{row(5, 0, 9), row(6, 5, 0)}, map[int]ParentState{6: ParentAlive}},
		{"a parent that is not there", []scan.Process{row(6, 5, 2)}, map[int]ParentState{6: ParentMissing}},
		{"a process that is its own parent", []scan.Process{row(6, 6, 2)}, map[int]ParentState{6: ParentCyclic}},
		{"a circle", []scan.Process{row(4, 6, 0), row(5, 4, 0), row(6, 5, 0), row(7, 6, 0)}, map[int]ParentState{4: ParentCyclic, 5: ParentAlive, 6: ParentAlive, 7: ParentAlive}},
		{"parents that are not named", []scan.Process{row(4, -1, 0)}, map[int]ParentState{4: ParentUnknown}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newForest(&scan.Snapshot{Processes: c.rows})
			visited := map[int]int{}
			f.Walk(func(n int32) { visited[f.Processes[n].PID]++ })
			for _, r := range c.rows {
				if visited[r.PID] != 1 {
					t.Errorf("pid %d is visited %d times", r.PID, visited[r.PID])
				}
			}
			for pid, want := range c.want {
				if got := f.ParentStates[f.Node(pid)]; got != want {
					t.Errorf("pid %d has state %d, want %d", pid, got, want)
				}
			}
		})
	}
}

// A forest has each process once, with its parent before it, whatever the table says.
func FuzzForest(f *testing.F) {
	f.Add([]byte{1, 0, 1, 2, 1, 2, 3, 2, 3})
	f.Add([]byte{4, 6, 0, 5, 4, 0, 6, 5, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var s scan.Snapshot
		for i := 0; i+2 < len(b); i += 3 {
			s.Processes = append(s.Processes, scan.Process{PID: int(b[i] % 32), PPID: int(b[i+1]%34) - 1, Start: int64(b[i+2])})
		}
		forest := newForest(&s)
		seen := make([]bool, len(forest.Processes))
		n := 0
		forest.Walk(func(node int32) {
			if seen[node] {
				t.Fatalf("node %d is visited twice", node)
			}
			if up := forest.Parent[node]; up != None && !seen[up] {
				t.Fatalf("node %d is visited before its parent", node)
			}
			seen[node] = true
			n++
		})
		if n != len(s.Processes) {
			t.Fatalf("%d of %d processes are visited", n, len(s.Processes))
		}
	})
}
