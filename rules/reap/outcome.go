package reap

import (
	"fmt"
	"slices"

	"mcpdoctor/scan/terminate"
)

// Told returns the plan with what became of each process: fates are what [terminate.Terminate] returned for
// [Plan.Groups].
func (p *Plan) WithResults(fates [][]terminate.Result) *Plan {
	out := *p
	out.Acted, out.Instances = true, slices.Clone(p.Instances)
	next := 0
	for i := range out.Instances {
		if d := &out.Instances[i]; d.Outcome == Planned {
			d.told(fates[next])
			next++
		}
	}
	out.summarise()
	return &out
}

// worst are the outcomes of processes from the worst to the best: an instance has that of the worst
// of its processes.
var worst = []terminate.Outcome{terminate.Survived, terminate.Refused, terminate.Unasked, terminate.Unsettled, terminate.Killed, terminate.Ended, terminate.Gone}

func (d *PlannedInstance) told(fates []terminate.Result) {
	d.Processes = slices.Clone(d.Processes)
	found := map[terminate.Outcome]string{}
	for i, f := range fates {
		s := &d.Processes[i]
		s.Outcome, s.Reason = Outcome(f.Outcome), says(f)
		if found[f.Outcome] == "" {
			found[f.Outcome] = fmt.Sprintf("pid %d: %s", s.PID, s.Reason)
		}
	}
	for _, o := range worst {
		if reason, ok := found[o]; ok {
			d.Outcome = Outcome(o)
			if o == terminate.Survived || o == terminate.Refused || o == terminate.Unasked || o == terminate.Unsettled {
				d.Reason = reason
			}
			return
		}
	}
}

// says explains a fate that is not the one that was hoped for.
func says(f terminate.Result) string {
	switch f.Outcome {
	case terminate.Refused:
		return fmt.Sprintf("it could not be signalled: %v", f.Err)
	case terminate.Survived:
		return "it is still there after SIGKILL: the kernel waits for a device or a file system"
	case terminate.Unasked:
		return "nothing was sent to it: mcpdoctor was interrupted"
	case terminate.Unsettled:
		return "it was asked to end and had not when mcpdoctor was interrupted"
	}
	return ""
}

// weigh adds up the memory of what is to be ended.
func (d *PlannedInstance) weigh() {
	d.RSSBytes, d.PSSBytes = 0, 0
	known := true
	for _, s := range d.Processes {
		if s.RSSBytes != nil {
			d.RSSBytes += *s.RSSBytes
		}
		if known = known && s.pss != nil; known {
			d.PSSBytes += *s.pss
		}
	}
	if !known {
		d.PSSBytes = 0
	}
}

// summarise counts the plan as it stands.
func (p *Plan) summarise() {
	s := Summary{Instances: len(p.Instances)}
	known := true
	for _, d := range p.Instances {
		s.Processes += len(d.Processes)
		switch d.Outcome {
		case Outcome(terminate.Gone), Outcome(terminate.Ended), Outcome(terminate.Killed):
			s.Ended++
		case Skipped:
			s.Skipped++
		case Outcome(terminate.Refused):
			s.Refused++
		case Outcome(terminate.Survived):
			s.Survived++
		case Outcome(terminate.Unasked), Outcome(terminate.Unsettled):
			s.Interrupted++
		}
		for _, one := range d.Processes {
			if !one.counts() {
				continue
			}
			if one.RSSBytes != nil {
				s.RSSBytes += *one.RSSBytes
			}
			if known = known && one.pss != nil; known {
				s.PSSBytes += *one.pss
			}
		}
	}
	if !known {
		s.PSSBytes = 0
	}
	p.Summary = s
}

// counts tells that a process's memory came back, or is to. What ended by itself is not our doing.
func (s Target) counts() bool {
	return s.Outcome == Planned || s.Outcome == Outcome(terminate.Ended) || s.Outcome == Outcome(terminate.Killed)
}

// Failed tells that something that was planned is still there, for another reason than that it is
// spared.
func (p *Plan) Failed() bool {
	return p.Summary.Refused+p.Summary.Survived+p.Summary.Interrupted > 0
}
