package main

import (
	"context"
	"fmt"
	"time"

	"mcpdoctor/rules/look"
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
