package rules

import (
	"slices"

	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

// Questions are what a closer, more expensive look would decide. All PIDs are ascending.
type Questions struct {
	// Holders are processes without a client above them: which processes hold their stdin when it is open,
	// and which read their output when it is not?
	Holders []int

	// Services are processes that are leaked unless a supervisor keeps them.
	Services []int

	// Settling have a closed stdin but may be shutting down: are they still there in a few seconds?
	// [Options.Settled] takes the answer.
	Settling []scan.ID
}

// OpenQuestions returns what an examined table leaves open.
func OpenQuestions(r *process.Recognised) Questions {
	j := newJudgement(r, Options{})
	var d Questions
	for _, in := range j.Instances {
		if in.Service != nil || in.Owner.Kind == process.OwnerService || in.Role == process.RoleClient && !in.NonInteractive() {
			continue
		}
		w, _ := in.Stdin()
		if w == process.StdinOpen && in.Owner.Kind == process.OwnerNobody && in.Role == process.RoleServer {
			d.Holders = append(d.Holders, in.PIDs()...)
		}
		l := j.judgeOrphan(in)
		if l == nil {
			continue
		}
		if w == process.StdinClosed && in.Owner.Kind != process.OwnerTerminal {
			d.Holders = append(d.Holders, in.PIDs()...)
		}
		if unasked(in) || j.Snapshot.Host.Services == nil {
			d.Services = append(d.Services, in.PIDs()...)
		}
		if w == process.StdinClosed && (j.below(in) || !pastGrace(in)) && l.confidence != process.Possible {
			d.Settling = append(d.Settling, in.Root().ID())
		}
	}
	for _, in := range j.WithRole(process.RoleHelper) {
		if in.Owner.Kind == process.OwnerNobody && (unasked(in) || j.Snapshot.Host.Services == nil) {
			d.Services = append(d.Services, in.PIDs()...)
		}
	}
	slices.Sort(d.Holders)
	slices.Sort(d.Services)
	return d
}
