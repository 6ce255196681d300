package reap

import (
	"fmt"
	"slices"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan/terminate"
)

// Record notes what became of each process. The results are those of [terminate.Terminate] for [Plan.Groups].
func (p *Plan) Record(results [][]terminate.Result) {
	p.Acted = true
	next := 0
	for i := range p.Instances {
		if d := &p.Instances[i]; d.Outcome == Planned {
			d.record(results[next])
			next++
		}
	}
	p.summarise()
}

// worstFirst orders outcomes: an instance has the worst outcome of its processes.
var worstFirst = []terminate.Outcome{
	terminate.Survived, terminate.Refused, terminate.NotStarted, terminate.NotFinished, terminate.Killed, terminate.Ended, terminate.Gone,
}

func (d *PlannedInstance) record(results []terminate.Result) {
	worst := len(worstFirst)
	for i, r := range results {
		t := &d.Processes[i]
		t.Outcome, t.Reason = r.Outcome, whyRunning(r)
		if n := slices.Index(worstFirst, r.Outcome); n < worst {
			worst = n
			d.setOutcome(t)
		}
	}
}

// setOutcome gives an instance the outcome of one of its processes.
func (d *PlannedInstance) setOutcome(t *Target) {
	d.Outcome, d.Reason = t.Outcome, ""
	if t.Reason != "" {
		d.Reason = fmt.Sprintf("pid %d: %s", t.PID, t.Reason)
	}
}

// whyRunning explains why a process is still running; "" if it has exited.
func whyRunning(r terminate.Result) string {
	switch r.Outcome {
	case terminate.Refused:
		return fmt.Sprintf("it could not be signalled: %v", r.Err)
	case terminate.Survived:
		return "it is still running after SIGKILL: the kernel is waiting for a device or file system"
	case terminate.NotStarted:
		return "mcpdoctor was interrupted before it sent SIGTERM"
	case terminate.NotFinished:
		return "mcpdoctor was interrupted after SIGTERM, before it had exited"
	}
	return ""
}

// Verify checks a plan that was carried out against a later table: what is said to have exited must not be in it.
// Orphans that were not there before are added to Problems, and left alone: they are younger than the plan.
func (p *Plan) Verify(after *process.Recognised) {
	acted := false
	for i := range p.Instances {
		d := &p.Instances[i]
		if d.Outcome == Skipped {
			continue
		}
		acted = true
		for k := range d.Processes {
			t := &d.Processes[k]
			if t.Outcome.Exited() && running(after, t.id) {
				t.Outcome, t.Reason = terminate.Survived, "it was thought to have exited, but is still running"
				d.setOutcome(t)
			}
		}
	}
	if acted {
		p.Problems = append(p.Problems, newOrphans(after, p.seen)...)
	}
	p.summarise()
}

// newOrphans describes the orphans in a table that were not in an earlier one.
func newOrphans(after, before *process.Recognised) []string {
	var out []string
	for _, f := range rules.Judge(after, rules.Options{}).Findings {
		if f.Rule != "orphan" && f.Rule != "leftover-helper" {
			continue
		}
		for _, row := range f.Processes {
			at := after.Forest.Node(row.PID)
			if at != process.None && slices.Contains(f.PIDs, row.PID) && !running(before, after.Forest.Processes[at].ID()) {
				out = append(out, fmt.Sprintf("pid %d (%s) is a new orphan, perhaps started by a terminated process; it is too young and was kept",
					row.PID, row.Server))
			}
		}
	}
	return out
}

// memory adds up the RSS of processes, and their PSS, which is 0 unless known for all.
func memory(processes []Target) (rss, pss int64) {
	known := true
	for _, t := range processes {
		if t.RSSBytes != nil {
			rss += *t.RSSBytes
		}
		if known = known && t.pss != nil; known {
			pss += *t.pss
		}
	}
	if !known {
		pss = 0
	}
	return rss, pss
}

// summarise counts the plan as it stands.
func (p *Plan) summarise() {
	p.Summary = Summary{Instances: len(p.Instances)}
	n := map[terminate.Outcome]int{}
	var released []Target // or to be released; not what exited by itself
	for _, d := range p.Instances {
		n[d.Outcome]++
		p.Summary.Processes += len(d.Processes)
		for _, t := range d.Processes {
			if t.Outcome == Planned || t.Outcome == terminate.Ended || t.Outcome == terminate.Killed {
				released = append(released, t)
			}
		}
	}
	p.Summary.Ended = n[terminate.Gone] + n[terminate.Ended] + n[terminate.Killed]
	p.Summary.Skipped = n[Skipped]
	p.Summary.Refused = n[terminate.Refused]
	p.Summary.Survived = n[terminate.Survived]
	p.Summary.Interrupted = n[terminate.NotStarted] + n[terminate.NotFinished]
	p.Summary.RSSBytes, p.Summary.PSSBytes = memory(released)
}

// Failed reports whether a process that was to be terminated is still running, other than by being skipped.
func (p *Plan) Failed() bool {
	return p.Summary.Refused+p.Summary.Survived+p.Summary.Interrupted > 0
}
