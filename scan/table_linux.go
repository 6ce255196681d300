package scan

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

const (
	// maxCmdline is where a longer command line is cut. The kernel allows megabytes, and any user can
	// make one; what distinguishes one server from another comes earlier.
	maxCmdline = 128 << 10

	// maxDeadlines is how many deadlines may pass until the remaining processes are read without their
	// command lines.
	maxDeadlines = 8
)

// Reading cmdline can block: it takes the memory lock of the process and may have to fetch a page from
// swap or from a dead file system.
var (
	errBlocked = errors.New("the read has not returned")
	errSkipped = errors.New("not read, since other reads took too long")
	errCut     = errors.New("longer than maxCmdline")
)

// A statRead is the outcome of reading /proc/PID/stat into a row, and the numbers that the row points to.
type statRead struct {
	uid int
	rss int64
	cpu float64

	err      error
	hasArgs  bool        // kernel threads and dead processes have none
	complete atomic.Bool // neither this nor the row is written to any more
}

// An argsRead is the outcome of reading /proc/PID/cmdline.
type argsRead struct {
	args []string
	err  error
}

// A table is the process table while it is read.
type table struct {
	rows     []Process
	stats    []statRead
	argsErrs []error
	late     bool // a read that has not returned may still write to its row
}

// readTable reads the processes pids. It returns when each is read or given up.
func readTable(ctx context.Context, root int, pids []int, boot time.Time, deadline time.Duration) *table {
	t := &table{rows: make([]Process, len(pids)), stats: make([]statRead, len(pids)), argsErrs: make([]error, len(pids))}
	for i, pid := range pids {
		t.rows[i] = Process{PID: pid, PPID: UnknownPPID}
	}
	limited, cancel := context.WithTimeout(ctx, maxDeadlines*deadline)
	defer cancel()
	stuck, skipped := sweep(limited, deadline, len(pids), func() func(int) argsRead {
		r := newTableReader(root, boot)
		return func(i int) argsRead {
			dir := strconv.Itoa(pids[i])
			r.readStat(dir, &t.rows[i], &t.stats[i])
			if !t.stats[i].hasArgs {
				return argsRead{}
			}
			return r.readArgs(dir)
		}
	}, func(i int, v argsRead) { t.rows[i].Args, t.argsErrs[i] = v.args, v.err })
	for _, i := range stuck {
		t.argsErrs[i] = errBlocked
	}
	sweep(ctx, deadline, len(skipped), func() func(int) bool {
		r := newTableReader(root, boot)
		return func(n int) bool {
			i := skipped[n]
			r.readStat(strconv.Itoa(pids[i]), &t.rows[i], &t.stats[i])
			return t.stats[i].hasArgs
		}
	}, func(n int, hasArgs bool) {
		if hasArgs {
			t.argsErrs[skipped[n]] = errSkipped
		}
	})
	t.late = len(stuck)+len(skipped) > 0
	return t
}

// attach fills in s.Processes, and says in s.Problems what could not be read and why.
func (t *table) attach(s *Snapshot, pids []int, deadline time.Duration) {
	s.Processes = t.rows[:0]
	if t.late {
		s.Processes = make([]Process, 0, len(pids))
	}
	var blocked, refused, skippedArgs, refusedArgs, cut []int
	for i, pid := range pids {
		p, err, argsErr := Process{PID: pid, PPID: UnknownPPID}, errBlocked, t.argsErrs[i]
		if t.stats[i].complete.Load() {
			p, err = t.rows[i], t.stats[i].err
		}
		if procfs.IsGone(err) || procfs.IsGone(argsErr) {
			continue
		}
		switch {
		case err == errBlocked, argsErr == errBlocked:
			blocked = append(blocked, pid)
		case err != nil:
			refused = append(refused, pid)
		case argsErr == errSkipped:
			skippedArgs = append(skippedArgs, pid)
		case argsErr == errCut:
			cut = append(cut, pid)
		case argsErr != nil:
			refusedArgs = append(refusedArgs, pid)
		}
		switch {
		case err != nil:
			p.Unreadable = []string{"ppid", "start", "name", "state", "args"}
		case argsErr != nil && argsErr != errCut:
			p.Unreadable = []string{"args"}
		}
		s.Processes = append(s.Processes, p)
	}
	s.problemOf(blocked, "reading %s did not return within %v (the process or its memory is stuck in the kernel)", deadline)
	s.problemOf(refused, "nothing about %s may be read")
	s.problemOf(skippedArgs, "the command lines of %s were left unread, since reading the others took too long")
	s.problemOf(refusedArgs, "the command lines of %s may not be read")
	s.problemOf(cut, "the command lines of %s are longer than %d KiB and were cut", maxCmdline>>10)
}

// A tableReader reads one process after the other.
type tableReader struct {
	procfs.Reader // of the procfs mount
	boot          time.Time
	pageSize      int64
	args          []string // room for argument vectors
}

func newTableReader(root int, boot time.Time) *tableReader {
	return &tableReader{Reader: procfs.Reader{Dir: root, Buf: make([]byte, 8<<10)}, boot: boot, pageSize: int64(os.Getpagesize())}
}

// readStat reads dir/stat and the owner into p and st.
func (r *tableReader) readStat(dir string, p *Process, st *statRead) {
	defer st.complete.Store(true)
	var file unix.Stat_t
	content, err := r.ReadFile(dir+"/stat", 64<<10, &file)
	if err != nil {
		st.err = err
		return
	}
	stat, err := procfs.ParseStat(content)
	// The file belongs to the process's user, but to root when the process may not be dumped; then only
	// the directory has the right owner.
	if err == nil && file.Uid == 0 && !stat.IsKernelThread() {
		err = unix.Fstatat(r.Dir, dir, &file, 0)
	}
	if err != nil {
		st.err = err
		return
	}
	st.hasArgs = !stat.IsKernelThread() && stat.State != 'Z' && stat.State != 'X'
	st.uid = int(file.Uid)
	st.rss = stat.RSS * r.pageSize
	st.cpu = float64(stat.CPU) / procfs.TicksPerSecond
	p.UID, p.RSSBytes, p.CPUSeconds = &st.uid, &st.rss, &st.cpu
	p.PPID, p.PGID, p.SID = stat.PPID, stat.PGID, stat.Session
	p.Name = string(stat.Comm)
	p.State = string(rune(stat.State))
	if stat.State == 'Z' && stat.Threads > 1 {
		p.State = "Zl" // as ps(1) writes it: the first thread has exited, others run
	}
	p.TTY = procfs.TTYName(stat.TTY)
	p.Start = stat.Start
	if !r.boot.IsZero() {
		p.Started = r.boot.Add(time.Duration(stat.Start) * (time.Second / procfs.TicksPerSecond))
	}
}

// readArgs reads dir/cmdline. The arguments of one process share one string, and the vectors of
// many processes one array.
func (r *tableReader) readArgs(dir string) argsRead {
	content, err := r.ReadFile(dir+"/cmdline", maxCmdline, nil)
	if err != nil {
		return argsRead{err: err}
	}
	if need := bytes.Count(content, []byte{0}) + 1; need > cap(r.args)-len(r.args) {
		r.args = make([]string, 0, max(need, 512))
	}
	first := len(r.args)
	r.args = procfs.SplitCmdline(string(content), r.args)
	var v argsRead
	if len(r.args) > first {
		v.args = r.args[first:len(r.args):len(r.args)]
	}
	if len(content) == maxCmdline {
		v.err = errCut
	}
	return v
}
