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
		w, _ := in.Stdin()
		l := j.judgeOrphan(in)
		closed, adopted := l != nil && w == process.StdinClosed, in.Owner.Kind == process.OwnerNobody
		if adopted && in.Role == process.RoleServer && w == process.StdinOpen || closed && in.Owner.Kind != process.OwnerTerminal {
			d.Holders = append(d.Holders, in.PIDs()...)
		}
		if (l != nil || adopted && in.Role == process.RoleHelper) && (unasked(in) || j.Snapshot.Host.Services == nil) {
			d.Services = append(d.Services, in.PIDs()...)
		}
		if closed && (j.below(in) || !pastGrace(in)) && l.confidence != process.Possible {
			d.Settling = append(d.Settling, in.Root().ID())
		}
	}
	slices.Sort(d.Holders)
	slices.Sort(d.Services)
	return d
}
