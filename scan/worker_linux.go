package scan

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

// A worker reads one process after the other.
type worker struct {
	t     *table
	file  procfs.Reader
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
	return &worker{t: t, file: procfs.Reader{Dir: t.root, Buf: make([]byte, 8<<10)}, names: make(map[string]string)}
}

// run works until all is read, or until the watchdog has given the worker up while it was inside a
// read: then its process is settled without it, and nobody waits for it.
func (w *worker) run(done chan<- *worker, over <-chan struct{}) {
	for {
		i, ok := w.take()
		if !ok {
			return
		}
		if i >= len(w.t.pids) {
			select {
			case done <- w:
			case <-over:
			}
			return
		}
		if !w.read(i) {
			return
		}
	}
}

// take takes the next process. Like save it returns false when the worker was given up.
func (w *worker) take() (i int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.givenUp {
		return 0, false
	}
	w.step++
	i = int(w.t.next.Add(1) - 1)
	if i < len(w.t.pids) {
		w.row = i
		w.t.rows[i] = unread(w.t.pids[i])
	}
	return i, true
}

// read reads the process at index i. Before each read the table holds what is known in case that
// the read does not come back. It returns false when the worker was given up meanwhile.
func (w *worker) read(i int) bool {
	p := unread(w.t.pids[i])
	dir := strconv.Itoa(p.PID)
	err := w.readStat(dir, &p, &w.t.numbers[i])
	if procfs.IsGone(err) {
		return w.save(i, &Process{})
	}
	if !w.save(i, &p) {
		return false
	}
	if err != nil || p.Unreadable == nil || w.t.statOnly.Load() {
		return true
	}
	switch err = w.readArgs(dir, &p); {
	case procfs.IsGone(err):
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
	content, err := w.file.ReadFile(dir+"/stat", 64<<10, &file)
	if err != nil {
		return err
	}
	st, err := procfs.ParseStat(content)
	if err != nil {
		return err
	}
	p.PPID = st.PPID
	p.Name = w.intern(st.Comm)
	p.State = string(rune(st.State))
	if st.State == 'Z' && st.Threads > 1 {
		p.State = "Zl" // as ps(1) has it: only the first thread has ended, the others go on
	}
	p.PGID = st.PGID
	p.SID = st.Session
	p.TTY = procfs.TTYName(st.TTY)
	p.Start = st.Start
	if !w.t.boot.IsZero() {
		p.Started = w.t.boot.Add(time.Duration(st.Start) * (time.Second / procfs.TicksPerSecond))
	}
	n.rss = st.RSS * w.t.pageSize
	n.cpu = float64(st.CPU) / procfs.TicksPerSecond
	p.RSSBytes, p.CPUSeconds = &n.rss, &n.cpu

	// The file belongs to the process's user, but to root when the process may not be dumped;
	// then only the directory tells.
	if file.Uid == 0 && !st.IsKernelThread() {
		if err := unix.Fstatat(w.t.root, dir, &file, 0); err != nil {
			return err
		}
	}
	n.uid = int(file.Uid)
	p.UID = &n.uid

	p.Unreadable = beforeArgs
	if st.IsKernelThread() || st.State == 'Z' || st.State == 'X' {
		p.Unreadable = nil
	}
	return nil
}

// maxCmdline is where a longer command line is cut. The kernel allows megabytes, and any user can
// make one; nothing that tells one server from another stands so far behind.
const maxCmdline = 128 << 10

// readArgs reads dir/cmdline. The arguments of one process share one string, and the vectors of
// many one array.
func (w *worker) readArgs(dir string, p *Process) error {
	content, err := w.file.ReadFile(dir+"/cmdline", maxCmdline, nil)
	if err != nil {
		return err
	}
	if need := bytes.Count(content, []byte{0}) + 1; need > cap(w.args)-len(w.args) {
		w.args = make([]string, 0, max(need, 512))
	}
	first := len(w.args)
	w.args = procfs.SplitCmdline(string(content), w.args)
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
