// Package stdio starts a stdio MCP server as clients do, shuts it down, and reports which processes stay.
package stdio

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"mcpdoctor/scan"
	"mcpdoctor/scan/descendants"
	"mcpdoctor/scan/facts"
	"mcpdoctor/scan/terminate"
)

// Options configure a check.
type Options struct {
	// Command is the server's command line. It is looked up in PATH and started in the current directory.
	Command []string `json:"-"`

	// Env is the environment of the server.
	Env []string `json:"-"`

	// Startup is how long a start may take, up to the list of tools. Rest is how long the server is left alone
	// then, for what it still has to start. Timeout is how long all processes may take to exit, each time. Grace
	// is the time between SIGTERM and SIGKILL for those that stay.
	Startup, Rest, Timeout, Grace time.Duration

	// Client and Supervisor are command lines that call [RunClient] and [RunSupervisor] with the arguments that
	// are appended to them.
	Client, Supervisor []string

	// Name and Version are those of the client in the handshake.
	Name, Version string

	Now func() time.Time `json:"-"`

	// Step is called before each start; it may be nil.
	Step func(facts.Way) `json:"-"`
}

// checker is a check in the supervisor.
type checker struct {
	o    Options
	tree *descendants.Tree
	out  *facts.Stdio

	// stateless is set when the server refused the handshake of protocol versions up to 2025-11-25.
	stateless bool
}

// run shuts the server down in each way, after a fresh start each.
func (c *checker) run(ctx context.Context) (*facts.Stdio, error) {
	defer func() { c.terminate(ctx) }()
	for _, way := range []facts.Way{facts.CloseStdin, facts.Terminate, facts.KillClient} {
		c.o.Step(way)
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

// try starts the server, lets it rest, shuts it down and records what stays.
func (c *checker) try(ctx context.Context, way facts.Way) (facts.End, error) {
	switch {
	case way == facts.Terminate && !hasSIGTERM:
		return facts.End{Untried: "this system has no SIGTERM"}, nil
	case len(c.out.Left) > 0:
		return facts.End{Untried: "processes of the previous start could not be terminated"}, nil
	}
	s, err := c.start(ctx, way == facts.KillClient)
	if err != nil {
		return facts.End{}, err
	}
	defer s.stop(ctx)
	if err := c.watchDuring(ctx, func() error { return sleep(ctx, c.o.Rest) }); err != nil {
		return facts.End{}, err
	}
	snapshot, tree, err := s.look(ctx)
	if err != nil {
		return facts.End{}, err
	}
	top := s.top(tree)
	switch {
	case len(tree) == 0:
		return facts.End{Early: true}, nil
	case top == nil && way == facts.Terminate:
		return facts.End{Untried: "the first process exited by itself"}, nil
	}
	if way == facts.CloseStdin {
		c.recordRest(ctx, snapshot, tree)
		c.out.Noise, _ = s.pipes.written()
	}
	end := facts.End{Before: values(tree)}
	if err := s.shutDown(way, top); err != nil {
		return facts.End{Untried: err.Error()}, nil
	}
	snapshot, tree, err = s.awaitExit(ctx, &end)
	if len(tree) > 0 {
		c.examineLeftovers(ctx, snapshot, tree, &end)
	}
	return end, err
}

// watchDuring looks at the tree while it calls do, so that most processes are known before they can lose
// their parent.
func (c *checker) watchDuring(ctx context.Context, do func() error) error {
	const interval = 200 * time.Millisecond
	done := make(chan error, 1)
	go func() { done <- do() }()
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		if _, _, err := c.tree.Look(context.WithoutCancel(ctx)); err != nil {
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

func (c *checker) recordRest(ctx context.Context, s *scan.Snapshot, tree []*scan.Process) {
	scan.ReadPSS(ctx, s, pids(tree), scan.ExamineOptions{})
	c.out.OS, c.out.Rest = s.Host.OS, values(tree)
	for _, p := range tree {
		if isGoProgram(p.PID) {
			c.out.Go = append(c.out.Go, p.ID())
		}
	}
}

// awaitExit waits until all processes have exited or the time-out is over, and returns those that stay.
func (s *server) awaitExit(ctx context.Context, end *facts.End) (*scan.Snapshot, []*scan.Process, error) {
	const soonest, latest = 20 * time.Millisecond, 250 * time.Millisecond
	now, began := s.c.o.Now, s.c.o.Now()
	first := map[scan.ID]cpuSample{}
	for pause := soonest; ; pause = min(2*pause, latest) {
		if err := sleep(ctx, pause); err != nil {
			return nil, nil, err
		}
		snapshot, tree, err := s.look(ctx)
		if err != nil {
			return nil, nil, err
		}
		end.Took = now().Sub(began)
		for _, p := range tree {
			if _, ok := first[p.ID()]; !ok {
				first[p.ID()] = cpuSample{now(), p.CPUSeconds}
			}
			if !slices.ContainsFunc(end.Before, func(b scan.Process) bool { return b.ID() == p.ID() }) {
				end.Before = append(end.Before, *p)
			}
		}
		switch {
		case len(tree) == 0:
			end.Strays = s.c.tree.Strays(snapshot)
			return snapshot, nil, nil
		case end.Took >= s.c.o.Timeout:
			for _, p := range tree {
				end.Left = append(end.Left, leftover(p, end.Before, first[p.ID()], now()))
			}
			return snapshot, tree, nil
		}
	}
}

// cpuSample is the processor time that a process had used at a moment.
type cpuSample struct {
	at      time.Time
	seconds *float64
}

func leftover(p *scan.Process, before []scan.Process, first cpuSample, now time.Time) facts.Leftover {
	l := facts.Leftover{Process: *p, CPU: -1}
	for _, b := range before {
		if b.ID() == p.ID() {
			l.Adopted = b.PPID != p.PPID
		}
	}
	if d := now.Sub(first.at).Seconds(); d > 0 && first.seconds != nil && p.CPUSeconds != nil {
		l.CPU = max(0, math.Round(100*(*p.CPUSeconds-*first.seconds)/d))
	}
	return l
}

// examineLeftovers records the state of the processes that stay, and whether SIGTERM terminates them.
func (c *checker) examineLeftovers(ctx context.Context, s *scan.Snapshot, tree []*scan.Process, end *facts.End) {
	scan.Examine(ctx, s, pids(tree), scan.ExamineOptions{})
	scan.Holders(ctx, s, pids(tree), scan.ExamineOptions{})
	outcomes := map[scan.ID]terminate.Outcome{}
	for _, r := range terminate.Terminate(ctx, terminate.Open, []terminate.Group{descendants.Group(tree)}, c.o.Grace)[0] {
		outcomes[r.ID] = r.Outcome
	}
	for i, p := range tree {
		end.Left[i].Process, end.Left[i].Outcome = *p, outcomes[p.ID()]
	}
}

// hurriedGrace is the time between SIGTERM and SIGKILL after an interrupt.
const hurriedGrace = 300 * time.Millisecond

// terminate terminates all that was started, and records what survived.
func (c *checker) terminate(ctx context.Context) {
	grace := c.o.Grace
	if ctx.Err() != nil {
		grace = min(grace, hurriedGrace)
	}
	c.out.Left = values(c.tree.Terminate(ctx, grace))
}

// shutDown does to the server what way says.
func (s *server) shutDown(way facts.Way, top *scan.Process) error {
	switch way {
	case facts.CloseStdin:
		return s.pipes.stdin.Close()
	case facts.KillClient:
		defer s.pipes.close() // the client's ends
		if err := terminate.KillChild(s.cmd.Process); !errors.Is(err, os.ErrProcessDone) {
			return err // nil too
		}
		return nil // it exits with the first process of the server
	}
	h, err := terminate.Open(top.ID())
	if err != nil {
		return fmt.Errorf("the first process cannot be signalled: %w", err)
	}
	defer h.Close()
	return h.Terminate()
}

func pids(tree []*scan.Process) []int {
	var out []int
	for _, p := range tree {
		out = append(out, p.PID)
	}
	return out
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
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func newChecker(o Options, tree *descendants.Tree) *checker {
	return &checker{o: o, tree: tree, out: &facts.Stdio{Command: o.Command, Timeout: o.Timeout, Self: os.Getpid()}}
}
