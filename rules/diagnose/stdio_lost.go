package diagnose

import (
	"fmt"
	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan/terminate"

	"mcpdoctor/scan"
	"mcpdoctor/scan/facts"
)

// judgeLeft says of whom stayed why they did, and what can be done.
func (c *checked) judgeLeft(e facts.End, r *CheckRow) {
	t := c.treeOf(e.Before)
	for i := range e.Left {
		t.left[e.Left[i].Process.ID()] = &e.Left[i]
		r.Left = append(r.Left, t.row(&e.Left[i]))
	}
	r.Verdict = CheckFailed
	r.Answer = fmt.Sprintf("no: %s of %d %s left after %s", format.Count(len(e.Left), "process"), len(e.Before), format.Plural(len(e.Left), "is", "are"), format.Age(c.Timeout))
	var b blame
	if e.Way == facts.Terminate {
		b = t.lostSignal(r)
	} else {
		b = t.lostEnd(r)
	}
	r.Remedy = c.remedy(t, b)
}

// blame is what has to be changed.
type blame struct {
	wrapper bool // it keeps from the server what is meant for it, or stays itself
	end     bool // the server does not see to the end of stdin
	signal  bool // the server does not see to SIGTERM
	helper  bool // the server does not see to what it has started
}

// row is one process that stayed, under whom.
func (t *trialTree) row(l *facts.Leftover) LeftRow {
	p := &l.Process
	row := LeftRow{PID: p.PID, PPID: p.PPID, Adopted: l.Adopted, Kind: t.kind(p), Name: t.name(p), Command: process.CommandLine(p), Argv: p.Args, RSSBytes: p.RSSBytes}
	switch up := t.before[p.PPID]; {
	case up != nil:
		row.Parent = t.says(up)
	case p.PPID != t.self:
		row.Parent = fmt.Sprintf("pid %d", p.PPID)
	case l.Adopted:
		row.Parent = "mcpdoctor, as PID 1 would have"
	default:
		row.Parent = "mcpdoctor"
	}
	if l.CPU >= 0 {
		row.CPUPercent = &l.CPU
	}
	return row
}

// lostEnd says why processes stayed at whose stdin nobody is any more.
func (t *trialTree) lostEnd(r *CheckRow) (b blame) {
	main := t.main
	l := t.left[main.ID()]
	switch {
	case l != nil && t.open(l):
		r.Because = append(r.Because, t.says(main)+" never saw the end of its stdin: "+t.holder(l)+" the other end")
		b.wrapper = main != t.top
	case l != nil:
		r.Because = append(r.Because, t.says(main)+" went on at the end of its stdin"+working(l))
		b.end = true
	}
	for _, p := range t.order {
		rest := t.left[p.ID()]
		switch {
		case rest == nil || p == main:
		case t.kind(p) == LayerWrapper && l != nil:
			r.Because = append(r.Because, t.says(p)+" waits for what it started"+working(rest))
		case t.kind(p) == LayerWrapper:
			r.Because = append(r.Because, t.says(p)+" stayed though the server had ended"+working(rest))
			b.wrapper = true
		case l != nil:
			r.Because = append(r.Because, t.says(p)+" stayed with the server"+working(rest))
		default:
			r.Because = append(r.Because, t.leftHelper(p)+working(rest))
			b.helper = true
		}
	}
	if l != nil && l.Outcome == terminate.Killed {
		r.Because = append(r.Because, t.says(main)+" was sent SIGTERM then, and had to be killed")
		b.signal = true
	}
	return b
}

// holder says who holds the other end of the stdin of who stayed.
func (t *trialTree) holder(l *facts.Leftover) string {
	for _, pid := range l.Process.Stdin.Holders {
		if p := t.before[pid]; p != nil {
			return t.says(p) + " holds"
		}
	}
	return "another process holds"
}

func (t *trialTree) leftHelper(p *scan.Process) string {
	return t.says(p) + ", which the server had started, stayed when the server ended"
}

// lostSignal says where a SIGTERM to the first process was lost.
func (t *trialTree) lostSignal(r *CheckRow) (b blame) {
	for _, p := range t.order {
		l := t.left[p.ID()]
		if l == nil {
			continue
		}
		up := t.before[p.PPID]
		alone := up == nil || t.left[up.ID()] == nil // what was above it has ended
		deaf := l.Outcome == terminate.Killed
		switch {
		case p == t.top:
			r.Because = append(r.Because, t.says(p)+" got SIGTERM and did not end"+working(l))
			b.signal, b.wrapper = p == t.main, p != t.main
		case t.kind(p) == LayerHelper && t.left[t.main.ID()] == nil:
			r.Because = append(r.Because, t.leftHelper(p)+working(l))
			b.helper = true
		case alone && up != nil && deaf:
			r.Because = append(r.Because, fmt.Sprintf("%s ended and %s stayed, and had to be killed after a SIGTERM of its own%s", t.says(up), t.says(p), working(l)))
			b.wrapper, b.signal = true, true
		case alone && up != nil:
			r.Because = append(r.Because, fmt.Sprintf("%s ended and did not pass SIGTERM on: %s stayed, and ended at a SIGTERM of its own%s", t.says(up), t.says(p), working(l)))
			b.wrapper = true
		case alone:
			r.Because = append(r.Because, t.says(p)+", which had lost its parent before, stayed"+working(l))
			b.helper = true
		default:
			r.Because = append(r.Because, t.says(p)+" stayed below it"+working(l))
			b.signal = b.signal || p == t.main && deaf
		}
	}
	return b
}

// working says what a process that stayed is doing.
func working(l *facts.Leftover) string {
	const busy = 20 // percent of a core: an idle server with a timer uses less than one
	if l.CPU >= busy {
		return fmt.Sprintf(", at %.0f %% CPU", l.CPU)
	}
	return ""
}

// open tells that somebody holds the other end of the stdin of who stayed.
func (t *trialTree) open(l *facts.Leftover) bool {
	in := l.Process.Stdin
	return in != nil && in.FD == 0 && in.Peer == scan.PeerOpen
}
