package rules_test

import (
	"strings"
	"testing"

	"mcpdoctor/rules"
	"mcpdoctor/testdata/tables"
)

// Every rule documents itself in full, has a place of its own in judging, and has a case.
func TestRulesAreWhole(t *testing.T) {
	cases := map[string]int{}
	tables.EachCase(t, "../testdata/snapshots", func(_ *testing.T, c *tables.Case) {
		for _, f := range c.Expect.Findings {
			cases[f.Rule]++
		}
	})
	orders := map[int]string{}
	for _, r := range rules.Rules() {
		for field, text := range map[string]string{
			"ID": r.ID, "Title": r.Title, "Severity": string(r.Severity), "Reap": r.Reap, "Why": r.Why,
			"Evidence": strings.Join(r.Evidence, ""), "Wrong": strings.Join(r.Wrong, ""), "Remedy": strings.Join(r.Remedy, ""),
		} {
			if text == "" {
				t.Errorf("%s has no %s", r.ID, field)
			}
		}
		if other, taken := orders[r.Order]; taken {
			t.Errorf("%s and %s have the same Order", r.ID, other)
		}
		orders[r.Order] = r.ID
		if !r.Probe && cases[r.ID] == 0 {
			t.Errorf("%s has no case in testdata/snapshots (go run ./testdata/scripts/case makes one)", r.ID)
		}
	}
}
