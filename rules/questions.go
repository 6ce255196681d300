package rules

import (
	"slices"

	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

// Doubts are the processes of which one more, dearer look would decide something. All are
// ascending, and empty when nothing is in doubt.
type Questions struct {
	// Holders are PIDs that have no client above them: who holds their stdin when it is open, and who
	// reads what they write when it is not?
	Holders []int

	// Services are PIDs that would be given up if it were known that no service manager keeps them.
	Services []int

	// Settling have a dead stdin, but may be shutting down at this very moment: is it still so in
	// a few seconds? A later judgement is told which by [Options].Settled.
	Settling []scan.ID
}

// FindDoubts is to be asked after the closer look, and before the judgement.
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
		l, lost := j.judgeOrphan(in)
		if !lost {
			continue
		}
		if w == process.StdinClosed && in.Owner.Kind != process.OwnerTerminal {
			d.Holders = append(d.Holders, in.PIDs()...)
		}
		if j.unasked(in) || j.Snapshot.Host.Services == nil {
			d.Services = append(d.Services, in.PIDs()...)
		}
		if w == process.StdinClosed && (j.below(in) || !j.ripe(in)) && l.confidence != process.Possible {
			d.Settling = append(d.Settling, in.Root().ID())
		}
	}
	for _, in := range j.WithRole(process.RoleHelper) {
		if in.Owner.Kind == process.OwnerNobody && (j.unasked(in) || j.Snapshot.Host.Services == nil) {
			d.Services = append(d.Services, in.PIDs()...)
		}
	}
	slices.Sort(d.Holders)
	slices.Sort(d.Services)
	return d
}
