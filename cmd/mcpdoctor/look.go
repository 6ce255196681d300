package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/configured"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

// settling is how long a server that has lost its stdin may take to end: clients on an SDK close
// stdin, wait 2 s, terminate, wait 2 s and kill.
const settling = 5 * time.Second

// closer says what is to be looked at beyond what decides something.
type closer struct {
	pss     bool  // the memory that comes back, not only RSS, of all who have to do with MCP
	holders bool  // who holds each stdin, and who listens though it has a client
	weigh   []int // the memory that comes back from these PIDs
}

// sight is what one look has seen.
type sight struct {
	snap       *scan.Snapshot
	seen       *process.Recognised
	configured *configured.Attribution
}

// lookLive looks at this machine: at everybody cheaply, closer at those who have to do with MCP,
// and closest at the few where that decides something.
func lookLive(ctx context.Context, now time.Time, closely closer) (*sight, error) {
	snap, err := scan.Take(ctx, scan.Options{Now: now})
	if err != nil {
		return nil, &problem{what: "cannot see the processes: " + err.Error(), hint: "on Linux, /proc has to be mounted and readable"}
	}
	seen := process.Recognise(snap)
	o := scan.ExamineOptions{}
	if !closely.holders {
		o.Brief = seen.Brief()
	}
	scan.Examine(ctx, snap, seen.Look(), o)
	configured := configure(ctx, os.Getenv, snap, seen, o)
	scan.Versions(ctx, snap, seen.Packages(), o)
	doubts := rules.OpenQuestions(seen)
	if len(doubts.Services) > 0 {
		scan.Services(ctx, snap, doubts.Services, o)
	}
	if closely.holders {
		doubts.Holders = seen.Look() // to say of everybody who holds it
	}
	if len(doubts.Holders) > 0 {
		// One pass over everybody's descriptors. Half of it would prove nothing, so that it is
		// given time on a machine that is busy.
		o.Deadline = 5 * time.Second
		scan.Holders(ctx, snap, doubts.Holders, o)
	}
	weigh := closely.weigh
	if closely.pss {
		weigh = seen.Look()
	}
	if len(weigh) > 0 {
		scan.Weigh(ctx, snap, weigh, scan.ExamineOptions{})
	}
	return &sight{snap, seen, configured}, nil
}

// lookTwice looks, and once more when a server that nobody can talk to any more may be ending at
// this very moment. It returns the last look, and who was found so by both.
func (w *world) lookTwice(ctx context.Context, closely closer) (*process.Recognised, map[scan.ID]bool, error) {
	s, err := w.look(ctx, w.now(), closely)
	if err != nil {
		return nil, nil, err
	}
	before := rules.OpenQuestions(s.seen).Settling
	if len(before) == 0 {
		return s.seen, nil, nil
	}
	if w.person() { // cron would send it by mail
		fmt.Fprintf(w.err, "mcpdoctor: looking again in %s: something has lost its client and may be ending\n", settling)
	}
	select {
	case <-time.After(settling):
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if s, err = w.look(ctx, w.now(), closely); err != nil {
		return nil, nil, err
	}
	settled := map[scan.ID]bool{}
	for _, id := range rules.OpenQuestions(s.seen).Settling {
		if slices.Contains(before, id) {
			settled[id] = true
		}
	}
	return s.seen, settled, nil
}
