// Package terminate signals processes. No other package of mcpdoctor may: a test says so.
//
// A signal reaches exactly the process that a [scan.ID] names, never another one that was given the same
// PID, and processes that depend on each other are terminated in order: see [Terminate].
package terminate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mcpdoctor/scan"
)

// Group is a set of processes to be terminated together, stage by stage. Those of a later stage often exit
// by themselves once the earlier ones have, as a launcher does after its server.
type Group struct {
	Stages [][]scan.ID
}

// Outcome is what became of a process that was to be terminated.
type Outcome string

// The outcomes. The last four mean that the process was still running when it was last checked.
const (
	Gone        Outcome = "gone"      // it had exited before anything was sent to it
	Ended       Outcome = "ended"     // it exited after SIGTERM, or after the processes of an earlier stage had
	Killed      Outcome = "killed"    // it exited only after SIGKILL
	Refused     Outcome = "refused"   // it, or another of its group, could not be opened or signalled
	Survived    Outcome = "survived"  // it is still running after SIGKILL
	NotStarted  Outcome = "unasked"   // Terminate was interrupted before anything was sent to it
	NotFinished Outcome = "unsettled" // Terminate was interrupted after SIGTERM, before it had exited
)

// Exited reports whether the process has exited, for whatever reason.
func (o Outcome) Exited() bool { return o == Gone || o == Ended || o == Killed }

// Result is what became of one process of a [Group].
type Result struct {
	ID      scan.ID
	Outcome Outcome
	Err     error // why it was refused; nil otherwise
}

// afterKill is how long a killed process may take to exit: milliseconds, or seconds when the kernel has
// gigabytes to free, some of them swapped out.
const afterKill = 5 * time.Second

// Terminate terminates all groups at the same time and returns the result of each process, in the order
// of groups and stages.
//
// It first opens every process of a group, with open, usually [Open]. If one is running but cannot be
// opened, none of its group is signalled; if one cannot be signalled, none of a later stage is: a
// launcher that exits without its server leaves an orphan.
//
// The first stage gets SIGTERM at once (and SIGCONT, without which a stopped process would not see it),
// stage i of n after i/n of grace unless it has exited by then, and whatever is left after grace gets
// SIGKILL. The call takes little more than grace for any number of groups, less when all exit sooner.
// Process groups are never signalled: a group may be the client's.
//
// After ctx ends, nothing is signalled.
func Terminate(ctx context.Context, open func(scan.ID) (Handle, error), groups []Group, grace time.Duration) [][]Result {
	results := make([][]Result, len(groups))
	var all sync.WaitGroup
	for i, g := range groups {
		all.Go(func() {
			opened := openGroup(ctx, open, g)
			defer opened.close()
			opened.terminate(ctx, grace)
			results[i] = opened.results()
		})
	}
	all.Wait()
	return results
}

// group is a [Group] that is being terminated.
type group struct {
	targets   []*target // in the order of the stages
	stages    int
	signalled bool // one of them at least
}

// target is one process of a group.
type target struct {
	stage  int
	handle Handle // nil when it was not opened
	result Result
}

func openGroup(ctx context.Context, open func(scan.ID) (Handle, error), ids Group) *group {
	g := &group{stages: len(ids.Stages)}
	for i, stage := range ids.Stages {
		for _, id := range stage {
			g.targets = append(g.targets, &target{stage: i, result: Result{ID: id, Outcome: NotStarted}})
		}
	}
	for _, t := range g.targets {
		if ctx.Err() != nil {
			break
		}
		h, err := open(t.result.ID)
		if err != nil {
			g.failed(t, err)
		} else {
			t.handle = h
		}
		if t.result.Outcome == Refused {
			g.refuse(fmt.Errorf("pid %d of the same server could not be opened: %w", t.result.ID.PID, err))
			break
		}
	}
	return g
}

// refuse marks as refused every process that has no outcome yet.
func (g *group) refuse(err error) {
	for _, t := range g.targets {
		if t.result.Outcome == NotStarted {
			t.result.Outcome, t.result.Err = Refused, err
		}
	}
}

// refuseLater refuses the later stages when a process of this one could not be signalled: a launcher that
// exits before its server makes an orphan of it.
func (g *group) refuseLater(stage int) {
	for _, t := range g.targets {
		if t.stage == stage && t.result.Outcome == Refused {
			g.refuse(fmt.Errorf("pid %d, to be terminated before it, could not be signalled: %w", t.result.ID.PID, t.result.Err))
			return
		}
	}
}

func (g *group) close() {
	for _, t := range g.targets {
		if t.handle != nil {
			t.handle.Close()
		}
	}
}

func (g *group) terminate(ctx context.Context, grace time.Duration) {
	clock := time.NewTimer(0)
	defer clock.Stop()
	for i := range g.stages {
		if !g.wait(ctx, clock) {
			return
		}
		for _, t := range g.targets {
			if t.stage == i && ctx.Err() == nil {
				g.terminateOne(t)
			}
		}
		g.refuseLater(i)
		n := time.Duration(g.stages)
		clock.Reset(grace*time.Duration(i+1)/n - grace*time.Duration(i)/n)
	}
	if !g.wait(ctx, clock) {
		return
	}
	for _, t := range g.targets {
		if ctx.Err() == nil {
			g.killOne(t)
		}
	}
	clock.Reset(afterKill)
	g.wait(context.WithoutCancel(ctx), clock) // only to see them exit
}

// wait waits until the clock fires, all processes of the group have exited, or ctx ends. It reports
// whether there is more to do: some are running and ctx has not ended.
func (g *group) wait(ctx context.Context, clock *time.Timer) (more bool) {
	// Most processes exit within milliseconds.
	const soonest, latest = 5 * time.Millisecond, 50 * time.Millisecond
	look := time.NewTimer(soonest)
	defer look.Stop()
	for pause := soonest; ; look.Reset(pause) {
		left := false
		for _, t := range g.targets {
			left = g.running(t) || left
		}
		if !left || ctx.Err() != nil {
			return false
		}
		select {
		case <-clock.C:
			return ctx.Err() == nil
		case <-ctx.Done():
		case <-look.C:
		}
		pause = min(2*pause, latest)
	}
}

// running reports whether the process is running and may be signalled, and records it if it has exited.
func (g *group) running(t *target) bool {
	if t.handle == nil || t.result.Outcome.Exited() {
		return false
	}
	if !t.handle.Exited() {
		return t.result.Outcome != Refused
	}
	switch {
	case t.result.Outcome == Survived:
		t.result.Outcome = Killed
	case !g.signalled:
		t.result.Outcome = Gone
	default: // even if it was not signalled or refused: it exited because another did
		t.result.Outcome = Ended
	}
	t.result.Err = nil
	return false
}

func (g *group) terminateOne(t *target) {
	if !g.running(t) {
		return
	}
	if err := t.handle.Terminate(); err != nil {
		g.failed(t, err)
		return
	}
	g.signalled, t.result.Outcome = true, NotFinished
	// A stopped process sees SIGTERM only when it continues; to others SIGCONT does nothing (signal(7)).
	t.handle.Continue() //nolint:errcheck // SIGKILL will do
}

func (g *group) killOne(t *target) {
	if !g.running(t) {
		return
	}
	if err := t.handle.Kill(); err != nil {
		g.failed(t, err)
		return
	}
	t.result.Outcome = Survived // until it is seen to have ended
}

// failed records that a process could not be opened or signalled.
func (g *group) failed(t *target, err error) {
	switch {
	case !errors.Is(err, ErrGone):
		t.result.Outcome, t.result.Err = Refused, err
	case g.signalled:
		t.result.Outcome = Ended
	default:
		t.result.Outcome = Gone
	}
}

func (g *group) results() []Result {
	out := make([]Result, len(g.targets))
	for i, t := range g.targets {
		out[i] = t.result
	}
	return out
}
