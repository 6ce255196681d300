package reap

import (
	"fmt"
	"slices"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan/terminate"
)

// Verify holds a plan that was carried out against this table, which is that of a look afterwards:
// who is said to have ended must not be in it. What the ended ones left behind is named in Problems,
// and was not touched: it is younger than the plan. The table before is that of the last look before
// the act.
func Verify(r *process.Recognised, p *Plan, before *process.Recognised) *Plan {
	out := *p
	out.Instances, out.Problems = slices.Clone(p.Instances), slices.Clone(p.Problems)
	acted := false
	for i := range out.Instances {
		d := &out.Instances[i]
		if d.Outcome == Skipped {
			continue
		}
		acted = true
		d.Processes = slices.Clone(d.Processes)
		for k := range d.Processes {
			s := &d.Processes[k]
			if s.Outcome.ended() && lives(r, s.id) {
				s.Outcome, s.Reason = Outcome(terminate.Survived), "it was taken for ended, and is there at a last look"
				d.Outcome, d.Reason = s.Outcome, fmt.Sprintf("pid %d: %s", s.PID, s.Reason)
			}
		}
	}
	if acted {
		out.Problems = append(out.Problems, leftBehind(r, before)...)
	}
	out.summarise()
	return &out
}

// leftBehind says what nobody holds now and was not there before.
func leftBehind(r, before *process.Recognised) []string {
	var out []string
	for _, f := range rules.Judge(r, rules.Options{}).Findings {
		if f.Rule != "orphan" && f.Rule != "leftover-helper" {
			continue
		}
		for _, row := range f.Processes {
			at := r.Forest.Node(row.PID)
			if at != process.None && slices.Contains(f.PIDs, row.PID) && !lives(before, r.Forest.Processes[at].ID()) {
				out = append(out, fmt.Sprintf("pid %d (%s) is new, and nobody holds it: what was ended may have started it. It was left alone, since it is too young", row.PID, row.Server))
			}
		}
	}
	return out
}

// ended tells that the process is not there any more.
func (o Outcome) ended() bool {
	return o == Outcome(terminate.Gone) || o == Outcome(terminate.Ended) || o == Outcome(terminate.Killed)
}
