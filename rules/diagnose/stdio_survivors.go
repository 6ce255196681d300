package diagnose

import (
	"fmt"

	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/facts"
	"mcpdoctor/scan/terminate"
)

// survivors is a process tree of which some processes did not exit.
type survivors struct {
	*processTree
	self int // the PID of mcpdoctor
	left map[scan.ID]*facts.Leftover
}

// of returns what is known of p as a survivor; nil when it exited.
func (s *survivors) of(p *scan.Process) *facts.Leftover { return s.left[p.ID()] }

// cause says what has to be changed.
type cause struct {
	wrapper bool // a wrapper withholds stdin or a signal from the server, or stays itself
	stdin   bool // the server ignores the end of its stdin
	signal  bool // the server ignores SIGTERM
	helper  bool // the server does not terminate its helpers
}

// survived judges a check after which processes were left.
func (j *stdioJudge) survived(id Topic, e facts.End) StdioRow {
	s := &survivors{processTree: j.tree(e.Before), self: j.Self, left: map[scan.ID]*facts.Leftover{}}
	r := stdioRow(id, Failed, fmt.Sprintf("no: %d of %s still running after %s",
		len(e.Left), format.Count(len(e.Before), "process"), format.Age(j.Timeout)))
	for i := range e.Left {
		l := &e.Left[i]
		s.left[l.Process.ID()] = l
		r.Left = append(r.Left, s.row(l))
	}
	var why cause
	if e.Way == facts.Terminate {
		r.Because, why = s.afterSignal()
	} else {
		r.Because, why = s.afterStdin()
	}
	r.Remedy = j.remedy(s.processTree, why)
	return r
}

func (s *survivors) row(l *facts.Leftover) Survivor {
	p := &l.Process
	row := Survivor{
		PID: p.PID, PPID: p.PPID, Adopted: l.Adopted, Kind: s.kind(p), Name: s.name(p),
		Command: process.CommandLine(p), Argv: p.Args, RSSBytes: p.RSSBytes,
	}
	switch up := s.byPID[p.PPID]; {
	case up != nil:
		row.Parent = s.describe(up)
	case p.PPID != s.self:
		row.Parent = fmt.Sprintf("pid %d", p.PPID)
	case l.Adopted:
		row.Parent = "mcpdoctor, in place of PID 1"
	default:
		row.Parent = "mcpdoctor"
	}
	if l.CPU >= 0 {
		row.CPUPercent = &l.CPU
	}
	return row
}

// afterStdin explains what was left after stdin was closed, or after the client that held it was killed.
func (s *survivors) afterStdin() (because []string, c cause) {
	main := s.of(s.main)
	switch {
	case main != nil && stdinOpen(main):
		because = append(because, s.describe(s.main)+" never saw its stdin close: "+s.holder(main)+" still holds the other end")
		c.wrapper = s.main != s.root
	case main != nil:
		because = append(because, s.describe(s.main)+" kept running after its stdin was closed"+busy(main))
		c.stdin = true
	}
	for _, p := range s.order {
		l := s.of(p)
		if l == nil || p == s.main {
			continue
		}
		why := ""
		switch wrapper := s.kind(p) == LayerWrapper; {
		case wrapper && main != nil:
			why = s.describe(p) + " is waiting for its child"
		case wrapper:
			why, c.wrapper = s.describe(p)+" kept running after the server exited", true
		case main != nil:
			why = s.describe(p) + " kept running with the server"
		default:
			why, c.helper = s.helper(p), true
		}
		because = append(because, why+busy(l))
	}
	if main != nil && main.Outcome == terminate.Killed {
		because = append(because, s.describe(s.main)+" ignored SIGTERM as well, and was killed with SIGKILL")
		c.signal = true
	}
	return because, c
}

// afterSignal explains what was left after the root process was sent SIGTERM.
func (s *survivors) afterSignal() (because []string, c cause) {
	for _, p := range s.order {
		l := s.of(p)
		if l == nil {
			continue
		}
		up := s.byPID[p.PPID]
		ignores := l.Outcome == terminate.Killed
		why := ""
		switch {
		case p == s.root:
			why = s.describe(p) + " received SIGTERM and did not exit"
			c.signal, c.wrapper = p == s.main, p != s.main
		case s.kind(p) == LayerHelper && s.of(s.main) == nil:
			why, c.helper = s.helper(p), true
		case up == nil:
			why, c.helper = s.describe(p)+" had already lost its parent, and kept running", true
		case s.of(up) == nil && ignores:
			why = fmt.Sprintf("%s exited; %s kept running, ignored a SIGTERM of its own, and was killed with SIGKILL", s.describe(up), s.describe(p))
			c.wrapper, c.signal = true, true
		case s.of(up) == nil:
			why = fmt.Sprintf("%s exited without forwarding SIGTERM; %s kept running until it received SIGTERM itself",
				s.describe(up), s.describe(p))
			c.wrapper = true
		default:
			why = s.describe(p) + " kept running below it"
			c.signal = c.signal || p == s.main && ignores
		}
		because = append(because, why+busy(l))
	}
	return because, c
}

func (s *survivors) helper(p *scan.Process) string {
	return s.describe(p) + ", a helper of the server, kept running after the server exited"
}

// holder names the process at the other end of a survivor's stdin.
func (s *survivors) holder(l *facts.Leftover) string {
	for _, pid := range l.Process.Stdin.Holders {
		if p := s.byPID[pid]; p != nil {
			return s.describe(p)
		}
	}
	return "another process"
}

// stdinOpen reports whether a process holds the other end of a survivor's stdin.
func stdinOpen(l *facts.Leftover) bool {
	in := l.Process.Stdin
	return in != nil && in.FD == 0 && in.Peer == scan.PeerOpen
}

// busy says how much CPU a survivor uses, if that is worth a word.
func busy(l *facts.Leftover) string {
	const least = 20 // percent of a core: an idle server with a timer uses less than one
	if l.CPU >= least {
		return fmt.Sprintf(", at %.0f %% CPU", l.CPU)
	}
	return ""
}
