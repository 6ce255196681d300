package scan

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

// smallFile is more than stat, status, cgroup or smaps_rollup holds, and more than most environments.
const smallFile = 8 << 10

// examine fills in what /proc and sock_diag(7) show of rows. The files that can be read without the memory
// lock of the process come first; environments, which can block, have a pass of their own, so that a stuck
// process does not cost the evidence about others.
func examine(ctx context.Context, s *Snapshot, rows []*Process, o ExamineOptions) {
	if len(rows) == 0 {
		return
	}
	root, err := openRoot(o.Root)
	if err != nil {
		s.problem("cannot examine any process: %v", err)
		return
	}
	defer unix.Close(root)
	e := examination{root: root, sockets: readSockets(ctx)}
	defer e.sockets.close()
	e.netns, _ = os.Readlink("/proc/self/ns/net")
	// Swap is in /proc/PID/status, the slowest of the small files.
	e.swapping = s.Host.MemoryTotalBytes == 0 || s.Host.SwapTotalBytes > s.Host.SwapFreeBytes

	wanted := subjects(rows, o.Brief)
	observations := make([]observation, len(rows))
	stuck, skipped := sweep(ctx, o.deadline(), len(rows), func() func(int) observation {
		buf := make([]byte, smallFile)
		return func(i int) observation { return e.observe(wanted[i], buf) }
	}, func(i int, seen observation) { observations[i] = seen })
	late := slices.Concat(stuck, skipped)
	for _, i := range late {
		observations[i].err = context.DeadlineExceeded
	}
	giveUp(s, rows, late, o, observedFields...)
	e.attach(s, rows, observations)
	e.sockets.attach(s, rows, observations)

	var tops []*Process
	for i, p := range rows {
		if wanted[i].top {
			tops = append(tops, p)
		}
	}
	readEnvirons(ctx, root, s, tops, o)
}

// A subject is a process to examine.
type subject struct {
	id ID

	// top says that the parent is not a subject, or may have adopted the process or be its supervisor.
	// Control group, environment and executable are inherited and only read here.
	top bool

	brief bool // see ExamineOptions.Brief

	// driven says that a browser takes its commands on descriptor 3: Chromium's
	// --remote-debugging-pipe reads from 3 and writes to 4.
	driven bool
}

func subjects(rows []*Process, brief []int) []subject {
	rowOf, isBrief := make(map[int]*Process, len(rows)), make(map[int]bool, len(brief))
	for _, p := range rows {
		rowOf[p.PID] = p
	}
	for _, pid := range brief {
		isBrief[pid] = true
	}
	out := make([]subject, len(rows))
	for i, p := range rows {
		parent := rowOf[p.PPID]
		out[i] = subject{
			id:     p.ID(),
			top:    parent == nil || p.PPID == 1 || parent.Name == "systemd",
			brief:  isBrief[p.PID],
			driven: slices.Contains(p.Args, "--remote-debugging-pipe"),
		}
	}
	return out
}

// An examination is what all observations share. It does not change while they run.
type examination struct {
	root     int // descriptor of the procfs mount
	sockets  *socketTable
	netns    string // our network namespace, "net:[4026531840]"
	swapping bool   // the machine has memory in swap
}

// An observation is what the kernel showed of one process. It shares nothing with the snapshot, so that one that
// returns too late does no harm.
type observation struct {
	err error // the process could not be opened; nothing else is filled in

	stdin, stdout Stdin
	fds           []descriptor // its pipes and sockets
	brief         bool         // only stdin and the origin were read

	// knownSockets says that all sockets are in our table. When one is not, foreign says that the
	// process is in another network namespace, or may be.
	knownSockets, foreign bool

	cgroup, cwd, exe string
	swap             *int64

	refused []string // fields that may not be read
}

// observedFields are the fields that an observation fills in.
var observedFields = []string{"stdin", "listen", "cwd", "exe", "cgroup", "swap_bytes"}

// observe reads what cannot block of one process.
func (e *examination) observe(subject subject, buf []byte) (seen observation) {
	h, err := procfs.Open(e.root, subject.id.PID, subject.id.Start, buf)
	if err != nil {
		return observation{err: err}
	}
	defer h.Close()
	if subject.brief {
		// A server with /dev/null at descriptor 0 may have moved its stdin; a client has not.
		seen.stdin = observeStdin(h, e.sockets)
		seen.brief = seen.stdin.Peer == PeerOpen || seen.stdin.Peer == "" && seen.stdin.Type != "" && subject.top
	}
	if !seen.brief {
		e.observeFDs(h, subject.driven, &seen)
	}
	if seen.brief && !subject.top {
		return seen
	}
	seen.cwd, err = h.Link("cwd")
	seen.note(err, "cwd")
	if subject.top {
		seen.exe, err = h.Link("exe")
		seen.note(err, "exe")
		content, err := h.ReadFile("cgroup", smallFile, nil)
		seen.note(err, "cgroup")
		seen.cgroup = procfs.ParseCgroup(content)
	}
	if e.swapping {
		content, err := h.ReadFile("status", smallFile, nil)
		seen.note(err, "swap_bytes")
		if n, ok := procfs.ParseSwap(content); ok {
			seen.swap = &n
		}
	}
	return seen
}

// observeFDs reads the open descriptors.
func (e *examination) observeFDs(h procfs.Process, driven bool, seen *observation) {
	f, err := h.OpenFDs()
	if seen.note(err, "stdin", "listen"); err != nil {
		return
	}
	defer f.Close()
	var stdin, stdout descriptor
	seen.fds, stdin, stdout = listDescriptors(f)
	seen.stdin = findStdin(f, seen.fds, stdin, e.sockets, driven)
	seen.stdout = Stdin{Type: stdout.kind}
	switch stdout.kind {
	case StdinSocket:
		seen.stdout = peerOf(f, stdout, e.sockets)
	case StdinPipe:
		seen.stdout.Peer = pipeReader(f, stdout)
	}

	// sock_diag(7) shows the sockets of our network namespace only.
	seen.knownSockets = e.sockets.knows(seen.fds)
	isClosed := func(std Stdin) bool { return std.Type == StdinSocket && std.Peer == PeerClosed }
	closed := isClosed(seen.stdin) || isClosed(seen.stdout)
	if seen.knownSockets && !closed {
		return
	}
	netns, err := h.Link("ns/net")
	seen.foreign = err != nil || netns != e.netns
	if seen.foreign && closed && seen.stdin.Type == StdinSocket {
		seen.stdin.Peer = PeerUnknown
	}
	if seen.foreign && seen.stdout.Type == StdinSocket {
		seen.stdout.Peer = PeerUnknown
	}
}

// note records which fields could not be read. They are absent, not refused, when the process has exited.
func (seen *observation) note(err error, fields ...string) {
	if err != nil && !procfs.IsGone(err) {
		seen.refused = append(seen.refused, fields...)
	}
}

// attach fills in everything but the sockets. A process that could not be opened, for want of descriptors
// or memory, gets all fields unreadable; one that has exited stays as it was.
func (e *examination) attach(s *Snapshot, rows []*Process, observations []observation) {
	var failed []int
	var reason error
	for i, p := range rows {
		seen := &observations[i]
		switch {
		case seen.err == nil:
		case errors.Is(seen.err, context.DeadlineExceeded), errors.Is(seen.err, procfs.ErrOtherProcess), procfs.IsGone(seen.err):
			continue
		default:
			for _, field := range observedFields {
				p.setUnreadable(field, true)
			}
			failed, reason = append(failed, p.PID), seen.err
			continue
		}
		for _, field := range observedFields {
			p.setUnreadable(field, slices.Contains(seen.refused, field))
		}
		p.Stdin, p.Stdout = nil, nil
		if stdin := seen.stdin; stdin.Type != "" {
			p.Stdin = &stdin
		}
		if seen.stdout.Type != "" {
			p.Stdout = &Stdin{Type: seen.stdout.Type, Peer: seen.stdout.Peer}
		}
		p.CWD, p.Exe, p.Cgroup, p.SwapBytes = seen.cwd, seen.exe, seen.cgroup, seen.swap
		if !e.swapping {
			p.SwapBytes = new(int64)
		}
	}
	s.problemOf(failed, "cannot examine %s: %v", reason)
}

// giveUp marks fields of the rows at the indexes late as unreadable.
func giveUp(s *Snapshot, rows []*Process, late []int, o ExamineOptions, fields ...string) {
	pids := make([]int, len(late))
	for i, index := range late {
		pids[i] = rows[index].PID
		for _, field := range fields {
			rows[index].setUnreadable(field, true)
		}
	}
	s.problemOf(pids, "reading "+strings.Join(fields, ", ")+" of %s did not finish within %v", o.deadline())
}

// rootOf returns the root directory of a process; see proc_pid_root(5).
func rootOf(o ExamineOptions, pid int) string {
	return filepath.Join(procPath(o.Root), strconv.Itoa(pid), "root")
}
