package reap_test

import (
	"slices"
	"testing"

	"mcpdoctor/rules/reap"
	"mcpdoctor/testdata/tables"
)

// Each case's plan contains exactly what the case calls safe, or, with every rule named, on request too: no law keeps
// any of it.
func TestPlanOfCases(t *testing.T) {
	tables.EachCase(t, "../../testdata/snapshots", planCase)
}

func planCase(t *testing.T, c *tables.Case) {
	for i := range c.Snapshot.Processes {
		if p := &c.Snapshot.Processes[i]; p.TTY == "" {
			// The handed cases do not say. A plan would keep the sessions of a desktop application in one of
			// them for that: see TestLaw2NeverAClientWithATerminal.
			p.TTY = "-"
		}
	}
	up := 1
	if c.Snapshot.Host.Container {
		up = 0 // docker exec
	}
	self := addSelf(&c.Snapshot, up)
	for _, named := range [][]string{nil, everyRule()} {
		want := slices.Clone(c.Expect.Reap.Safe)
		if named != nil {
			want = append(want, c.Expect.Reap.OnRequest...)
		}
		p := planOn("a case", &c.Snapshot, reap.Consent{Rules: named, Self: self})
		tables.Same(t, "planned", p.plan.PIDs(), want)
		for _, pid := range c.Expect.Reap.Never {
			if slices.Contains(p.plan.PIDs(), pid) {
				t.Errorf("pid %d must never be reaped", pid)
			}
		}
		checkPlan(t, p)
		if t.Failed() {
			t.Logf("rules %v: kept are %+v", named, p.plan.Kept)
		}
	}
}
