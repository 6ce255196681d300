package scan

import (
	"context"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// A table is the process table while it is read. A few workers take one process after the other
// from it. No read of /proc needs a deadline on a healthy machine, so none has a timer of its own;
// instead one watchdog sees whether each worker still moves.
//
// What can block is the read of cmdline: it takes the memory lock of the process and may have to
// bring a page back from swap or from a dead file system. A thread inside such a read cannot be
// interrupted, only left behind.
type table struct {
	root     int // descriptor of the procfs mount
	boot     time.Time
	pageSize int64

	pids    []int
	next    atomic.Int64 // index of the first process that nobody has taken
	rows    []Process    // rows[i] is pids[i]; its PID is 0 until it is read and when it is gone
	numbers []numbers    // what rows[i] points to

	// statOnly tells the workers to leave command lines alone: too many reads block or crawl.
	statOnly atomic.Bool

	blocked []int // processes whose read was given up
}

// numbers are the optional numbers of one process. Those of a whole table are allocated at once.
type numbers struct {
	uid int
	rss int64
	cpu float64
}

func newTable(root int, pids []int, boot time.Time) *table {
	return &table{
		root:     root,
		boot:     boot,
		pageSize: int64(os.Getpagesize()),
		pids:     pids,
		rows:     make([]Process, len(pids)),
		numbers:  make([]numbers, len(pids)),
	}
}

const (
	// looks is how often the watchdog looks at a worker until it gives it up. A worker that has
	// not moved from one look to the next gets a substitute at once, so that blocked reads wait
	// side by side and cost one deadline together.
	looks = 20

	// maxSubstitutes bounds the threads that reads can hold at one time, and maxBlocked those
	// that are lost until all other command lines are left alone.
	maxSubstitutes, maxBlocked = 48, 48

	// patience is how many deadlines may pass until the rest goes without command lines.
	patience = 8
)

// read reads all processes. It returns when each is read or given up.
func (t *table) read(ctx context.Context, deadline time.Duration) error {
	var crew []*worker
	done := make(chan *worker)
	over := make(chan struct{}) // closed when nobody listens to done any more
	defer close(over)
	hire := func() {
		w := newWorker(t)
		crew = append(crew, w)
		go w.run(done, over)
	}
	leave := func(w *worker) { crew = slices.DeleteFunc(crew, func(c *worker) bool { return c == w }) }

	cores := min(runtime.GOMAXPROCS(0), len(t.pids))
	for range cores {
		hire()
	}
	look := time.NewTicker(max(deadline/looks, time.Millisecond))
	defer look.Stop()
	stop, last := ctx.Done(), false
	for n := 1; len(crew) > 0; {
		select {
		case <-stop:
			stop = nil
			t.next.Store(int64(len(t.pids)))
		case w := <-done:
			leave(w)
		case <-look.C:
			for _, w := range slices.Clone(crew) {
				switch idle := w.idleLooks(); {
				case idle >= looks:
					if pid, ok := w.giveUp(); ok {
						t.blocked = append(t.blocked, pid)
						leave(w)
					}
				case idle == 1 && len(crew) < cores+maxSubstitutes:
					hire()
				}
			}
			n++
			if n > patience*looks || len(t.blocked) >= maxBlocked {
				t.statOnly.Store(true)
			}
			if len(crew) == 0 && int(t.next.Load()) < len(t.pids) && !last {
				last = true // one more, for the stats alone; they do not block
				t.statOnly.Store(true)
				hire()
			}
		}
	}
	return ctx.Err()
}

// processes returns what was read, in order.
func (t *table) processes() []Process {
	// With every worker given up there can be processes that nobody took.
	for i := min(int(t.next.Load()), len(t.pids)); i < len(t.pids); i++ {
		t.rows[i] = unread(t.pids[i])
	}
	read := slices.DeleteFunc(t.rows, func(p Process) bool { return p.PID == 0 })
	for i := range read {
		read[i].Unreadable = slices.Clone(read[i].Unreadable)
	}
	return read
}

// explain says in s.Problems what could not be read, and why.
func (t *table) explain(s *Snapshot, deadline time.Duration) {
	var refused, noArgs, cut []int
	for i := range s.Processes {
		p := &s.Processes[i]
		switch {
		case slices.Contains(t.blocked, p.PID):
		case slices.Contains(p.Unreadable, "ppid"):
			refused = append(refused, p.PID)
		case slices.Contains(p.Unreadable, "args"):
			noArgs = append(noArgs, p.PID)
		case argsLen(p.Args) >= maxCmdline-1:
			cut = append(cut, p.PID)
		}
	}
	slices.Sort(t.blocked)
	if len(t.blocked) > 0 {
		s.problem("reading %s did not come back within %v (the process or its memory is stuck in the kernel)", PIDList(t.blocked), deadline)
	}
	if len(refused) > 0 {
		s.problem("nothing about %s may be read", PIDList(refused))
	}
	if len(noArgs) > 0 && t.statOnly.Load() {
		s.problem("the command lines of %s were left unread, since reading the others took too long", PIDList(noArgs))
	} else if len(noArgs) > 0 {
		s.problem("the command lines of %s may not be read", PIDList(noArgs))
	}
	if len(cut) > 0 {
		s.problem("the command lines of %s are longer than %d KiB and were cut", PIDList(cut), maxCmdline>>10)
	}
}

// argsLen is the length of the vector as it stands in memory, less the last NUL.
func argsLen(args []string) int {
	n := len(args) - 1
	for _, a := range args {
		n += len(a)
	}
	return n
}
