package rules

import (
	"slices"

	"mcpdoctor/scan"
)

// Doubts are the processes of which one more, dearer look would decide something. All are
// ascending, and empty when nothing is in doubt.
type Doubts struct {
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
func FindDoubts(r *Recognised) Doubts {
	t := newJudgement(r, Options{})
	var d Doubts
	for _, in := range t.instances {
		if in.service != nil || in.owner.Kind == OwnerService || in.role == RoleClient && !in.headless() {
			continue
		}
		w, _ := in.wire()
		if w == held && in.owner.Kind == OwnerNobody && in.role == RoleServer {
			d.Holders = append(d.Holders, in.pids()...)
		}
		l, lost := t.judgeOrphan(in)
		if !lost {
			continue
		}
		if w == dead && in.owner.Kind != OwnerTerminal {
			d.Holders = append(d.Holders, in.pids()...)
		}
		if t.unasked(in) || t.snap.Host.Services == nil {
			d.Services = append(d.Services, in.pids()...)
		}
		if w == dead && (t.below(in) || !t.ripe(in)) && l.confidence != Possible {
			d.Settling = append(d.Settling, in.root().ID())
		}
	}
	for _, in := range t.with(RoleHelper) {
		if in.owner.Kind == OwnerNobody && (t.unasked(in) || t.snap.Host.Services == nil) {
			d.Services = append(d.Services, in.pids()...)
		}
	}
	slices.Sort(d.Holders)
	slices.Sort(d.Services)
	return d
}
