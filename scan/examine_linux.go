package scan

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// statSize is more than /proc/PID/stat or status can hold.
const statSize = 8 << 10

// A look is what the kernel told about one process. Nothing of it points into the snapshot, so that
// a look that comes back too late does no harm.
type look struct {
	err error // the process was not found; nothing else is filled in

	stdin end
	wires []end // what else could be the wire, in order, when descriptor 0 is not

	sockets []uint64 // inodes of all its sockets
	netns   string   // "net:[4026531840]", empty when it may not be seen

	cgroup, cwd, exe string
	swap             *int64

	refused []string // fields that may not be read
}

// examine fills in what /proc and sock_diag(7) tell about rows. It goes twice over them: first the
// files whose reading takes no lock of the process's memory, then the ones that can block, so that
// no stuck process delays the evidence about another.
func examine(ctx context.Context, s *Snapshot, rows []*Process, o ExamineOptions) {
	if len(rows) == 0 {
		return
	}
	root, err := openAt(unix.AT_FDCWD, procRoot(o), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		s.problem("cannot look closer at any process: %s: %v", procRoot(o), err)
		return
	}
	defer unix.Close(root)
	ids := make([]ID, len(rows))
	for i, p := range rows {
		ids[i] = p.ID()
	}

	swapping := s.Host.MemoryTotalBytes == 0 || s.Host.SwapTotalBytes > s.Host.SwapFreeBytes
	looks := make([]look, len(rows))
	late := sweep(ctx, len(ids),
		func() func(int) look {
			buf := make([]byte, statSize)
			return func(i int) look { return lookAt(root, ids[i], buf, swapping) }
		},
		func(i int, l look) { looks[i] = l })
	for _, i := range late {
		looks[i].err = context.DeadlineExceeded
		for _, field := range []string{"stdin", "listen", "env"} {
			rows[i].setUnreadable(field, true)
		}
	}
	if len(late) > 0 {
		s.problem("looking closer at %s did not end within %v", pidList(pidsOf(rows, late)), o.deadline())
	}

	for i, p := range rows {
		if l := &looks[i]; l.err == nil {
			l.attach(p)
			if p.SwapBytes == nil && !swapping {
				p.SwapBytes = new(int64)
			}
		}
	}
	attachSockets(ctx, s, rows, looks)
	examineMemory(ctx, root, s, rows, ids, o)
}

func procRoot(o ExamineOptions) string {
	if o.Root == "" {
		return "/proc"
	}
	return o.Root
}

// pidsOf returns the PIDs of some of the rows.
func pidsOf(rows []*Process, indexes []int) []int {
	pids := make([]int, len(indexes))
	for i, index := range indexes {
		pids[i] = rows[index].PID
	}
	return pids
}

// lookAt looks at the process that id names. The swap is only asked for when the machine has any in
// use: it stands in /proc/PID/status, the dearest of these files.
func lookAt(root int, id ID, buf []byte, swapping bool) (l look) {
	h, err := openHandle(root, id, buf)
	if err != nil {
		return look{err: err}
	}
	defer h.close()

	// tell notes what was refused, and tells whether a field was read. A process that ends meanwhile
	// leaves fields absent.
	tell := func(field string, err error) bool {
		if err == unix.EACCES || err == unix.EPERM {
			l.refused = append(l.refused, field)
		}
		return err == nil
	}

	l.stdin, err = h.stdin()
	tell("stdin", err)
	tell("listen", h.readSockets(&l))
	l.netns, _ = h.link("ns/net")
	l.cwd, err = h.link("cwd")
	tell("cwd", err)
	l.exe, err = h.link("exe")
	tell("exe", err)

	content, err := h.read("cgroup", statSize, nil)
	if tell("cgroup", err) {
		l.cgroup = parseCgroup(content)
	}
	if swapping {
		content, err := h.read("status", statSize, nil)
		if tell("swap_bytes", err) {
			if n, ok := parseSwap(content); ok {
				l.swap = &n
			}
		}
	}
	return l
}

// The descriptors among which the wire is looked for when descriptor 0 is /dev/null. A server
// moves it when it starts, before it has opened much.
const firstWire, lastWire = 3, 16

// readSockets lists the sockets of the process, and what else could be its wire.
func (h handle) readSockets(l *look) error {
	fds, err := h.fds()
	if err != nil {
		return err
	}
	moved := l.stdin.kind == StdinNull
	var pipes []end // all descriptors of pipes
	for _, fd := range fds {
		target, err := h.link("fd/" + fd)
		if err != nil {
			continue // closed meanwhile
		}
		kind, inode := parseEnd(target)
		if kind != StdinSocket && (kind != StdinPipe || !moved) {
			continue
		}
		n, err := strconv.Atoi(fd)
		if err != nil {
			continue
		}
		e := end{fd: n, kind: kind, inode: inode}
		if kind == StdinPipe {
			pipes = append(pipes, e)
			continue
		}
		l.sockets = append(l.sockets, inode)
		if moved && firstWire <= n && n <= lastWire {
			l.wires = append(l.wires, e)
		}
	}
	if e, ok := h.wirePipe(pipes); ok {
		l.wires = append(l.wires, e)
	}
	slices.SortFunc(l.wires, func(a, b end) int { return a.fd - b.fd })
	return nil
}

// wirePipe finds the lowest pipe that the process can only read and does not write itself. Event
// loops wake themselves through pipes that they hold both ends of.
func (h handle) wirePipe(pipes []end) (end, bool) {
	slices.SortFunc(pipes, func(a, b end) int { return a.fd - b.fd })
	for _, e := range pipes {
		if e.fd < firstWire || e.fd > lastWire {
			continue
		}
		own := slices.ContainsFunc(pipes, func(other end) bool {
			if other.inode != e.inode {
				return false
			}
			_, write, err := h.openedTo(strconv.Itoa(other.fd))
			return err != nil || write
		})
		if !own {
			e.peer = h.pipePeer(strconv.Itoa(e.fd), e.inode)
			return e, true
		}
	}
	return end{}, false
}

// attach fills in what stands for itself. Sockets wait for [attachSockets].
func (l *look) attach(p *Process) {
	for _, field := range []string{"stdin", "listen", "cwd", "exe", "cgroup", "swap_bytes"} {
		p.setUnreadable(field, slices.Contains(l.refused, field))
	}
	p.Stdin = nil
	if l.stdin.kind != "" {
		p.Stdin = &Stdin{Type: l.stdin.kind, Peer: l.stdin.peer}
	}
	p.CWD, p.Exe, p.Cgroup, p.SwapBytes = l.cwd, l.exe, l.cgroup, l.swap
}

// examineMemory reads the files that take the lock of the process's memory, or wait for a page of
// it: the environment, and the proportional memory when it is asked for.
func examineMemory(ctx context.Context, root int, s *Snapshot, rows []*Process, ids []ID, o ExamineOptions) {
	type read struct {
		env            map[string]string
		pss            *int64
		found          bool
		envErr, pssErr error
	}
	look := func(i int, buf []byte) (r read) {
		h, err := openHandle(root, ids[i], buf)
		if err != nil {
			return r
		}
		defer h.close()
		r.found = true
		content, err := h.read("environ", maxEnviron, nil)
		r.env, r.envErr = parseEnviron(content), err
		if o.PSS {
			content, err := h.read("smaps_rollup", statSize, nil)
			r.pssErr = err
			if n, ok := parsePSS(content); err == nil && ok {
				r.pss = &n
			}
		}
		return r
	}
	late := sweep(ctx, len(ids), func() func(int) read {
		buf := make([]byte, environSize)
		return func(i int) read { return look(i, buf) }
	}, func(i int, r read) {
		if !r.found {
			return
		}
		p := rows[i]
		p.Env = r.env
		p.setUnreadable("env", refused(r.envErr))
		if o.PSS {
			p.PSSBytes = r.pss
			p.setUnreadable("pss_bytes", refused(r.pssErr))
		}
	})
	for _, i := range late {
		rows[i].setUnreadable("env", true)
		if o.PSS {
			rows[i].setUnreadable("pss_bytes", true)
		}
	}
	if len(late) > 0 {
		s.problem("reading the environment of %s did not come back within %v (its memory is stuck in the kernel)", pidList(pidsOf(rows, late)), o.deadline())
	}
}

// refused tells an answer that is withheld from one that does not exist.
func refused(err error) bool {
	return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)
}
