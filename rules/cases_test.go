package rules_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mcpdoctor/rules"
	"mcpdoctor/scan"
)

// A case is a snapshot that carries its own expectation. Every rule is applied to every case and
// the result compared exactly, so that each case guards every other rule against a false alarm.
type aCase struct {
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

func TestCases(t *testing.T) {
	files, err := filepath.Glob("../testdata/snapshots/*.json")
	if err != nil || len(files) < 24 {
		t.Fatalf("there are %d cases (%v), want at least the 24 handed ones", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { judgeCase(t, file) })
	}
}

func judgeCase(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c aCase
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	r := rules.Judge(rules.Recognise(&c.Snapshot), rules.Options{})

	want, got := map[string][]int{}, map[string][]int{}
	for _, f := range c.Expect.Findings {
		want[f.Rule] = append(want[f.Rule], f.PIDs...)
	}
	var safe, onRequest []int
	for _, f := range r.Findings {
		got[f.Rule] = append(got[f.Rule], f.PIDs...)
		safe = append(safe, f.Reap.Safe...)
		onRequest = append(onRequest, f.Reap.OnRequest...)
		if f.Severity == rules.Info {
			continue
		}
		for _, pid := range f.PIDs {
			if slices.Contains(c.Expect.Healthy, pid) || slices.Contains(c.Expect.NotMCP, pid) {
				t.Errorf("pid %d is healthy or has nothing to do with MCP, but %s says: %s", pid, f.Rule, f.Title)
			}
		}
	}
	for _, rule := range rules.Rules() {
		same(t, "subjects of "+rule.ID, got[rule.ID], want[rule.ID])
	}
	same(t, "safe to reap", safe, c.Expect.Reap.Safe)
	same(t, "reaped on request", onRequest, c.Expect.Reap.OnRequest)
	for _, pid := range c.Expect.Reap.Never {
		if slices.Contains(safe, pid) || slices.Contains(onRequest, pid) {
			t.Errorf("pid %d must never be reaped", pid)
		}
	}
	if t.Failed() {
		for _, f := range r.Findings {
			t.Logf("%s %s %s: %s %v", f.Severity, f.Confidence, f.Rule, f.Title, f.PIDs)
			for _, e := range f.Evidence {
				t.Log("    " + e)
			}
		}
		for _, s := range r.Servers {
			t.Logf("server %s %v owner %s %d %s (%s): %s, %s", s.Server, s.PIDs, s.Owner.Kind, s.Owner.PID, s.Owner.Name, s.RecognisedBy, s.Verdict, s.Because)
		}
		for _, c := range append(r.Clients, r.Gateways...) {
			t.Logf("client or gateway %s %d, %d servers", c.Name, c.PID, c.Servers)
		}
	}
}

// same compares two sets of PIDs.
func same(t *testing.T, what string, got, want []int) {
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
