package reap

import (
	"fmt"
	"slices"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/terminate"
)

// Confirm keeps in p, the plan of a second look, only what the first look planned too. What only the first planned is
// moved to p as skipped, with the reason.
func (p *Plan) Confirm(first *Plan) {
	before := first.ids()
	confirmed := []PlannedInstance{}
	for _, d := range p.Instances {
		if kept := d.confirm(before); kept != nil {
			p.Kept = append(p.Kept, *kept)
		} else {
			confirmed = append(confirmed, d)
		}
	}
	p.Instances = confirmed
	still := p.ids()
	for _, d := range first.Instances {
		if slices.ContainsFunc(d.Processes, func(t Target) bool { return still[t.id] }) {
			continue
		}
		d.Outcome, d.Reason = Skipped, p.whySkipped(d.Processes)
		if d.Reason == "" {
			d.Outcome, d.Reason = terminate.Gone, "it exited by itself between the looks"
		}
		for i := range d.Processes {
			d.Processes[i].Outcome = d.Outcome
		}
		p.Instances = append(p.Instances, d)
	}
	p.summarise()
}

// ids returns the identity of each process that is planned.
func (p *Plan) ids() map[scan.ID]bool {
	out := map[scan.ID]bool{}
	for _, d := range p.Instances {
		for _, t := range d.Processes {
			out[t.id] = true
		}
	}
	return out
}

// confirm keeps the processes that were planned before. A helper that was not is left alone; any other that was not
// keeps the whole instance.
func (d *PlannedInstance) confirm(before map[scan.ID]bool) *Kept {
	var confirmed []Target
	for _, t := range d.Processes {
		switch {
		case before[t.id]:
			confirmed = append(confirmed, t)
		case t.stage == helping:
			d.Left = append(d.Left, Kept{Server: d.Server, PIDs: []int{t.PID}, Rule: d.Rule, Reason: "it was not there at the first look"})
		default:
			reason := fmt.Sprintf("pid %d was not found to be leaked at the first look", t.PID)
			return &Kept{Server: d.Server, PIDs: pidsOf(d.Processes), Rule: d.Rule, Reason: reason}
		}
	}
	d.Processes = confirmed
	d.RSSBytes, d.PSSBytes = memory(confirmed)
	return nil
}

// whySkipped returns why the second look does not plan processes that the first did; "" if all have exited.
func (p *Plan) whySkipped(processes []Target) string {
	if !slices.ContainsFunc(processes, func(t Target) bool { return running(p.seen, t.id) }) {
		return ""
	}
	pids := pidsOf(processes)
	for _, k := range p.Kept {
		if overlap(k.PIDs, pids) {
			return k.Reason
		}
	}
	for _, s := range p.report.Servers {
		if s.Verdict != rules.Leaked && s.Verdict != rules.Suspect && overlap(s.PIDs, pids) {
			return "not leaked at the second look: " + s.Because
		}
	}
	return "not leaked at the second look"
}

// running reports whether the process that an ID names is in the table and has not exited.
func running(r *process.Recognised, id scan.ID) bool {
	at := r.Forest.Node(id.PID)
	return at != process.None && r.Forest.Processes[at].Start == id.Start && r.Forest.Processes[at].State != "Z"
}

func overlap(a, b []int) bool {
	return slices.ContainsFunc(a, func(n int) bool { return slices.Contains(b, n) })
}
