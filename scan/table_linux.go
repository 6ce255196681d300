package scan

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
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

	// statOnly tells the workers to leave command lines alone: too many reads block.
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
	// not moved between two looks gets a substitute at once, so that blocked reads wait side by
	// side and cost one deadline together.
	looks = 20

	// maxSubstitutes bounds the threads that blocked reads can hold.
	maxSubstitutes = 48

	// patience is how many deadlines may pass until the rest goes without command lines.
	patience = 8
)

// read reads all processes. It returns when each is read or given up.
func (t *table) read(ctx context.Context, deadline time.Duration) error {
	cores := min(runtime.GOMAXPROCS(0), len(t.pids))
	most := cores + maxSubstitutes
	done := make(chan *worker, most) // nobody has to wait to say that he is done
	var crew []*worker
	hired := 0
	hire := func() {
		w := newWorker(t)
		crew = append(crew, w)
		hired++
		go w.run(done)
	}
	leave := func(w *worker) { crew = slices.DeleteFunc(crew, func(c *worker) bool { return c == w }) }
	for range cores {
		hire()
	}

	look := time.NewTicker(max(deadline/looks, time.Millisecond))
	defer look.Stop()
	stop := ctx.Done()
	for n := 1; len(crew) > 0; {
		select {
		case <-stop:
			stop = nil
			t.next.Store(int64(len(t.pids)))
		case w := <-done:
			leave(w)
		case <-look.C:
			if n++; n > patience*looks {
				t.statOnly.Store(true)
			}
			for _, w := range slices.Clone(crew) {
				switch idle := w.idleLooks(); {
				case idle >= looks:
					if pid, ok := w.giveUp(); ok {
						t.blocked = append(t.blocked, pid)
						leave(w)
					}
				case idle == 1 && hired < most:
					hire()
					if hired == most {
						t.statOnly.Store(true)
					}
				}
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
		s.problem("reading %s did not come back within %v (the process or its memory is stuck in the kernel)", pidList(t.blocked), deadline)
	}
	if len(refused) > 0 {
		s.problem("nothing about %s may be read", pidList(refused))
	}
	if len(noArgs) > 0 && t.statOnly.Load() {
		s.problem("the command lines of %s were left unread, since too many reads blocked", pidList(noArgs))
	} else if len(noArgs) > 0 {
		s.problem("the command lines of %s may not be read", pidList(noArgs))
	}
	if len(cut) > 0 {
		s.problem("the command lines of %s are longer than %d KiB and were cut", pidList(cut), maxCmdline>>10)
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

// A worker reads one process after the other.
type worker struct {
	t     *table
	file  reader
	names map[string]string // names repeat; each is made once
	args  []string          // room for argument vectors

	mu      sync.Mutex // held for moments, never during a read
	row     int        // index of the process it is at
	step    int        // counts the reads, so that the watchdog sees it move
	seen    int        // step at the watchdog's last look
	idle    int        // looks since step has changed
	givenUp bool
}

func newWorker(t *table) *worker {
	return &worker{t: t, file: reader{root: t.root, buf: make([]byte, 8<<10)}, names: make(map[string]string)}
}

// run works until all is read, or until the watchdog has given the worker up while it was inside a
// read: then its process is settled without it, and nobody waits for it.
func (w *worker) run(done chan<- *worker) {
	for {
		i := int(w.t.next.Add(1) - 1)
		if i >= len(w.t.pids) {
			done <- w
			return
		}
		if !w.read(i) {
			return
		}
	}
}

// read reads the process at index i. Before each read it leaves in the table what is known in case
// that the read does not come back. It returns false when the worker was given up meanwhile.
func (w *worker) read(i int) bool {
	p := unread(w.t.pids[i])
	if !w.save(i, &p) {
		return false
	}
	dir := strconv.Itoa(p.PID)
	err := w.readStat(dir, &p, &w.t.numbers[i])
	switch {
	case gone(err):
		return w.save(i, &Process{})
	case err != nil, p.Unreadable == nil:
		return w.save(i, &p)
	case w.t.statOnly.Load():
		return w.save(i, &p)
	}
	if !w.save(i, &p) {
		return false
	}
	switch err = w.readArgs(dir, &p); {
	case gone(err):
		return w.save(i, &Process{})
	case err == nil:
		p.Unreadable = nil
	}
	return w.save(i, &p)
}

// What is unreadable before the first and before the second read.
var (
	beforeStat = []string{"ppid", "start", "name", "state", "args"}
	beforeArgs = []string{"args"}
)

// unread is a process of which nothing is known but its PID.
func unread(pid int) Process {
	return Process{PID: pid, PPID: UnknownPPID, Unreadable: beforeStat}
}

// readStat reads dir/stat and the owner. It leaves the arguments unreadable, unless the process has
// none: the kernel's own threads and the dead.
func (w *worker) readStat(dir string, p *Process, n *numbers) error {
	var file unix.Stat_t
	content, err := w.file.read(dir+"/stat", 64<<10, &file)
	if err != nil {
		return err
	}
	st, err := parseStat(content)
	if err != nil {
		return err
	}
	p.PPID = st.ppid
	p.Name = w.intern(st.comm)
	p.State = string(rune(st.state))
	p.PGID = st.pgrp
	p.SID = st.session
	p.TTY = ttyName(st.ttyNr)
	p.Start = st.start
	if !w.t.boot.IsZero() {
		p.Started = w.t.boot.Add(time.Duration(st.start) * (time.Second / ticksPerSecond))
	}
	n.rss = st.rss * w.t.pageSize
	n.cpu = float64(st.cpu) / ticksPerSecond
	p.RSSBytes, p.CPUSeconds = &n.rss, &n.cpu

	// The file belongs to the process's user, but to root when the process may not be dumped;
	// then only the directory tells.
	if file.Uid == 0 && st.flags&kernelThread == 0 {
		if err := unix.Fstatat(w.t.root, dir, &file, 0); err != nil {
			return err
		}
	}
	n.uid = int(file.Uid)
	p.UID = &n.uid

	p.Unreadable = beforeArgs
	if st.flags&kernelThread != 0 || st.state == 'Z' || st.state == 'X' {
		p.Unreadable = nil
	}
	return nil
}

// readArgs reads dir/cmdline. The arguments of one process share one string, and the vectors of
// many one array.
func (w *worker) readArgs(dir string, p *Process) error {
	content, err := w.file.read(dir+"/cmdline", maxCmdline, nil)
	if err != nil {
		return err
	}
	if need := bytes.Count(content, []byte{0}) + 1; need > cap(w.args)-len(w.args) {
		w.args = make([]string, 0, max(need, 512))
	}
	first := len(w.args)
	w.args = splitCmdline(string(content), w.args)
	if len(w.args) > first {
		p.Args = w.args[first:len(w.args):len(w.args)]
	}
	return nil
}

// intern returns b as a string, the same one for the same bytes.
func (w *worker) intern(b []byte) string {
	s, ok := w.names[string(b)]
	if !ok {
		s = string(b)
		w.names[s] = s
	}
	return s
}

// save leaves p in the table at index i and counts as a step. It returns false when the worker was
// given up: then the row is not its own any more.
func (w *worker) save(i int, p *Process) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.givenUp {
		return false
	}
	w.row = i
	w.step++
	w.t.rows[i] = *p
	return true
}

// idleLooks is asked by the watchdog, once a look: for how many looks has the worker not moved?
func (w *worker) idleLooks() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle++
	if w.step != w.seen {
		w.idle, w.seen = 0, w.step
	}
	return w.idle
}

// giveUp leaves the worker behind, if it has not moved since the last look, and returns the process
// that it hangs on.
func (w *worker) giveUp() (pid int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.step != w.seen {
		return 0, false
	}
	w.givenUp = true
	return w.t.pids[w.row], true
}
