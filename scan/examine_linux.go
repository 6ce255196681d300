package scan

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

// smallFile is more than any of stat, status, cgroup and smaps_rollup holds.
const smallFile = 8 << 10

// A look is what the kernel told about one process. Nothing of it points into the snapshot, so that
// a look that comes back too late does no harm.
type look struct {
	err error // the process was not found; nothing else is filled in

	stdin  Stdin
	stdout Stdin
	ends   []end // its pipes and sockets

	// knownSockets tells that all sockets are in the table of our network namespace. When one is
	// not, foreign tells whether the process lives in another, or may not be asked.
	knownSockets, foreign bool

	cgroup, cwd, exe string
	swap             *int64

	refused []string // fields that may not be read

	brief bool // nothing but stdin was asked for

	dir int // the handle, kept for the second pass, or -1
}

// keptHandles is how many handles are kept from the first pass to the second, far below the limit
// of 1024 descriptors that is usual.
const keptHandles = 256

// examine fills in what /proc and sock_diag(7) tell about rows. It passes over them more than once:
// first for the files whose reading takes no lock of the process's memory, then for each of those
// that can block, so that no stuck process delays the evidence about another.
func examine(ctx context.Context, s *Snapshot, rows []*Process, o ExamineOptions) {
	if len(rows) == 0 {
		return
	}
	root, err := openRoot(o)
	if err != nil {
		s.problem("cannot look closer at any process: %v", err)
		return
	}
	defer unix.Close(root)
	e := examination{root: root, ids: make([]ID, len(rows)), sockets: readSockets(ctx)}
	defer e.sockets.close()
	for i, p := range rows {
		e.ids[i] = p.ID()
	}
	e.tops, e.brief, e.driven = tops(rows), brief(rows, o.Brief), driven(rows)
	e.netns, _ = os.Readlink("/proc/self/ns/net")
	// The swap stands in /proc/PID/status, the dearest of the small files.
	e.swapping = s.Host.MemoryTotalBytes == 0 || s.Host.SwapTotalBytes > s.Host.SwapFreeBytes

	looks := make([]look, len(rows))
	stuck, skipped := sweep(ctx, o.deadline(), len(rows), func() func(int) look {
		buf := make([]byte, smallFile)
		return func(i int) look { return e.look(i, buf) }
	}, func(i int, l look) { looks[i] = l })
	late := append(stuck, skipped...)
	for _, i := range late {
		looks[i] = look{err: context.DeadlineExceeded, dir: -1}
	}
	giveUp(s, rows, late, o, firstPass...)
	failed(s, rows, looks)
	for i, p := range rows {
		if looks[i].err == nil {
			looks[i].attach(p, e.swapping)
		}
	}
	attachSockets(s, rows, looks, e.sockets)
	e.readEnvirons(ctx, s, rows, looks, o)
}

// tops marks the rows that are topmost: whose parent was not asked about, or may have adopted or be
// keeping them. Control group, environment and executable tell where a process comes from and who
// keeps it; they are inherited, so that below a top they would tell the same again.
func tops(rows []*Process) []bool {
	asked := make(map[int]*Process, len(rows))
	for _, p := range rows {
		asked[p.PID] = p
	}
	out := make([]bool, len(rows))
	for i, p := range rows {
		parent := asked[p.PPID]
		out[i] = parent == nil || p.PPID == 1 || parent.Name == "systemd"
	}
	return out
}

// brief marks the rows of which little is asked.
func brief(rows []*Process, pids []int) []bool {
	asked := make(map[int]bool, len(pids))
	for _, pid := range pids {
		asked[pid] = true
	}
	out := make([]bool, len(rows))
	for i, p := range rows {
		out[i] = asked[p.PID]
	}
	return out
}

// driven marks the browsers that take their orders on descriptor 3, which is their wire then
// (Chromium's --remote-debugging-pipe reads from 3 and writes to 4).
func driven(rows []*Process) []bool {
	out := make([]bool, len(rows))
	for i, p := range rows {
		out[i] = slices.Contains(p.Args, "--remote-debugging-pipe")
	}
	return out
}

// giveUp says which fields of which rows did not come back.
func giveUp(s *Snapshot, rows []*Process, late []int, o ExamineOptions, fields ...string) {
	if len(late) == 0 {
		return
	}
	pids := make([]int, len(late))
	for i, index := range late {
		pids[i] = rows[index].PID
		for _, field := range fields {
			rows[index].setUnreadable(field, true)
		}
	}
	s.problem("reading %s of %s did not end within %v", strings.Join(fields, ", "), PIDList(pids), o.deadline())
}

// firstPass are the fields that the first pass fills in.
var firstPass = []string{"stdin", "listen", "cwd", "exe", "cgroup", "swap_bytes"}

// failed marks the rows that could not be looked at for another reason than that they are gone: there
// were no more descriptors, or no memory. What was not seen must not look as if nobody had asked.
func failed(s *Snapshot, rows []*Process, looks []look) {
	var pids []int
	var reason error
	for i, p := range rows {
		err := looks[i].err
		if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, procfs.ErrOtherProcess) || procfs.IsGone(err) {
			continue
		}
		for _, field := range firstPass {
			p.setUnreadable(field, true)
		}
		pids, reason = append(pids, p.PID), err
	}
	if len(pids) > 0 {
		s.problem("cannot look closer at %s: %v", PIDList(pids), reason)
	}
}

// openRoot opens the procfs mount.
func openRoot(o ExamineOptions) (int, error) {
	path := o.Root
	if path == "" {
		path = "/proc"
	}
	root, err := procfs.OpenAt(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return root, nil
}

// An examination is what all looks share. Nobody changes it while they look.
type examination struct {
	root     int // descriptor of the procfs mount
	ids      []ID
	tops     []bool
	brief    []bool
	driven   []bool
	sockets  *socketTable
	netns    string // ours, "net:[4026531840]"
	swapping bool   // the machine has memory in swap
}

// look is the first pass over one process.
func (e *examination) look(i int, buf []byte) look {
	h, err := procfs.Open(e.root, e.ids[i].PID, e.ids[i].Start, buf)
	if err != nil {
		return look{err: err, dir: -1}
	}
	l := look{dir: -1}
	if e.tops[i] && i < keptHandles {
		l.dir = h.Dir
	} else {
		defer h.Close()
	}

	if e.brief[i] {
		// A server with nothing at descriptor 0 may have moved its wire. A client has none.
		l.stdin = openStdin(h, e.sockets)
		l.brief = l.stdin.Peer == PeerOpen || l.stdin.Peer == "" && l.stdin.Type != "" && e.tops[i]
	}
	if l.brief && !e.tops[i] {
		return l
	}
	if l.brief {
		// only where it comes from
	} else if f, err := h.OpenFDs(); l.tell(err, "stdin", "listen") {
		var stdin, stdout end
		l.ends, stdin, stdout = listEnds(f)
		l.stdout = Stdin{Type: stdout.kind}
		switch stdout.kind {
		case StdinSocket:
			l.stdout = farPeer(f, stdout, e.sockets)
		case StdinPipe:
			l.stdout.Peer = pipeReader(f, stdout)
		}
		l.stdin = findWire(f, l.ends, stdin, e.sockets, e.driven[i])
		f.Close()
		l.knownSockets = e.sockets.knows(l.ends)
		closed := l.stdin.Type == StdinSocket && l.stdin.Peer == PeerClosed || l.stdout.Type == StdinSocket && l.stdout.Peer == PeerClosed
		if closed || !l.knownSockets {
			netns, err := h.Link("ns/net")
			l.foreign = err != nil || netns != e.netns
		}
		if closed && l.foreign && l.stdin.Type == StdinSocket {
			l.stdin.Peer = PeerUnknown
		}
		if l.foreign && l.stdout.Type == StdinSocket {
			l.stdout.Peer = PeerUnknown
		}
	}
	l.cwd, err = h.Link("cwd")
	l.tell(err, "cwd")
	if e.tops[i] {
		l.exe, err = h.Link("exe")
		l.tell(err, "exe")
		content, err := h.ReadFile("cgroup", smallFile, nil)
		if l.tell(err, "cgroup") {
			l.cgroup = procfs.ParseCgroup(content)
		}
	}
	if e.swapping {
		content, err := h.ReadFile("status", smallFile, nil)
		if l.tell(err, "swap_bytes") {
			if n, ok := procfs.ParseSwap(content); ok {
				l.swap = &n
			}
		}
	}
	return l
}

// tell notes which fields could not be read, and tells whether they were. A process that ends
// meanwhile leaves fields absent.
func (l *look) tell(err error, fields ...string) (read bool) {
	if err != nil && !procfs.IsGone(err) {
		l.refused = append(l.refused, fields...)
	}
	return err == nil
}

// refused tells an answer that is withheld from one that does not exist.
func refused(err error) bool {
	return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)
}

// attach fills in what stands for itself. What listens waits for [attachSockets].
func (l *look) attach(p *Process, swapping bool) {
	for _, field := range []string{"stdin", "listen", "cwd", "exe", "cgroup", "swap_bytes"} {
		p.setUnreadable(field, slices.Contains(l.refused, field))
	}
	p.Stdin = nil
	if l.stdin.Type != "" {
		stdin := l.stdin
		p.Stdin = &stdin
	}
	p.Stdout = nil
	if l.stdout.Type != "" {
		p.Stdout = &Stdin{Type: l.stdout.Type, Peer: l.stdout.Peer}
	}
	p.CWD, p.Exe, p.Cgroup, p.SwapBytes = l.cwd, l.exe, l.cgroup, l.swap
	if !swapping {
		p.SwapBytes = new(int64) // nobody has any
	}
}
