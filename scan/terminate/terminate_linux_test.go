package terminate

import (
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan"
)

// Terminate on real processes. A process in state D, waiting for a device, cannot be made here: see "survives SIGKILL"
// in TestTerminateScripted.
//
// The grace is ample for processes that exit early, and short for stubborn ones, as it is waited for in full.
const ample, short = time.Minute, 300 * time.Millisecond

// scenario is a group that a test terminates, with the outcomes it wants.
type scenario struct {
	group Group
	grace time.Duration
	want  []Outcome
	check func() // what else must hold afterwards
}

// stages returns a group.
func stages(s ...[]scan.ID) Group { return Group{Stages: s} }

// TestTerminateReal terminates real processes, next to others of the same kind, which must get no signal.
func TestTerminateReal(t *testing.T) {
	tests := []struct {
		name string
		make func(t *testing.T, tr troupe) scenario
	}{
		{"a server", func(t *testing.T, tr troupe) scenario {
			return scenario{group: stages([]scan.ID{tr.start("server", nil).id()}), grace: ample, want: []Outcome{Ended}}
		}},
		{"a server behind a shell, which ends by itself", func(t *testing.T, tr troupe) scenario {
			a := tr.start("server", behindShell)
			return scenario{group: stages(a.ids(), []scan.ID{a.id()}), grace: ample, want: []Outcome{Ended, Ended}, check: func() {
				// It ran its second command: it got no signal.
				if err := a.cmd.Wait(); err != nil {
					t.Errorf("the shell: %v", err)
				}
			}}
		}},
		{"a stubborn server", func(t *testing.T, tr troupe) scenario {
			return scenario{group: stages([]scan.ID{tr.start("stubborn", nil).id()}), grace: short, want: []Outcome{Killed}}
		}},
		{"a stubborn server behind a shell", func(t *testing.T, tr troupe) scenario {
			a := tr.start("stubborn", behindShell)
			return scenario{group: stages(a.ids(), []scan.ID{a.id()}), grace: 2 * time.Second, want: []Outcome{Killed, Ended}, check: func() {
				a.cmd.Wait()
				if s := a.cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != unix.SIGTERM {
					t.Errorf("the shell was terminated by %v", s.Signal())
				}
			}}
		}},
		{"a stopped server", func(t *testing.T, tr troupe) scenario {
			a := tr.start("server", nil)
			a.stop()
			return scenario{group: stages([]scan.ID{a.id()}), grace: ample, want: []Outcome{Ended}}
		}},
		{"a stopped, stubborn server", func(t *testing.T, tr troupe) scenario {
			a := tr.start("stubborn", nil)
			a.stop()
			return scenario{group: stages([]scan.ID{a.id()}), grace: short, want: []Outcome{Killed}}
		}},
		{"a server that starts another when it is asked to end", func(t *testing.T, tr troupe) scenario {
			a := tr.start("forking", nil)
			return scenario{group: stages([]scan.ID{a.id()}), grace: ample, want: []Outcome{Ended}, check: func() {
				if said := a.line(); !strings.HasPrefix(said, "ready ") {
					t.Errorf("%q", said)
				}
				a.wantUntouched() // it is the other that answers now
			}}
		}},
		{"a launcher that stays when its server has exited", func(t *testing.T, tr troupe) scenario {
			a := tr.start("wrapping", nil)
			return scenario{group: stages(a.ids(), []scan.ID{a.id()}), grace: 3 * time.Second, want: []Outcome{Ended, Ended}, check: func() {
				a.cmd.Wait()
				if s := a.cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != unix.SIGTERM {
					t.Errorf("the launcher was terminated by %v", s.Signal())
				}
			}}
		}},
		{"a zombie server, behind a launcher that does not wait for it", func(t *testing.T, tr troupe) scenario {
			a, zombie := tr.start("server", nil), tr.start("server", nil)
			id := zombie.id()
			kill(t, zombie.pid)
			untilZombie(t, zombie.pid)
			return scenario{group: stages([]scan.ID{id}, []scan.ID{a.id()}), grace: 3 * time.Second, want: []Outcome{Gone, Ended}}
		}},
		{"a server whose PID was reused", func(t *testing.T, tr troupe) scenario {
			a := tr.start("witness", nil)
			return scenario{group: stages([]scan.ID{{PID: a.pid, Start: a.id().Start - 1}}), grace: short, want: []Outcome{Gone}, check: a.wantUntouched}
		}},
		{"a server without a start behind a shell", func(t *testing.T, tr troupe) scenario {
			a := tr.start("server", behindShell)
			server := a.ids()[0]
			return scenario{group: stages([]scan.ID{{PID: server.PID}}, []scan.ID{a.id()}), grace: short, want: []Outcome{Refused, Refused}, check: func() {
				wantThere(t, server, a.id())
			}}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			eachOpener(t, func(t *testing.T, open func(scan.ID) (Handle, error)) {
				t.Parallel()
				tr := newTroupe(t)
				living := tr.start("witness", nil)
				behind := tr.start("witness", behindShell)
				d := test.make(t, tr)
				beside := append(behind.ids(), living.id(), behind.id())

				results := Terminate(t.Context(), open, []Group{d.group}, d.grace)[0]
				checkResults(t, results, d.want)
				wantThere(t, beside...)
				living.wantUntouched()
				behind.wantUntouched()
				if d.check != nil {
					d.check()
				}
			})
		})
	}
}

// checkResults compares outcomes with those that are wanted, and with the processes themselves.
func checkResults(t *testing.T, results []Result, want []Outcome) {
	t.Helper()
	var got []Outcome
	for _, f := range results {
		got = append(got, f.Outcome)
		if there := canOpen(f.ID); f.Outcome.Exited() == there {
			t.Errorf("pid %d is %s, and there: %v", f.ID.PID, f.Outcome, there)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("outcomes %q, want %q", got, want)
	}
}

// canOpen reports whether a process is there, even if its start is not known.
func canOpen(id scan.ID) bool {
	h, err := Open(id)
	if err != nil {
		return err == ErrNoStart
	}
	h.Close()
	return true
}

// stop stops the actor.
func (a actor) stop() {
	a.t.Helper()
	if err := unix.Kill(a.pid, unix.SIGSTOP); err != nil {
		a.t.Fatal(err)
	}
	untilState(a.t, a.pid, 'T')
}

// TestTerminateManyOrphans terminates 200 orphans at once, next to five processes of the same program that have their
// parent.
func TestTerminateManyOrphans(t *testing.T) {
	t.Parallel()
	eachOpener(t, func(t *testing.T, open func(scan.ID) (Handle, error)) {
		const n = 200
		tr := newTroupe(t)
		adopter := tr.start("adopting 200", nil)
		owner := tr.start("server", func(cmd *exec.Cmd) {
			cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", "for i in 1 2 3 4 5; do sleep 600 & p=\"$p $!\"; done; echo ready $p; wait"}
		})
		orphans, owned := adopter.ids(), owner.ids()
		if len(orphans) != n || len(owned) != 5 {
			t.Fatalf("%d orphans, %d others", len(orphans), len(owned))
		}
		var groups []Group
		for _, id := range orphans {
			if ppid := statOf(t, id.PID).PPID; ppid != adopter.pid {
				t.Fatalf("pid %d was adopted by %d, not by %d", id.PID, ppid, adopter.pid)
			}
			groups = append(groups, stages([]scan.ID{id}))
		}
		for _, results := range Terminate(t.Context(), open, groups, ample) {
			checkResults(t, results, []Outcome{Ended})
		}
		wantThere(t, append(owned, adopter.id(), owner.id())...)
	})
}

// TestTerminateNothingLeft: all handles are closed.
func TestTerminateNothingLeft(t *testing.T) {
	tr := newTroupe(t)
	stubborn, server := tr.start("stubborn", nil), tr.start("server", nil)
	before := openPidfds(t)
	results := Terminate(t.Context(), openers[0].open, []Group{stages([]scan.ID{stubborn.id()}), stages([]scan.ID{server.id()})}, short)
	checkResults(t, slices.Concat(results...), []Outcome{Killed, Ended})
	if after := openPidfds(t); after != before {
		t.Errorf("%d pidfds, and %d before", after, before)
	}
}
