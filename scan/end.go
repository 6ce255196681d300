package scan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Handle is one process that can be signalled and watched, whatever happens to its PID. [Hold] gives
// those of this machine. None of its methods may block. Each signal's error is [ErrGone] when the
// process has ended.
type Handle interface {
	Terminate() error
	Continue() error
	Kill() error
	Ended() bool
	Close()
}

// Group is processes that are to be ended together. Those of a later stage are asked when those of
// the earlier ones had their time: they often end by themselves then, as a launcher does when the
// server below it has ended.
type Group struct {
	Stages [][]ID
}

// Outcome is what became of a process that was to be ended.
type Outcome string

// The outcomes. The last four mean that the process was there when it was last looked at.
const (
	Gone      Outcome = "gone"      // it had ended before anything was sent to it
	Ended     Outcome = "ended"     // it ended when it was asked to, or when those before it had ended
	Killed    Outcome = "killed"    // it ended by SIGKILL only
	Refused   Outcome = "refused"   // it, or another of its group, could not be opened or signalled
	Survived  Outcome = "survived"  // it is there though it was killed
	Unasked   Outcome = "unasked"   // nothing was sent to it: End was interrupted
	Unsettled Outcome = "unsettled" // it was asked to end, and had not ended when End was interrupted
)

// Fate is what became of one process of a [Group].
type Fate struct {
	ID      ID
	Outcome Outcome
	Err     error // why it was refused; nil otherwise
}

// Ended tells that the process is not there any more, for whatever reason.
func (f Fate) Ended() bool { return f.Outcome == Gone || f.Outcome == Ended || f.Outcome == Killed }

// afterKill is how long a killed process may take to be gone. The kernel needs milliseconds, and
// seconds when it has gigabytes to give back, some of them swapped out.
const afterKill = 5 * time.Second

// End ends the processes of all groups, at the same time, and returns what became of each, in the
// order of groups and stages.
//
// All of a group are opened with hold first, so that each signal reaches the process that its ID
// names or nobody. When one is there and cannot be opened, nobody in its group is signalled, and when
// one cannot be signalled, nobody of a later stage: a launcher that ended without its server would
// leave an orphan.
//
// The first stage is asked at once (SIGTERM, and SIGCONT for who is stopped and could not take it),
// stage i of n after i/n of grace unless it has ended by itself, and what is left after grace is
// killed. It takes one grace, and a moment, for any number of groups, and less when all end sooner. A
// process group is never signalled: it may be the client's.
//
// When ctx ends, nothing more is signalled.
func End(ctx context.Context, hold func(ID) (Handle, error), groups []Group, grace time.Duration) [][]Fate {
	fates := make([][]Fate, len(groups))
	var all sync.WaitGroup
	for i, g := range groups {
		all.Go(func() {
			e := open(ctx, hold, g)
			defer e.close()
			e.end(ctx, grace)
			fates[i] = e.fates()
		})
	}
	all.Wait()
	return fates
}

// ending is one group while it is ended.
type ending struct {
	targets []*target // in the order of the stages
	stages  int
	begun   bool // somebody was asked
}

// target is one process that is to be ended.
type target struct {
	stage  int
	handle Handle // nil when it was not opened
	fate   Fate
}

func open(ctx context.Context, hold func(ID) (Handle, error), g Group) *ending {
	e := &ending{stages: len(g.Stages)}
	for i, stage := range g.Stages {
		for _, id := range stage {
			e.targets = append(e.targets, &target{stage: i, fate: Fate{ID: id, Outcome: Unasked}})
		}
	}
	for _, t := range e.targets {
		if ctx.Err() != nil {
			break
		}
		h, err := hold(t.fate.ID)
		if err != nil {
			e.failed(t, err)
		} else {
			t.handle = h
		}
		if t.fate.Outcome == Refused {
			e.refuse(fmt.Errorf("pid %d, which was to end with it, could not be opened: %w", t.fate.ID.PID, err))
			break
		}
	}
	return e
}

// refuse gives up who is not known to have ended.
func (e *ending) refuse(err error) {
	for _, t := range e.targets {
		if t.fate.Outcome == Unasked {
			t.fate.Outcome, t.fate.Err = Refused, err
		}
	}
}

// keepAfter gives up the later stages when somebody of this one may not be signalled: a launcher that
// ends before its server makes an orphan of it.
func (e *ending) keepAfter(stage int) {
	for _, t := range e.targets {
		if t.stage == stage && t.fate.Outcome == Refused {
			e.refuse(fmt.Errorf("pid %d, which was to end before it, could not be signalled: %w", t.fate.ID.PID, t.fate.Err))
			return
		}
	}
}

func (e *ending) close() {
	for _, t := range e.targets {
		if t.handle != nil {
			t.handle.Close()
		}
	}
}

func (e *ending) end(ctx context.Context, grace time.Duration) {
	clock := time.NewTimer(0)
	defer clock.Stop()
	for i := range e.stages {
		if !e.wait(ctx, clock) {
			return
		}
		for _, t := range e.targets {
			if t.stage == i && ctx.Err() == nil {
				e.ask(t)
			}
		}
		e.keepAfter(i)
		n := time.Duration(e.stages)
		clock.Reset(grace*time.Duration(i+1)/n - grace*time.Duration(i)/n)
	}
	if !e.wait(ctx, clock) {
		return
	}
	for _, t := range e.targets {
		if ctx.Err() == nil {
			e.kill(t)
		}
	}
	clock.Reset(afterKill)
	e.wait(context.WithoutCancel(ctx), clock) // which signals nobody
}

// wait waits until all of the group have ended, or the clock rings. It returns false when that is
// all: none is left, or ctx has ended.
func (e *ending) wait(ctx context.Context, clock *time.Timer) (more bool) {
	// What ends does so within milliseconds, mostly; then there is less of a hurry.
	const soonest, latest = 5 * time.Millisecond, 50 * time.Millisecond
	look := time.NewTimer(soonest)
	defer look.Stop()
	for pause := soonest; ; look.Reset(pause) {
		left := false
		for _, t := range e.targets {
			left = e.left(t) || left
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

// left looks whether the process is still there and can still be ended.
func (e *ending) left(t *target) bool {
	if t.handle == nil || t.fate.Ended() {
		return false
	}
	if !t.handle.Ended() {
		return t.fate.Outcome != Refused
	}
	switch {
	case t.fate.Outcome == Survived:
		t.fate.Outcome = Killed
	case !e.begun:
		t.fate.Outcome = Gone
	default: // also who was not asked, or refused: it ended because another did
		t.fate.Outcome = Ended
	}
	t.fate.Err = nil
	return false
}

func (e *ending) ask(t *target) {
	if !e.left(t) {
		return
	}
	if err := t.handle.Terminate(); err != nil {
		e.failed(t, err)
		return
	}
	e.begun, t.fate.Outcome = true, Unsettled
	// The signal waits for a stopped process to go on; to others SIGCONT does nothing (signal(7)).
	// Where it fails, SIGKILL needs none.
	t.handle.Continue() //nolint:errcheck // the process was asked all the same
}

func (e *ending) kill(t *target) {
	if !e.left(t) {
		return
	}
	if err := t.handle.Kill(); err != nil {
		e.failed(t, err)
		return
	}
	t.fate.Outcome = Survived // until it is seen to have ended
}

// failed takes down why a process could not be opened or signalled.
func (e *ending) failed(t *target, err error) {
	switch {
	case !errors.Is(err, ErrGone):
		t.fate.Outcome, t.fate.Err = Refused, err
	case e.begun:
		t.fate.Outcome = Ended
	default:
		t.fate.Outcome = Gone
	}
}

func (e *ending) fates() []Fate {
	out := make([]Fate, len(e.targets))
	for i, t := range e.targets {
		out[i] = t.fate
	}
	return out
}
