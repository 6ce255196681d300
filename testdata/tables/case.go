// Package tables makes the process tables that the tests of several packages judge: machines built by
// hand, generated tables that no machine ever had, and the cases of testdata/snapshots.
package tables

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mcpdoctor/scan"
)

// Case is a snapshot that carries its own expectation. Every rule is applied to every case and
// the result compared exactly, so that each case guards every other rule against a false alarm.
type Case struct {
	Story    string        `json:"story"`
	Snapshot scan.Snapshot `json:"snapshot"`
	Expect   struct {
		Findings []struct {
			Rule string `json:"rule"`
			PIDs []int  `json:"pids"`
		} `json:"findings"`
		Healthy []int `json:"healthy"`
		NotMCP  []int `json:"not_mcp"`
		Reap    struct {
			Safe      []int `json:"safe"`
			OnRequest []int `json:"on_request"`
			Never     []int `json:"never"`
		} `json:"reap"`
	} `json:"expect"`
	// Disputed says why the expectation is not what the case was handed over with.
	Disputed string `json:"disputed"`
}

// EachCase runs a test on every case in a folder.
func EachCase(t *testing.T, dir string, test func(*testing.T, *Case)) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) < 24 {
		t.Fatalf("there are %d cases (%v), want at least the 24 handed ones", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c := new(Case)
			if err := json.Unmarshal(text, c); err != nil {
				t.Fatal(err)
			}
			test(t, c)
		})
	}
}

// Same compares two sets of PIDs.
func Same(t *testing.T, what string, got, want []int) {
	t.Helper()
	for _, pid := range got {
		if !slices.Contains(want, pid) {
			t.Errorf("%s: %d is not expected", what, pid)
		}
	}
	for _, pid := range want {
		if !slices.Contains(got, pid) {
			t.Errorf("%s: %d is missing", what, pid)
		}
	}
}
