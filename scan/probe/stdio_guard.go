package probe

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	"mcpdoctor/scan"
)

// done is what the guard is told when it is not needed any more.
const done = "done"

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
	c.kin.own[g.Process.Pid], c.kin.guard = true, g.Process.Pid
	c.kin.told = func(id scan.ID) { fmt.Fprintln(ours, id.PID, id.Start) }
	return func() {
		_, _ = io.WriteString(ours, done+"\n")
		ours.Close()
		_ = g.Wait()
	}, nil
}

// PlayGuard reads from in who was started, and the word that all is well. When in is closed without it,
// the check has died: then all that it was told of, everything with the mark, and what is below these
// is ended. self is the PID of this process.
func PlayGuard(ctx context.Context, self int, mark string, in io.Reader, now func() time.Time) {
	known := map[scan.ID]bool{}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if lines.Text() == done {
			return
		}
		var id scan.ID
		if n, _ := fmt.Sscan(lines.Text(), &id.PID, &id.Start); n == 2 {
			known[id] = true
		}
	}
	k, err := newKin(ctx, self, mark, now)
	if err != nil {
		return
	}
	k.born = 0 // all of them are older
	k.known = known
	k.clear(ctx)
	// One may just have been started, and not had its environment yet.
	if sleep(ctx, hurried) == nil {
		k.clear(ctx)
	}
}
