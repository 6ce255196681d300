package probe

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"
)

// done is what the guard is told when it is not needed any more.
const done = "done\n"

// guard starts a process that ends what is left of the check should this process be killed, and
// returns how it is told that there is nothing left.
func (c *checker) guard(mark string) (stop func(), err error) {
	words := slices.Concat(c.o.Guard, []string{mark})
	g := exec.Command(words[0], words[1:]...)
	g.Env = c.o.Env
	apart(g)
	ours, err := g.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := g.Start(); err != nil {
		return nil, fmt.Errorf("cannot start what guards the check: %w", err)
	}
	c.kin.own[g.Process.Pid], c.kin.hidden[g.Process.Pid] = true, true
	return func() {
		_, _ = io.WriteString(ours, done)
		ours.Close()
		_ = g.Wait()
	}, nil
}

// PlayGuard waits on in for the word that all is well, and ends everything with the mark, and what is
// below it, when in is closed without it: then the check has died. self is the PID of this process.
func PlayGuard(ctx context.Context, self int, mark string, in io.Reader, now func() time.Time) {
	if said, _ := io.ReadAll(in); string(said) == done {
		return
	}
	k, err := newKin(ctx, self, mark, now)
	if err != nil {
		return
	}
	k.born = 0 // all of them are older
	k.clear(ctx)
	// One may just have been started, and not had its environment yet.
	if sleep(ctx, hurried) == nil {
		k.clear(ctx)
	}
}
