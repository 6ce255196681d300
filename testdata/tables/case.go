// Package tables makes the process tables that the tests of several packages judge: machines built by
// hand, generated tables that no machine ever had, and the cases of testdata/snapshots.
package tables

import (
	"bytes"
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
	ID          string         `json:"id"`
	Source      string         `json:"source"`      // the address of the report; "constructed" when there is none
	Constructed bool           `json:"constructed"` // what the report left out was made up
	Story       string         `json:"story"`
	Snapshot    scan.Snapshot  `json:"snapshot"`
	Baseline    *scan.Snapshot `json:"baseline"` // an earlier look; nil for none
	Expect      Expectation    `json:"expect"`
	Disputed    string         `json:"disputed"` // why the expectation is not that of the report
}

// Expectation is the right answer to a case.
type Expectation struct {
	Findings []ExpectedFinding `json:"findings"`
	Healthy  []int             `json:"healthy"` // no finding above info names them
	NotMCP   []int             `json:"not_mcp"` // they have nothing to do with MCP
	Reap     struct {
		Safe      []int `json:"safe"`
		OnRequest []int `json:"on_request"`
		Never     []int `json:"never"` // neither of these: clients, gateways and PID 1 too
	} `json:"reap"`
	Hint string `json:"hint"` // the remedy, for the reader
}

// ExpectedFinding is all that one rule has to find; Why is for the reader.
type ExpectedFinding struct {
	Rule string `json:"rule"`
	PIDs []int  `json:"pids"`
	Why  string `json:"why,omitempty"`
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
			d := json.NewDecoder(bytes.NewReader(text))
			d.DisallowUnknownFields() // a misspelt expectation would be none
			if err := d.Decode(c); err != nil {
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
