// Package stdio starts a stdio MCP server as clients do, brings it to its end, and watches what it leaves
// behind.
package stdio

import (
	"context"
	"errors"
	"fmt"
	"math"
	"mcpdoctor/scan/terminate"
	"slices"
	"time"

	"mcpdoctor/scan"
	"mcpdoctor/scan/facts"
)

// Options say what is checked, and how patiently.
type Options struct {
	// Command is the command and its arguments. It is looked up in PATH and started in the present
	// directory, as clients do.
	Command []string

	// Env is the environment to start it with; the check adds a mark of its own.
	Env []string

	// Startup is how long a start may take until the handshake is answered and the tools are listed,
	// Rest how long the server is left alone then, for what it still has to start, and Timeout how long
	// all processes may take to end, each time.
	Startup, Rest, Timeout time.Duration

	// Client and Keeper are commands that come back to this package: the first to [PlayClient], the
	// second to [PlayKeeper], both in front of words that are theirs.
	Client, Keeper []string

	// Name and Version are what the server is told of its client.
	Name, Version string

	// Now is the clock.
	Now func() time.Time

	// Step is told what is about to be done; nil when nobody wants to know.
	Step func(facts.Way)
}

// checkHere is [Check] in the keeper. told is called with each process that is found to be the
// server's, which all have the mark in their environment, unless they take it away.
func checkHere(ctx context.Context, o Options, mark string, told func(scan.ID)) (*facts.Stdio, error) {
	c := &checker{o: o, out: &facts.Stdio{Command: o.Command, Timeout: o.Timeout, Self: selfPID()}}
	restore, err := adopt()
	if err != nil {
		return nil, err
	}
	defer restore()
	if c.kin, err = newKin(ctx, selfPID(), mark, o.Now); err != nil {
		return nil, err
	}
	c.kin.told = told
	defer func() { c.out.Left = c.kin.clear(ctx) }()

	for _, way := range []facts.Way{facts.CloseStdin, facts.Terminate, facts.KillClient} {
		if o.Step != nil {
			o.Step(way)
		}
		end, err := c.try(ctx, way)
		var f *facts.Failure
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &f) && way != facts.CloseStdin: // it has started before
			end = facts.End{Untried: "it did not start again (" + f.Error() + ")"}
		default:
			return nil, err
		}
		end.Way = way
		c.out.Ends = append(c.out.Ends, end)
	}
	return c.out, nil
}

// markName is the variable that is in the environment of all that a check starts.
const markName = "MCPDOCTOR_CHECK"

// checker is one check while it runs.
type checker struct {
	o      Options
	kin    *kin
	newest bool // the server refused the handshake of the protocol's older versions
	out    *facts.Stdio
}

// try starts the server, lets it rest, brings it to its end and looks what is left.
func (c *checker) try(ctx context.Context, way facts.Way) (facts.End, error) {
	switch {
	case way == facts.Terminate && !canTerminate:
		return facts.End{Untried: "this system has no SIGTERM"}, nil
	case len(c.out.Left) > 0:
		return facts.End{Untried: "what the last start left could not be ended"}, nil
	}
	r, err := c.start(ctx, way == facts.KillClient)
	if err != nil {
		return facts.End{}, err
	}
	defer r.end(ctx)
	if err := c.attend(ctx, func() error { return sleep(ctx, c.o.Rest) }); err != nil {
		return facts.End{}, err
	}
	s, tree, err := c.kin.look(ctx)
	if err != nil {
		return facts.End{}, err
	}
	top := r.top(tree)
	switch {
	case len(tree) == 0:
		return facts.End{Early: true}, nil
	case top == nil && way == facts.Terminate:
		return facts.End{Untried: "the process that was started has ended by itself"}, nil
	}
	if way == facts.CloseStdin {
		c.atRest(ctx, s, tree)
		c.out.Noise, _ = r.wires.said()
	}
	end := facts.End{Before: values(tree)}
	if err := r.act(way, top); err != nil {
		return facts.End{Untried: err.Error()}, nil
	}
	s, tree, err = c.watch(ctx, &end)
	if len(tree) > 0 {
		c.leave(ctx, s, tree, &end)
	}
	return end, err
}

// attend does something that may take long, and looks meanwhile who is started, so that who loses its
// parent later is known by then where nobody adopts it.
func (c *checker) attend(ctx context.Context, do func() error) error {
	const often = 200 * time.Millisecond
	done := make(chan error, 1)
	go func() { done <- do() }()
	t := time.NewTicker(often)
	defer t.Stop()
	for {
		if _, _, err := c.kin.look(context.WithoutCancel(ctx)); err != nil {
			<-done
			return err
		}
		select {
		case err := <-done:
			return err
		case <-t.C:
		}
	}
}

// atRest fills in what the tree holds, with the memory that it does not share.
func (c *checker) atRest(ctx context.Context, s *scan.Snapshot, tree []*scan.Process) {
	var pids []int
	for _, p := range tree {
		pids = append(pids, p.PID)
	}
	scan.ReadPSS(ctx, s, pids, scan.ExamineOptions{})
	c.out.OS, c.out.Rest = s.Host.OS, values(tree)
	for _, p := range tree {
		if builtByGo(p.PID) {
			c.out.Go = append(c.out.Go, p.ID())
		}
	}
}

// watch waits until all have ended, or the time is over, and returns who is left.
func (c *checker) watch(ctx context.Context, end *facts.End) (*scan.Snapshot, []*scan.Process, error) {
	const soonest, latest = 20 * time.Millisecond, 250 * time.Millisecond
	begun := c.o.Now()
	first := map[scan.ID]sample{}
	for pause := soonest; ; pause = min(2*pause, latest) {
		if err := sleep(ctx, pause); err != nil {
			return nil, nil, err
		}
		s, tree, err := c.kin.look(ctx)
		if err != nil {
			return nil, nil, err
		}
		end.Took = c.o.Now().Sub(begun)
		for _, p := range tree {
			if _, ok := first[p.ID()]; !ok {
				first[p.ID()] = sample{c.o.Now(), p.CPUSeconds}
			}
			if !slices.ContainsFunc(end.Before, func(b scan.Process) bool { return b.ID() == p.ID() }) {
				end.Before = append(end.Before, *p)
			}
		}
		if len(tree) == 0 {
			end.Strays = c.kin.strays(s)
			return s, nil, nil
		}
		if end.Took >= c.o.Timeout {
			for _, p := range tree {
				end.Left = append(end.Left, c.leftover(p, end.Before, first[p.ID()]))
			}
			return s, tree, nil
		}
	}
}

// sample is the processor time that a process had used at a moment.
type sample struct {
	at  time.Time
	cpu *float64
}

func (c *checker) leftover(p *scan.Process, before []scan.Process, since sample) facts.Leftover {
	l := facts.Leftover{Process: *p, CPU: -1}
	for _, b := range before {
		if b.ID() == p.ID() {
			l.Adopted = b.PPID != p.PPID
		}
	}
	if d := c.o.Now().Sub(since.at).Seconds(); d > 0 && since.cpu != nil && p.CPUSeconds != nil {
		l.CPU = max(0, math.Round(100*(*p.CPUSeconds-*since.cpu)/d))
	}
	return l
}

// leave looks closer at who is left, and asks each to end, which tells whether it would have.
func (c *checker) leave(ctx context.Context, s *scan.Snapshot, tree []*scan.Process, end *facts.End) {
	var pids []int
	for _, p := range tree {
		pids = append(pids, p.PID)
	}
	scan.Examine(ctx, s, pids, scan.ExamineOptions{})
	scan.Holders(ctx, s, pids, scan.ExamineOptions{})
	fates := map[scan.ID]terminate.Outcome{}
	for _, group := range terminate.Terminate(ctx, hold, []terminate.Group{{Stages: stages(tree)}}, polite) {
		for _, f := range group {
			fates[f.ID] = f.Outcome
		}
	}
	for i, p := range tree {
		end.Left[i].Process, end.Left[i].Outcome = *p, fates[p.ID()]
	}
}

func values(tree []*scan.Process) []scan.Process {
	out := make([]scan.Process, len(tree))
	for i, p := range tree {
		out[i] = *p
	}
	return out
}

// sleep waits, unless ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// act does what is to end the server.
func (r *run) act(way facts.Way, top *scan.Process) error {
	switch way {
	case facts.CloseStdin:
		return r.wires.stdin.Close()
	case facts.KillClient:
		return r.cmd.Process.Kill()
	}
	h, err := terminate.Open(top.ID())
	if err != nil {
		return fmt.Errorf("the first process cannot be signalled: %w", err)
	}
	defer h.Close()
	return h.Terminate()
}
