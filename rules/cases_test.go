package rules_test

import (
	"slices"
	"testing"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/testdata/tables"
)

func TestCases(t *testing.T) {
	tables.EachCase(t, "../testdata/snapshots", judgeCase)
}

func judgeCase(t *testing.T, c *tables.Case) {
	r := rules.Judge(process.Recognise(&c.Snapshot), rules.Options{Baseline: c.Baseline})

	want, got := map[string][]int{}, map[string][]int{}
	for _, f := range c.Expect.Findings {
		if rules.Lookup(f.Rule) == nil {
			t.Errorf("there is no rule %s", f.Rule)
		}
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
		tables.Same(t, "subjects of "+rule.ID, got[rule.ID], want[rule.ID])
	}
	tables.Same(t, "safe to reap", safe, c.Expect.Reap.Safe)
	tables.Same(t, "reaped on request", onRequest, c.Expect.Reap.OnRequest)
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
