package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"mcpdoctor/rules/look"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/pasted"
)

// lookTwice looks at this machine, and looks again when something may be shutting down at this moment.
func (w *world) lookTwice(ctx context.Context, o look.Options) (*look.Sight, error) {
	return look.Twice(ctx, w.machine, w.now, o, func(ctx context.Context) error {
		if w.person() { // cron would mail it
			fmt.Fprintf(w.err, "mcpdoctor: a server has lost its client and may be shutting down: looking again in %s\n", look.ConfirmAfter)
		}
		select {
		case <-time.After(look.ConfirmAfter):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// see reads a saved table if one is named, else it looks at this machine.
func (w *world) see(ctx context.Context, from string, o look.Options) (*look.Sight, error) {
	if from == "" {
		return w.lookTwice(ctx, o)
	}
	snap, err := w.read(from)
	if err != nil {
		return nil, err
	}
	return &look.Sight{Snapshot: snap, Recognised: process.Recognise(snap)}, nil
}

// read reads a snapshot or the text of ps from a file or stdin.
func (w *world) read(name string) (*scan.Snapshot, error) {
	var in io.Reader = w.in
	shown := "stdin"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, &problem{what: "cannot read the snapshot: " + err.Error(), hint: "mcpdoctor snapshot --out FILE makes one"}
		}
		defer f.Close()
		in, shown = f, name
	}
	s, err := pasted.Read(in, w.now())
	if err != nil {
		return nil, &problem{what: shown + ": " + err.Error(), hint: "it takes a snapshot of mcpdoctor, or the text of ps with its header line"}
	}
	return s, nil
}
