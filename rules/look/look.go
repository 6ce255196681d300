// Package look takes one look at a machine: the process table first, then whatever the table leaves
// open, until no question is open any more or the time is up. Every verb that judges live processes
// starts with [Once] or [Twice].
//
// What can be asked, and of which processes, is the list of questions in this package; the answers come
// from a [Machine], which is scan on a real one and a fake in tests.
package look

import (
	"context"
	"maps"
	"slices"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/configured"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/config"
)

// Machine answers questions about the processes of one host. Each method fills its answers into the
// snapshot; what could not be read is named in the process's Unreadable.
type Machine interface {
	Take(ctx context.Context, now time.Time) (*scan.Snapshot, error)
	Examine(ctx context.Context, s *scan.Snapshot, pids, brief []int)
	Configuration(context.Context, []config.Folder, []config.Named) config.Found
	Versions(ctx context.Context, s *scan.Snapshot, programs map[int]string)
	Services(ctx context.Context, s *scan.Snapshot, pids []int)
	Holders(ctx context.Context, s *scan.Snapshot, pids []int)
	PSS(ctx context.Context, s *scan.Snapshot, pids []int)
}

// Options say what is asked beyond what decides a finding.
type Options struct {
	Thorough bool  // the sockets and the holders of every MCP process, also of those in use
	PSS      bool  // the memory that would come back, of every MCP process
	PSSOf    []int // the same, of these PIDs
}

// Sight is what one look saw.
type Sight struct {
	Snapshot   *scan.Snapshot
	Recognised *process.Recognised
	Configured *configured.Attribution

	// Settled are the processes whose stdin was closed at this look and at one [ConfirmAfter] earlier,
	// so that they are not just shutting down. Nil after a single look.
	Settled map[scan.ID]bool
}

// Once takes one look. An error means that the processes could not be listed at all.
func Once(ctx context.Context, m Machine, now time.Time, o Options) (*Sight, error) {
	snap, err := m.Take(ctx, now)
	if err != nil {
		return nil, err
	}
	seen := process.Recognise(snap)
	l := &looker{
		Options: o, machine: m, asked: map[string]map[int]bool{},
		sight: &Sight{Snapshot: snap, Recognised: seen, Configured: configured.Attribute(seen, config.Found{}, nil)},
	}
	for l.round(ctx) {
	}
	return l.sight, nil
}

// ConfirmAfter is how long a server whose stdin has just been closed may take to exit before it counts
// as left behind: clients on an SDK close stdin, wait 2 s, send SIGTERM, wait 2 s and send SIGKILL.
const ConfirmAfter = 5 * time.Second

// Twice looks, and looks again after [ConfirmAfter] when a server whose stdin is closed may be shutting
// down at this moment. Wait is called in between; its error ends the look.
func Twice(ctx context.Context, m Machine, clock func() time.Time, o Options, wait func(context.Context) error) (*Sight, error) {
	s, err := Once(ctx, m, clock(), o)
	if err != nil {
		return nil, err
	}
	before := rules.OpenQuestions(s.Recognised).Settling
	if len(before) == 0 {
		return s, nil
	}
	if err := wait(ctx); err != nil {
		return nil, err
	}
	if s, err = Once(ctx, m, clock(), o); err != nil {
		return nil, err
	}
	s.Settled = map[scan.ID]bool{}
	for _, id := range rules.OpenQuestions(s.Recognised).Settling {
		if slices.Contains(before, id) {
			s.Settled[id] = true
		}
	}
	return s, nil
}

// looker is one look while it goes on.
type looker struct {
	Options
	machine Machine
	sight   *Sight
	asked   map[string]map[int]bool // by question: the PIDs that it was asked about
	open    *rules.Questions        // what the rules leave open; nil when an answer may have changed it
}

// question is something that can be asked about processes. It is open for some PIDs, and is asked about
// each of them once.
type question struct {
	name string
	open func(*looker) []int
	ask  func(*looker, context.Context, []int)
}

// questions are asked in this order, which is that of their cost.
var questions = []question{
	{"examine", (*looker).unexamined, (*looker).examine},
	{"configuration", (*looker).unconfigured, (*looker).configure},
	{"versions", (*looker).unversioned, (*looker).findVersions},
	{"services", (*looker).unsupervised, (*looker).findServices},
	{"holders", (*looker).unheld, (*looker).findHolders},
	{"pss", (*looker).unmeasured, (*looker).readPSS},
}

// round asks every open question once and reports whether there was one. When ctx ends, what is still
// open stays unknown.
func (l *looker) round(ctx context.Context) (asked bool) {
	for _, q := range questions {
		if ctx.Err() != nil {
			return false
		}
		pids := slices.DeleteFunc(slices.Clone(q.open(l)), func(pid int) bool { return l.asked[q.name][pid] })
		if len(pids) == 0 {
			continue
		}
		l.mark(q.name, pids)
		q.ask(l, ctx, pids)
		asked, l.open = true, nil
	}
	return asked
}

func (l *looker) mark(question string, pids []int) {
	if l.asked[question] == nil {
		l.asked[question] = map[int]bool{}
	}
	for _, pid := range pids {
		l.asked[question][pid] = true
	}
}

func (l *looker) unexamined() []int { return l.sight.Recognised.NeedsExamination() }

func (l *looker) examine(ctx context.Context, pids []int) {
	var brief []int
	if !l.Thorough {
		brief = l.sight.Recognised.NeedsOnlyStdin()
	}
	l.machine.Examine(ctx, l.sight.Snapshot, pids, brief)
}

// host is the PID for a question about the machine and not about a process.
const host = 0

func (l *looker) unconfigured() []int { return []int{host} }

// configure reads the configuration files. It comes after the first examination, which says in which
// folders clients work. A process that only a configuration makes a candidate is examined on the way,
// since where it was started decides whether it is the configured one.
func (l *looker) configure(ctx context.Context, _ []int) {
	seen := l.sight.Recognised
	found := l.machine.Configuration(ctx, configured.Folders(seen), configured.Named(seen))
	l.sight.Snapshot.Problems = append(l.sight.Snapshot.Problems, found.Problems()...)
	l.sight.Configured = configured.Attribute(seen, found, func(pids []int) {
		l.mark("examine", pids)
		l.examine(ctx, pids)
	})
}

func (l *looker) unversioned() []int {
	return slices.Collect(maps.Keys(l.sight.Recognised.Packages()))
}

func (l *looker) findVersions(ctx context.Context, pids []int) {
	programs := l.sight.Recognised.Packages()
	maps.DeleteFunc(programs, func(pid int, _ string) bool { return !slices.Contains(pids, pid) })
	l.machine.Versions(ctx, l.sight.Snapshot, programs)
}

func (l *looker) unsupervised() []int { return l.undecided().Services }

func (l *looker) findServices(ctx context.Context, pids []int) {
	l.machine.Services(ctx, l.sight.Snapshot, pids)
}

func (l *looker) unheld() []int {
	if l.Thorough {
		return l.sight.Recognised.NeedsExamination()
	}
	return l.undecided().Holders
}

func (l *looker) findHolders(ctx context.Context, pids []int) {
	l.machine.Holders(ctx, l.sight.Snapshot, pids)
}

func (l *looker) unmeasured() []int {
	if l.PSS {
		return l.sight.Recognised.NeedsExamination()
	}
	return l.PSSOf
}

func (l *looker) readPSS(ctx context.Context, pids []int) {
	l.machine.PSS(ctx, l.sight.Snapshot, pids)
}

// undecided returns what the rules could decide if more were known.
func (l *looker) undecided() rules.Questions {
	if l.open == nil {
		open := rules.OpenQuestions(l.sight.Recognised)
		l.open = &open
	}
	return *l.open
}
