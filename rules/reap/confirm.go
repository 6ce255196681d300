package reap

import (
	"fmt"
	"slices"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/terminate"
)

// Confirm returns what a second look leaves of the plan that a first one made: who is planned by
// both, and the others of the first with the reason why they are spared. Plan and report of the second
// look are of this table.
func Confirm(r *process.Recognised, first, second *Plan, rep *rules.Report) *Plan {
	was := map[scan.ID]bool{}
	for _, d := range first.Instances {
		for _, s := range d.Processes {
			was[s.id] = true
		}
	}
	out := *second
	out.Instances, out.Kept = []PlannedInstance{}, slices.Clone(second.Kept)
	still := map[scan.ID]bool{}
	for _, d := range second.Instances {
		d, kept := d.confirmed(was)
		if kept != nil {
			out.Kept = append(out.Kept, *kept)
			continue
		}
		for _, s := range d.Processes {
			still[s.id] = true
		}
		out.Instances = append(out.Instances, d)
	}
	for _, d := range first.Instances {
		if slices.ContainsFunc(d.Processes, func(s Target) bool { return still[s.id] }) {
			continue
		}
		d.Outcome, d.Reason = Skipped, whySpared(r, d, &out, rep)
		if d.Reason == "" {
			d.Outcome, d.Reason = Outcome(terminate.Gone), "it ended by itself between the looks"
		}
		d.Processes = slices.Clone(d.Processes)
		for i := range d.Processes {
			d.Processes[i].Outcome = d.Outcome
		}
		out.Instances = append(out.Instances, d)
	}
	out.summarise()
	return &out
}

// confirmed keeps of an instance what an earlier look planned as well. A helper that it did not plan
// is left out; any other process that it did not plan speaks against the whole.
func (d PlannedInstance) confirmed(was map[scan.ID]bool) (PlannedInstance, *Kept) {
	processes := d.Processes
	d.Processes, d.Left = nil, slices.Clone(d.Left)
	for _, s := range processes {
		switch {
		case was[s.id]:
			d.Processes = append(d.Processes, s)
		case s.stage == help:
			d.Left = append(d.Left, Kept{Server: d.Server, PIDs: []int{s.PID}, Rule: d.Rule, Reason: "it was not there at the first look"})
		default:
			all := pidsOf(processes)
			return d, &Kept{Server: d.Server, PIDs: all, Rule: d.Rule, Reason: fmt.Sprintf("the first look did not find that pid %d has leaked", s.PID)}
		}
	}
	d.weigh()
	return d, nil
}

// whySpared says why a second look does not plan what the first did; "" when nothing is left of it.
func whySpared(r *process.Recognised, d PlannedInstance, second *Plan, rep *rules.Report) string {
	if !slices.ContainsFunc(d.Processes, func(s Target) bool { return lives(r, s.id) }) {
		return ""
	}
	pids := pidsOf(d.Processes)
	for _, k := range second.Kept {
		if overlap(k.PIDs, pids) {
			return k.Reason
		}
	}
	for _, s := range rep.Servers {
		if s.Verdict != rules.Leaked && s.Verdict != rules.Suspect && overlap(s.PIDs, pids) {
			return "not leaked at the second look: " + s.Because
		}
	}
	return "not leaked at the second look"
}

// lives tells that the process that an ID names is in the table and has not ended.
func lives(r *process.Recognised, id scan.ID) bool {
	at := r.Forest.Node(id.PID)
	return at != process.None && r.Forest.Processes[at].Start == id.Start && r.Forest.Processes[at].State != "Z"
}

// pidsOf returns the PIDs of processes, ascending.
func pidsOf(processes []Target) []int {
	var out []int
	for _, s := range processes {
		out = append(out, s.PID)
	}
	slices.Sort(out)
	return out
}

func overlap(a, b []int) bool {
	return slices.ContainsFunc(a, func(n int) bool { return slices.Contains(b, n) })
}
