package descendants

import (
	"slices"
	"testing"

	"mcpdoctor/scan"
)

func TestStrays(t *testing.T) {
	tree := &Tree{self: scan.ID{PID: 10, Start: 100}, known: map[scan.ID]bool{{PID: 20, Start: 110}: true}}
	s := &scan.Snapshot{Processes: []scan.Process{
		{PID: 1, Start: 1}, {PID: 5, PPID: 1, Start: 90}, {PID: 10, PPID: 5, Start: 100}, // older
		{PID: 20, PPID: 1, Start: 110},                                  // known
		{PID: 30, PPID: 5, Start: 120},                                  // another's
		{PID: 31, PPID: 30, Start: 121},                                 // of another's
		{PID: 32, PPID: 1, Start: 122, State: "Z"},                      // dead
		{PID: 40, PPID: 1, Start: 130},                                  // adopted by the first process
		{PID: 41, PPID: 40, Start: 131},                                 // below that
		{PID: 42, PPID: 7, Start: 132},                                  // its parent is gone
		{PID: 43, PPID: 44, Start: 133}, {PID: 44, PPID: 5, Start: 140}, // its parent's PID is another's now
	}}
	var got []int
	for _, p := range tree.Strays(s) {
		got = append(got, p.PID)
	}
	if want := []int{40, 42, 43}; !slices.Equal(got, want) {
		t.Errorf("strays are %v, want %v", got, want)
	}
	tree.subreaper = true
	if got := tree.Strays(s); got != nil {
		t.Errorf("where they are adopted there are %v", got)
	}
}
