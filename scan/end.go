package scan

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Handle is one process that can be signalled and watched, whatever happens to its PID. [Hold] gives
// those of this machine.
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

// The outcomes. The last three mean that the process was there when it was last looked at.
const (
	Gone      Outcome = "gone"      // it had ended before anything was sent to it
	Ended     Outcome = "ended"     // it ended when it was asked to, or when those before it had ended
	Killed    Outcome = "killed"    // it ended by SIGKILL only
	Refused   Outcome = "refused"   // the system did not let it be signalled
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

// afterKill is how long a killed process may take to be gone. The kernel needs milliseconds, more
// when it has gigabytes to give back.
const afterKill = 2 * time.Second

// End ends the processes of all groups, at the same time, and returns what became of each, in the
// order of groups and stages.
//
// All of a group are opened with hold first, so that each signal reaches the process that its ID
// names or nobody. The first stage is asked at once (SIGTERM, and SIGCONT for who is stopped and could
// not take it), stage i of n after i/n of grace unless it has ended by itself, and what is left after
// grace is killed. It takes one grace, and a moment, for any number of groups, and less when all end
// sooner. A process group is never signalled: it may be the client's.
//
// When ctx ends, nothing more is signalled.
func End(ctx context.Context, hold func(ID) (Handle, error), groups []Group, grace time.Duration) [][]Fate {
	fates := make([][]Fate, len(groups))
	var all sync.WaitGroup
	for i, g := range groups {
		all.Go(func() {
			e := open(hold, g)
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
	stages [][]*target
	begun  bool // somebody was asked
}

// target is one process that is to be ended.
type target struct {
	handle Handle // nil when it could not be opened
	fate   Fate
}

func open(hold func(ID) (Handle, error), g Group) *ending {
	e := &ending{stages: make([][]*target, len(g.Stages))}
	for i, stage := range g.Stages {
		for _, id := range stage {
			t := &target{fate: Fate{ID: id, Outcome: Unasked}}
			if h, err := hold(id); err == nil {
				t.handle = h
			} else {
				e.failed(t, err)
			}
			e.stages[i] = append(e.stages[i], t)
		}
	}
	return e
}

func (e *ending) close() {
	for _, stage := range e.stages {
		for _, t := range stage {
			if t.handle != nil {
				t.handle.Close()
			}
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
		for _, t := range e.stages[i] {
			e.ask(t)
		}
		n := time.Duration(len(e.stages))
		clock.Reset(grace*time.Duration(i+1)/n - grace*time.Duration(i)/n)
	}
	if !e.wait(ctx, clock) {
		return
	}
	for _, stage := range e.stages {
		for _, t := range stage {
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
	for pause := soonest; ; pause = min(2*pause, latest) {
		left := false
		for _, stage := range e.stages {
			for _, t := range stage {
				left = e.left(t) || left
			}
		}
		if !left || ctx.Err() != nil {
			return false
		}
		look := time.NewTimer(pause)
		select {
		case <-clock.C:
			look.Stop()
			return ctx.Err() == nil
		case <-ctx.Done():
			look.Stop()
		case <-look.C:
		}
	}
}

// left looks whether the process is still there and can still be ended.
func (e *ending) left(t *target) bool {
	switch t.fate.Outcome {
	case Unasked, Unsettled, Survived:
	default:
		return false
	}
	if !t.handle.Ended() {
		return true
	}
	switch {
	case t.fate.Outcome == Survived:
		t.fate.Outcome = Killed
	case !e.begun:
		t.fate.Outcome = Gone
	default: // also who was not asked: it ended because another did
		t.fate.Outcome = Ended
	}
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
	if err := t.handle.Continue(); err != nil {
		e.failed(t, err)
	}
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
	var out []Fate
	for _, stage := range e.stages {
		for _, t := range stage {
			out = append(out, t.fate)
		}
	}
	return out
}
