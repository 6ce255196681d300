package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

var (
	simWorlds = flag.Int("sim.worlds", 10_000, "number of worlds of TestSimulation")
	simSeed   = flag.Int64("sim.seed", -1, "seed of the only world of TestSimulation, to be shown")
)

// tally adds up the results of some worlds.
type tally struct {
	worlds, looks, signals, acted, mistakes int
	provable, reaped                        map[kind]int
}

func (y *tally) add(o *tally) {
	y.worlds += o.worlds
	y.looks += o.looks
	y.signals += o.signals
	y.acted += o.acted
	y.mistakes += o.mistakes
	for k, n := range o.provable {
		y.provable[k] += n
		y.reaped[k] += o.reaped[k]
	}
}

func newTally() *tally { return &tally{provable: map[kind]int{}, reaped: map[kind]int{}} }

// share is the part of the provable leaks of a kind that was reaped.
func (y *tally) share(k kind) float64 { return float64(y.reaped[k]) / float64(max(1, y.provable[k])) }

func (y *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d worlds (%d with signals), %d looks, %d signals, %d mistakes; of the provable leaks, reaped",
		y.worlds, y.acted, y.looks, y.signals, y.mistakes)
	for _, k := range []kind{orphan, child, browser} {
		fmt.Fprintf(&b, " %d of %d %s (%.1f %%)", y.reaped[k], y.provable[k], k, 100*y.share(k))
	}
	return b.String()
}

// TestSimulation runs reap in worlds whose truth is known.
func TestSimulation(t *testing.T) {
	if *simSeed >= 0 {
		o := simulate(t, uint64(*simSeed), nil)
		t.Logf("%s\n%s", o.tally, o.story)
		for _, m := range o.mistakes {
			t.Error(m)
		}
		return
	}
	worlds := *simWorlds
	if testing.Short() {
		worlds = min(worlds, 1000)
	}
	sum := newTally()
	const enough = 40 // worlds with mistakes
	var next, bad atomic.Int64
	var mu sync.Mutex
	t.Run("worlds", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				mine := newTally()
				for seed := next.Add(1) - 1; seed < int64(worlds) && bad.Load() < enough; seed = next.Add(1) - 1 {
					o := simulate(t, uint64(seed), nil)
					mine.add(o.tally)
					switch {
					case len(o.mistakes) == 0:
					case bad.Add(1) == 1:
						t.Errorf("seed %d: %s\n%s\nto see it again: go test ./cmd/mcpdoctor -run TestSimulation -sim.seed=%d",
							seed, strings.Join(o.mistakes, "\n"), o.story, seed)
					default:
						t.Errorf("seed %d: %s", seed, o.mistakes[0])
					}
				}
				mu.Lock()
				sum.add(mine)
				mu.Unlock()
			})
		}
	})
	t.Log(sum)
	for k, least := range floors {
		if sum.worlds >= 10_000 && sum.share(k) < least {
			t.Errorf("%.0f %% of the provable leaks (%s) were reaped, want %.0f %%", 100*sum.share(k), k, 100*least)
		}
	}
}

// floors are the least shares. The rest are worlds in which something happens at the moment of the reap: a client
// connects to a gateway, and nothing of it is proved any more.
var floors = map[kind]float64{orphan: 0.95, child: 0.6, browser: 0.9}

// TestSimulationCanFail removes one safety at a time, and requires that the simulation notices signals to processes
// in use.
func TestSimulationCanFail(t *testing.T) {
	for name, spoil := range map[string]func(*simulation){
		"every stdin looks closed": func(s *simulation) {
			s.observer.distort = func(p *scan.Process) {
				for _, end := range []*scan.Stdin{p.Stdin, p.Stdout} {
					if end != nil && end.Peer == scan.PeerOpen {
						end.Peer = scan.PeerClosed
					}
				}
			}
		},
		"no port or connection is seen": func(s *simulation) {
			s.observer.distort = func(p *scan.Process) {
				if p.Listen != nil {
					p.Listen, p.InboundConnections, p.InboundSilenceSeconds = []string{}, new(int), nil
				}
			}
		},
		"every process looks an hour older":        func(s *simulation) { s.observer.ageAdded = time.Hour },
		"signals go to a PID and not to a process": func(s *simulation) { s.signalsByPID = true },
	} {
		t.Run(name, func(t *testing.T) {
			const enough, most = 3, 20_000
			found := 0
			for seed := range uint64(most) {
				if found += min(1, len(simulate(t, seed, spoil).mistakes)); found == enough {
					t.Logf("found in %d of %d worlds", found, seed+1)
					return
				}
			}
			t.Errorf("processes in use were signalled in only %d of %d worlds", found, most)
		})
	}
}

// outcome is the result of one world.
type outcome struct {
	tally    *tally
	mistakes []string
	story    string
}

// simulate makes the world of a seed and runs reap in it. spoil may add a fault.
func simulate(t *testing.T, seed uint64, spoil func(*simulation)) (o outcome) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(seed)
		if spoil != nil {
			spoil(s)
		}
		s.advance(s.now)
		o = s.reap(t)
	})
	return o
}

// reap runs the command, compares it with the truth, and lets the world go on for a while.
func (s *simulation) reap(t *testing.T) outcome {
	args, older, named := s.options()
	s.self = s.startReap(args)
	var before *scan.Snapshot // the table of the last look before the signals
	var up map[int]bool
	s.forbidden = func(p *task, signal string) string {
		if before != s.last {
			before, up = s.last, selectedPIDs(process.Recognise(s.last), named)
		}
		return s.whyWrong(p, older, named, up)
	}
	var provable []*unit
	var out, err bytes.Buffer
	w := &world{
		in: strings.NewReader("y\n"), out: &out, err: &err, getenv: func(string) string { return "" },
		now: s.wall, machine: s, openProcess: s.openProcess, self: s.self.pid,
		lock:   func() (func(), error) { return func() {}, nil },
		person: func() bool { return s.interactive }, root: func() bool { return s.observer.uid == 0 },
	}
	for _, u := range s.units {
		if s.provable(u, older, named, slices.Contains(args, "--all-users")) {
			provable = append(provable, u)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.machine.goLive()
	if s.chance(5) {
		d := s.between(0, 12*time.Second)
		time.AfterFunc(d, cancel)
		time.AfterFunc(d+time.Millisecond, func() { s.cancelled.Store(true) }) // a signal that is being sent may arrive
	}
	code := run(ctx, append([]string{"reap"}, args...), w)
	s.mu.Lock()
	s.catchUp()
	s.advance(s.present + 20*time.Second)
	s.mu.Unlock()
	if code == 2 && ctx.Err() == nil {
		s.mistakes = append(s.mistakes, "exit code 2: "+err.String())
	}
	y := newTally()
	y.worlds, y.looks, y.signals, y.mistakes = 1, s.looks, len(s.signals), len(s.mistakes)
	if len(s.signals) > 0 {
		y.acted = 1
	}
	left := ""
	for _, u := range provable {
		if ctx.Err() != nil || exitedByItself(u, s.signals) {
			continue
		}
		y.provable[u.kind]++
		if slices.ContainsFunc(u.tasks, func(p *task) bool { return !p.exited }) {
			left += fmt.Sprintf("not reaped, though provably leaked: %v\n", u.main)
		} else {
			y.reaped[u.kind]++
		}
	}
	return outcome{y, s.mistakes, fmt.Sprintf("reap %s: exit code %d\n%s%s%s\nhistory, by the boot clock:\n%s\n\nprocesses at the end:\n%s",
		strings.Join(args, " "), code, out.String(), err.String(), left, strings.Join(s.history, "\n"), s.table())}
}

// exitedByItself reports whether a unit exited without a signal of mcpdoctor.
func exitedByItself(u *unit, signals []sentSignal) bool {
	if !u.main.exited {
		return false
	}
	return !slices.ContainsFunc(signals, func(x sentSignal) bool { return slices.Contains(u.tasks, x.to) })
}

// options draws the arguments of reap.
func (s *simulation) options() (args []string, older time.Duration, named []string) {
	word := oneOf(s, "0s", "5s", "30s", "1m", "10m", "1h", "2d")
	var age span
	if err := age.Set(word); err != nil {
		panic(err)
	}
	args = []string{"--older-than", word}
	if s.chance(25) {
		for range 1 + s.IntN(2) {
			rule := oneOf(s, "orphan", "spawn-per-request", "stale-generation", "duplicate-sessions", "leftover-helper",
				"memory-growth", "runaway-parent")
			named, args = append(named, rule), append(args, "--rule", rule)
		}
	}
	if s.observer.uid == 0 && s.chance(50) {
		args, s.allUsers = append(args, "--all-users"), true
	}
	if s.chance(20) {
		args = append(args, "--grace", "0s")
	}
	if s.chance(5) {
		// Never less than the default: without time between the looks, the second is of no use.
		args = append(args, "--settle", "6s")
	}
	if s.interactive = s.chance(30); s.interactive && s.chance(50) {
		args = append(args, "--yes")
	}
	return args, age.Duration, named
}

// startReap starts mcpdoctor somewhere: from cron, in a shell, from a client, as a tool of a server.
func (s *simulation) startReap(args []string) *task {
	up := s.init
	switch n := s.IntN(10); {
	case n < 3:
		up = s.start(s.init, "/usr/sbin/cron -f")
		up = s.start(up, "/bin/sh -c 'mcpdoctor reap --older-than 1h'")
	case n < 6:
		if sh := s.users[0].shells[0]; !sh.exited {
			up = sh
		}
	default: // anywhere
		all := s.sorted()
		if p := all[s.IntN(len(all))]; p.state != "Z" && (p.uid == s.observer.uid || s.observer.uid == 0) {
			up = p
		}
	}
	self := s.start(up, "mcpdoctor reap "+strings.Join(args, " "))
	self.sid = self.pid
	self.uid = s.observer.uid
	if s.users[0].uid == self.uid || self.uid == 0 {
		self.tty = up.tty
	}
	return self
}
