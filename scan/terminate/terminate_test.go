package terminate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpdoctor/scan"
)

// A fakeHost has processes that follow a script. It runs in the virtual time of a synctest bubble, which makes the times
// in its log exact.
type fakeHost struct {
	began time.Time
	mu    sync.Mutex
	procs map[int]*fakeProc
	log   []string    // "3s TERM 7"
	open  int         // handles that are not closed
	sent  func(n int) // called after the n-th signal, CONT not counted
	n     int
}

// fakeProc is one script. It exits after a millisecond unless byTerm or byKill say otherwise.
type fakeProc struct {
	open, term, cont, kill error         // the errors of the calls
	byTerm, byKill         time.Duration // how long it takes to exit
	at                     time.Duration // when it exits by itself, after the start; 0: never
	after                  int           // the PID after which it exits; 0: none
	stopped                bool          // SIGTERM waits for SIGCONT

	pending bool
	ends    time.Time // zero: never
}

const never = time.Duration(-1)

var errRefused = errors.New("operation not permitted")

func (h *fakeHost) ended(p *fakeProc) bool {
	now := time.Now()
	return !p.ends.IsZero() && !now.Before(p.ends) ||
		p.at > 0 && now.Sub(h.began) >= p.at ||
		p.after > 0 && h.ended(h.procs[p.after])
}

func (h *fakeHost) Open(id scan.ID) (Handle, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.procs[id.PID]
	if p.open != nil {
		return nil, p.open
	}
	h.open++
	return &fakeHandle{h, id.PID, p}, nil
}

type fakeHandle struct {
	h   *fakeHost
	pid int
	p   *fakeProc
}

func (f *fakeHandle) signal(name string, answer error) error {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	if f.h.ended(f.p) {
		return ErrGone
	}
	f.h.log = append(f.h.log, fmt.Sprint(time.Since(f.h.began), " ", name, " ", f.pid))
	if f.h.sent != nil && name != "CONT" {
		f.h.n++
		f.h.sent(f.h.n)
	}
	if answer != nil {
		return answer
	}
	end := func(d time.Duration) {
		if d == 0 {
			d = time.Millisecond
		}
		if at := time.Now().Add(d); d != never && (f.p.ends.IsZero() || at.Before(f.p.ends)) {
			f.p.ends = at
		}
	}
	switch name {
	case "TERM":
		if f.p.pending = f.p.stopped; !f.p.pending {
			end(f.p.byTerm)
		}
	case "CONT":
		if f.p.stopped = false; f.p.pending {
			end(f.p.byTerm)
		}
	case "KILL":
		end(f.p.byKill)
	}
	return nil
}

func (f *fakeHandle) Terminate() error { return f.signal("TERM", f.p.term) }
func (f *fakeHandle) Continue() error  { return f.signal("CONT", f.p.cont) }
func (f *fakeHandle) Kill() error      { return f.signal("KILL", f.p.kill) }

func (f *fakeHandle) Exited() bool {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	return f.h.ended(f.p)
}

func (f *fakeHandle) Close() {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	f.h.open--
}

// group writes a group by its PIDs, each with a start.
func newGroup(stages ...[]int) Group {
	g := Group{Stages: make([][]scan.ID, len(stages))}
	for i, stage := range stages {
		for _, pid := range stage {
			g.Stages[i] = append(g.Stages[i], scan.ID{PID: pid, Start: int64(100 * pid)})
		}
	}
	return g
}

// outcomes lists the results of a group: "1 ended".
func outcomes(results []Result) []string {
	var out []string
	for _, f := range results {
		out = append(out, fmt.Sprint(f.ID.PID, " ", f.Outcome))
	}
	return out
}

// wantResults compares the results of a group, and checks what holds for every result.
func wantResults(t *testing.T, results []Result, want ...string) {
	t.Helper()
	if got := outcomes(results); !slices.Equal(got, want) {
		t.Errorf("outcomes %q, want %q", got, want)
	}
	for _, f := range results {
		if f.ID.Start == 0 || (f.Err != nil) != (f.Outcome == Refused) {
			t.Errorf("pid %d: start %d, %s with the error %v", f.ID.PID, f.ID.Start, f.Outcome, f.Err)
		}
	}
}

// run terminates the groups, and checks that all handles were closed.
func (h *fakeHost) run(t *testing.T, ctx context.Context, grace time.Duration, groups ...Group) [][]Result {
	t.Helper()
	h.began = time.Now()
	results := Terminate(ctx, h.Open, groups, grace)
	if h.open != 0 {
		t.Errorf("%d handles were not closed", h.open)
	}
	return results
}

// TestTerminateScripted guards law 4, the order of the signals, by every signal and its moment.
func TestTerminateScripted(t *testing.T) {
	stubborn := fakeProc{byTerm: never}
	tests := []struct {
		name   string
		procs  map[int]fakeProc
		stages [][]int
		grace  time.Duration
		log    []string
		want   []string
		took   time.Duration // -1 when it is less than a grace
	}{
		{
			name:   "launchers that exit after their server get no signal",
			procs:  map[int]fakeProc{1: {}, 2: {after: 1}, 3: {after: 2}},
			stages: [][]int{{1}, {2, 3}}, grace: 10 * time.Second,
			log:  []string{"0s TERM 1", "0s CONT 1"},
			want: []string{"1 ended", "2 ended", "3 ended"}, took: -1,
		},
		{
			name:   "a launcher that stays gets SIGTERM in its turn",
			procs:  map[int]fakeProc{1: {}, 2: {}, 3: {}},
			stages: [][]int{{1}, {2, 3}}, grace: 10 * time.Second,
			log:  []string{"0s TERM 1", "0s CONT 1", "5s TERM 2", "5s CONT 2", "5s TERM 3", "5s CONT 3"},
			want: []string{"1 ended", "2 ended", "3 ended"}, took: -1,
		},
		{
			name:   "a stubborn server is killed after the grace",
			procs:  map[int]fakeProc{1: stubborn, 2: {byTerm: time.Second}},
			stages: [][]int{{1}, {2}}, grace: 10 * time.Second,
			log:  []string{"0s TERM 1", "0s CONT 1", "5s TERM 2", "5s CONT 2", "10s KILL 1"},
			want: []string{"1 killed", "2 ended"}, took: 10*time.Second + 5*time.Millisecond,
		},
		{
			name:   "three stubborn stages, killed in their order",
			procs:  map[int]fakeProc{1: stubborn, 2: stubborn, 3: stubborn, 4: stubborn},
			stages: [][]int{{4}, {2, 3}, {1}}, grace: 9 * time.Second,
			log: []string{"0s TERM 4", "0s CONT 4", "3s TERM 2", "3s CONT 2", "3s TERM 3", "3s CONT 3", "6s TERM 1", "6s CONT 1",
				"9s KILL 4", "9s KILL 2", "9s KILL 3", "9s KILL 1"},
			want: []string{"4 killed", "2 killed", "3 killed", "1 killed"}, took: 9*time.Second + 5*time.Millisecond,
		},
		{
			name:   "no SIGKILL after an exit within the grace",
			procs:  map[int]fakeProc{1: {byTerm: 4999 * time.Millisecond}, 2: {byTerm: never, at: 3 * time.Second}},
			stages: [][]int{{1, 2}}, grace: 5 * time.Second,
			log:  []string{"0s TERM 1", "0s CONT 1", "0s TERM 2", "0s CONT 2"},
			want: []string{"1 ended", "2 ended"}, took: 5 * time.Second,
		},
		{
			name:   "stopped",
			procs:  map[int]fakeProc{1: {stopped: true}},
			stages: [][]int{{1}}, grace: 5 * time.Second,
			log:  []string{"0s TERM 1", "0s CONT 1"},
			want: []string{"1 ended"}, took: -1,
		},
		{
			name:   "stopped, and SIGCONT fails",
			procs:  map[int]fakeProc{1: {stopped: true, cont: errRefused}},
			stages: [][]int{{1}}, grace: 5 * time.Second,
			log:  []string{"0s TERM 1", "0s CONT 1", "5s KILL 1"},
			want: []string{"1 killed"}, took: 5*time.Second + 5*time.Millisecond,
		},
		{
			name:   "gone before it was opened",
			procs:  map[int]fakeProc{1: {open: ErrGone}, 2: {}},
			stages: [][]int{{1}, {2}}, grace: 4 * time.Second,
			log:  []string{"2s TERM 2", "2s CONT 2"},
			want: []string{"1 gone", "2 ended"}, took: -1,
		},
		{
			name:   "gone between opening and signal",
			procs:  map[int]fakeProc{1: {term: ErrGone, byTerm: never}, 2: {at: time.Nanosecond}},
			stages: [][]int{{1}, {2}}, grace: 4 * time.Second,
			log:  []string{"0s TERM 1"},
			want: []string{"1 gone", "2 gone"}, took: -1,
		},
		{
			name:   "gone between the grace and the kill",
			procs:  map[int]fakeProc{1: {byTerm: never, kill: ErrGone}},
			stages: [][]int{{1}}, grace: 4 * time.Second,
			log:  []string{"0s TERM 1", "0s CONT 1", "4s KILL 1"},
			want: []string{"1 ended"}, took: 4 * time.Second,
		},
		{
			name:   "all gone before",
			procs:  map[int]fakeProc{1: {open: ErrGone}, 2: {open: ErrGone}},
			stages: [][]int{{1}, {2}}, grace: 4 * time.Second,
			want: []string{"1 gone", "2 gone"},
		},
		{
			name:   "one cannot be signalled, the other of its stage is terminated",
			procs:  map[int]fakeProc{1: {term: errRefused, byTerm: never}, 2: stubborn},
			stages: [][]int{{1, 2}}, grace: 5 * time.Second,
			log:  []string{"0s TERM 1", "0s TERM 2", "0s CONT 2", "5s KILL 2"},
			want: []string{"1 refused", "2 killed"}, took: 5*time.Second + 5*time.Millisecond,
		},
		{
			name:   "one cannot be signalled, its launcher is left alone",
			procs:  map[int]fakeProc{1: {term: errRefused, byTerm: never}, 2: {}},
			stages: [][]int{{1}, {2}}, grace: 4 * time.Second,
			log:  []string{"0s TERM 1"},
			want: []string{"1 refused", "2 refused"}, took: 0,
		},
		{
			name:   "one cannot be signalled, but exits with the other",
			procs:  map[int]fakeProc{1: {byTerm: time.Second}, 2: {term: errRefused, after: 1}},
			stages: [][]int{{2, 1}}, grace: 5 * time.Second,
			log:  []string{"0s TERM 2", "0s TERM 1", "0s CONT 1"},
			want: []string{"2 ended", "1 ended"}, took: -1,
		},
		{
			name:   "SIGKILL fails",
			procs:  map[int]fakeProc{1: {byTerm: never, kill: errRefused}},
			stages: [][]int{{1}}, grace: 5 * time.Second,
			log:  []string{"0s TERM 1", "0s CONT 1", "5s KILL 1"},
			want: []string{"1 refused"}, took: 5 * time.Second,
		},
		{
			name:   "one cannot be opened, the group is left alone",
			procs:  map[int]fakeProc{1: {}, 2: {open: errRefused}, 3: {}, 4: {open: ErrGone}},
			stages: [][]int{{4, 1}, {2}, {3}}, grace: 5 * time.Second,
			want: []string{"4 gone", "1 refused", "2 refused", "3 refused"},
		},
		{
			name:   "one has no start time, the group is left alone",
			procs:  map[int]fakeProc{1: {}, 2: {open: ErrNoStart}},
			stages: [][]int{{1}, {2}}, grace: 5 * time.Second,
			want: []string{"1 refused", "2 refused"},
		},
		{
			name:   "survives SIGKILL",
			procs:  map[int]fakeProc{1: {byTerm: never, byKill: never}, 2: stubborn},
			stages: [][]int{{1}, {2}}, grace: 5 * time.Second,
			log:  []string{"0s TERM 1", "0s CONT 1", "2.5s TERM 2", "2.5s CONT 2", "5s KILL 1", "5s KILL 2"},
			want: []string{"1 survived", "2 killed"}, took: 5*time.Second + afterKill,
		},
		{
			name:   "takes long to exit after SIGKILL",
			procs:  map[int]fakeProc{1: {byTerm: never, byKill: afterKill - 100*time.Millisecond}},
			stages: [][]int{{1}}, grace: time.Second,
			log:  []string{"0s TERM 1", "0s CONT 1", "1s KILL 1"},
			want: []string{"1 killed"}, took: -2,
		},
		{
			name:   "no grace",
			procs:  map[int]fakeProc{1: stubborn, 2: {}},
			stages: [][]int{{1}, {2}},
			log:    []string{"0s TERM 1", "0s CONT 1", "0s TERM 2", "0s CONT 2", "0s KILL 1", "0s KILL 2"},
			want:   []string{"1 killed", "2 killed"}, took: 5 * time.Millisecond,
		},
		{name: "no stages", grace: time.Second},
		{name: "empty stages", stages: [][]int{{}, {}}, grace: time.Second},
		{
			name:   "an empty stage among others",
			procs:  map[int]fakeProc{1: stubborn, 2: stubborn},
			stages: [][]int{{1}, {}, {2}}, grace: 3 * time.Second,
			log:  []string{"0s TERM 1", "0s CONT 1", "2s TERM 2", "2s CONT 2", "3s KILL 1", "3s KILL 2"},
			want: []string{"1 killed", "2 killed"}, took: 3*time.Second + 5*time.Millisecond,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &fakeHost{procs: map[int]*fakeProc{}}
				for pid, p := range test.procs {
					h.procs[pid] = &p
				}
				results := h.run(t, t.Context(), test.grace, newGroup(test.stages...))
				took := time.Since(h.began)
				wantResults(t, results[0], test.want...)
				if !slices.Equal(h.log, test.log) {
					t.Errorf("signals %q\n   want %q", h.log, test.log)
				}
				switch {
				case test.took == -1 && took >= test.grace, test.took == -2 && took >= test.grace+afterKill, test.took >= 0 && took != test.took:
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// The error of a refusal names the process that caused it.
func TestTerminateRefusalNamesTheCause(t *testing.T) {
	h := &fakeHost{procs: map[int]*fakeProc{1: {}, 2: {open: errRefused}}}
	results := h.run(t, t.Context(), time.Hour, newGroup([]int{1}, []int{2}))
	if err := results[0][0].Err; err == nil || err.Error() != "pid 2 of the same server could not be opened: operation not permitted" {
		t.Errorf("pid 1: %v", err)
	}
	if err := results[0][1].Err; err != errRefused {
		t.Errorf("pid 2: %v", err)
	}
}

// TestTerminateManyGroups: many groups that survive everything take no longer than one.
func TestTerminateManyGroups(t *testing.T) {
	const grace = 7 * time.Second
	for _, n := range []int{0, 1, 10, manyGroups} {
		synctest.Test(t, func(t *testing.T) {
			h := &fakeHost{procs: map[int]*fakeProc{}}
			var groups []Group
			var want [][]string
			for i := range n {
				pid := 10 * (i + 1)
				h.procs[pid] = &fakeProc{byTerm: never, byKill: never}
				h.procs[pid+1] = &fakeProc{byTerm: never}
				groups = append(groups, newGroup([]int{pid}, []int{pid + 1}))
				want = append(want, []string{fmt.Sprint(pid, " survived"), fmt.Sprint(pid+1, " killed")})
			}
			results := h.run(t, t.Context(), grace, groups...)
			if len(results) != n {
				t.Fatalf("%d results of %d groups", len(results), n)
			}
			for i := range results {
				wantResults(t, results[i], want[i]...)
			}
			most := grace + afterKill
			if n == 0 {
				most = 0
			}
			if took := time.Since(h.began); took != most {
				t.Errorf("%d groups took %v, want %v", n, took, most)
			}
		})
	}
}

// A group that is refused or slow does not affect the others.
func TestTerminateGroupsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHost{procs: map[int]*fakeProc{1: {}, 2: {open: errRefused}, 3: {byTerm: never, byKill: never}, 4: {}, 5: {open: ErrGone}}}
		results := h.run(t, t.Context(), time.Second, newGroup([]int{1}), newGroup([]int{2}), newGroup([]int{3}), newGroup([]int{5}, []int{4}))
		wantResults(t, results[0], "1 ended")
		wantResults(t, results[1], "2 refused")
		wantResults(t, results[2], "3 survived")
		wantResults(t, results[3], "5 gone", "4 ended")
	})
}

// TestTerminateInterruptedAt interrupts at a moment; nothing may be signalled from then on.
func TestTerminateInterruptedAt(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		at   time.Duration
		log  []string
		want []string
	}{
		{0, nil, []string{"1 unasked", "2 unasked", "3 unasked", "4 unasked"}},
		{1 * ms, []string{"0s TERM 1", "0s CONT 1"}, []string{"1 unsettled", "2 unasked", "3 unasked", "4 unasked"}},
		{2999 * ms, []string{"0s TERM 1", "0s CONT 1"}, []string{"1 unsettled", "2 unasked", "3 unasked", "4 unasked"}},
		{3001 * ms, []string{"0s TERM 1", "0s CONT 1", "3s TERM 2", "3s CONT 2", "3s TERM 3", "3s CONT 3"}, []string{"1 unsettled", "2 ended", "3 unsettled", "4 unasked"}},
		{6001 * ms, []string{"0s TERM 1", "0s CONT 1", "3s TERM 2", "3s CONT 2", "3s TERM 3", "3s CONT 3", "6s TERM 4", "6s CONT 4"}, []string{"1 unsettled", "2 ended", "3 unsettled", "4 unsettled"}},
		{8999 * ms, []string{"0s TERM 1", "0s CONT 1", "3s TERM 2", "3s CONT 2", "3s TERM 3", "3s CONT 3", "6s TERM 4", "6s CONT 4"}, []string{"1 unsettled", "2 ended", "3 unsettled", "4 ended"}},
		// Those that were killed are waited for.
		{9001 * ms, []string{"0s TERM 1", "0s CONT 1", "3s TERM 2", "3s CONT 2", "3s TERM 3", "3s CONT 3", "6s TERM 4", "6s CONT 4", "9s KILL 1", "9s KILL 3"}, []string{"1 killed", "2 ended", "3 survived", "4 ended"}},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			h := &fakeHost{procs: map[int]*fakeProc{
				1: {byTerm: never, byKill: 100 * ms}, 2: {}, 3: {byTerm: never, byKill: never}, 4: {byTerm: 2 * time.Second},
			}}
			ctx, cancel := context.WithCancel(t.Context())
			if test.at == 0 {
				cancel()
			} else {
				time.AfterFunc(test.at, cancel)
			}
			results := h.run(t, ctx, 9*time.Second, newGroup([]int{1}, []int{2, 3}, []int{4}))
			wantResults(t, results[0], test.want...)
			if !slices.Equal(h.log, test.log) {
				t.Errorf("interrupted at %v: signals %q\n   want %q", test.at, h.log, test.log)
			}
			if took := time.Since(h.began); test.at < 9*time.Second && took != test.at {
				t.Errorf("interrupted at %v, it went on until %v", test.at, took)
			}
		})
	}
}

// TestTerminateInterruptedBetween interrupts between two signals of one moment: after the n-th there is no
// other, apart from the SIGCONT that belongs to it.
func TestTerminateInterruptedBetween(t *testing.T) {
	all := []string{"TERM 1", "TERM 2", "TERM 3", "TERM 4", "KILL 1", "KILL 2", "KILL 3", "KILL 4"}
	for n := 1; n <= len(all); n++ {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			h := &fakeHost{procs: map[int]*fakeProc{}, sent: func(sent int) {
				if sent == n {
					cancel()
				}
			}}
			for pid := 1; pid <= 4; pid++ {
				h.procs[pid] = &fakeProc{byTerm: never}
			}
			results := h.run(t, ctx, time.Second, newGroup([]int{1, 2}, []int{3, 4}))
			var got, want []string
			for _, line := range h.log {
				var at, name, pid string
				fmt.Sscan(line, &at, &name, &pid)
				if name != "CONT" {
					got = append(got, name+" "+pid)
				}
			}
			if !slices.Equal(got, all[:n]) {
				t.Errorf("interrupted after %d: %q", n, got)
			}
			for pid := 1; pid <= 4; pid++ {
				switch {
				case pid+4 <= n:
					want = append(want, fmt.Sprint(pid, " killed"))
				case pid <= n:
					want = append(want, fmt.Sprint(pid, " unsettled"))
				default:
					want = append(want, fmt.Sprint(pid, " unasked"))
				}
			}
			wantResults(t, results[0], want...)
		})
	}
}

// TestTerminateInterruptedWhileOpening: nothing is signalled unless all of the group were opened.
func TestTerminateInterruptedWhileOpening(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := &fakeHost{procs: map[int]*fakeProc{1: {}, 2: {}, 3: {}}}
	opened := 0
	open := func(id scan.ID) (Handle, error) {
		opened++
		if id.PID == 2 {
			cancel()
		}
		return h.Open(id)
	}
	results := Terminate(ctx, open, []Group{newGroup([]int{1}, []int{2, 3})}, time.Hour)
	wantResults(t, results[0], "1 unasked", "2 unasked", "3 unasked")
	if h.log != nil || h.open != 0 || opened != 2 {
		t.Errorf("signals %q, %d opened, %d open still", h.log, opened, h.open)
	}
}

func TestOutcomeExited(t *testing.T) {
	for o, want := range map[Outcome]bool{Gone: true, Ended: true, Killed: true, Refused: false, Survived: false, NotStarted: false, NotFinished: false} {
		if got := o.Exited(); got != want {
			t.Errorf("%s: %v", o, got)
		}
	}
}
