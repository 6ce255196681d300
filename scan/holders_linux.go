package scan

import (
	"context"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

// A far is the other end of a wire: a socket, or a pipe that is held for writing, or for reading where
// the wire is an output.
type far struct {
	kind    StdinType
	inode   uint64
	reading bool
}

// holders fills in who holds the other ends of the rows' standard inputs, and of those outputs that
// are pipes, of which the process itself does not tell whether anybody reads them.
func holders(ctx context.Context, s *Snapshot, rows []*Process, o ExamineOptions) {
	root, err := openRoot(o)
	if err != nil {
		s.problem("cannot look for who holds a standard input: %v", err)
		return
	}
	defer unix.Close(root)

	diag, err := procfs.OpenSockDiag(ctx)
	if err != nil {
		s.problem("cannot look for who holds a standard input: %v", err)
		return
	}
	defer diag.Close()
	wanted := make(map[far][]*Stdin)
	marked := make(map[*Process]bool)
	want := func(p *Process, wire *Stdin, f far) {
		wanted[f], marked[p] = append(wanted[f], wire), true
		wire.Holders = []int{}
	}
	for _, p := range rows {
		if f, ok := farEnd(diag, root, p); ok {
			want(p, p.Stdin, f)
		}
		if f, ok := readers(diag, root, p); ok {
			want(p, p.Stdout, f)
		}
	}
	if len(wanted) == 0 {
		return
	}
	// Holders can be younger than the snapshot: list anew.
	pids, err := procfs.PIDs(root)
	if err != nil {
		s.problem("cannot look for who holds a standard input: %v", err)
		return
	}

	type held struct {
		ends   []far
		hidden bool
	}
	hidden := s.find(1) == nil // hidepid: there are processes that we do not see at all
	stuck, skipped := sweep(ctx, o.deadline(), len(pids), func() func(int) held {
		buf := make([]byte, smallFile)
		return func(i int) held {
			ends, err := heldEnds(root, pids[i], buf, wanted)
			return held{ends, err != nil && !procfs.IsGone(err)}
		}
	}, func(i int, h held) {
		for _, f := range h.ends {
			for _, wire := range wanted[f] {
				wire.Holders = append(wire.Holders, pids[i])
			}
		}
		if p := s.find(pids[i]); h.hidden && (p == nil || !p.kernelThread()) {
			hidden = true
		}
	})
	late := len(stuck) + len(skipped)
	for p := range marked {
		p.setUnreadable("holders", hidden || late > 0)
	}
	if late > 0 {
		s.problem("looking for who holds standard inputs did not end within %v: %d of %d processes were not asked", o.deadline(), late, len(pids))
	}
}

// farEnd finds the end of p's wire that others hold.
func farEnd(diag *procfs.SockDiag, root int, p *Process) (far, bool) {
	if p.Stdin == nil || p.Stdin.Peer != PeerOpen {
		return far{}, false
	}
	h, err := procfs.Open(root, p.PID, p.Start, make([]byte, smallFile))
	if err != nil {
		return far{}, false
	}
	defer h.Close()
	target, err := h.Link("fd/" + strconv.Itoa(p.Stdin.FD))
	if err != nil {
		return far{}, false
	}
	kind, inode := parseEnd(target)
	switch kind {
	case StdinPipe:
		return far{kind: StdinPipe, inode: inode}, true
	case StdinSocket:
		u, ok := diag.UnixSocket(uint32(inode))
		return far{kind: StdinSocket, inode: uint64(u.Peer)}, ok && u.Peer != 0
	}
	return far{}, false
}

// readers finds the end of p's output that others read.
func readers(diag *procfs.SockDiag, root int, p *Process) (far, bool) {
	if p.Stdout == nil || p.Stdout.Peer != PeerOpen {
		return far{}, false
	}
	h, err := procfs.Open(root, p.PID, p.Start, make([]byte, smallFile))
	if err != nil {
		return far{}, false
	}
	defer h.Close()
	target, err := h.Link("fd/1")
	if err != nil {
		return far{}, false
	}
	switch kind, inode := parseEnd(target); kind {
	case StdinPipe:
		return far{kind: kind, inode: inode, reading: true}, true
	case StdinSocket:
		u, ok := diag.UnixSocket(uint32(inode))
		return far{kind: kind, inode: uint64(u.Peer)}, ok && u.Peer != 0
	}
	return far{}, false
}

// heldEnds returns the wanted ends that a process holds, each once.
func heldEnds(root, pid int, buf []byte, wanted map[far][]*Stdin) ([]far, error) {
	h, err := procfs.OpenPID(root, pid, buf)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	f, err := h.OpenFDs()
	if err != nil {
		return nil, err
	}
	if len(f.Names) == 0 {
		// The first thread may have ended, as a zombie that holds nothing, while others go on with
		// the descriptors that they shared with it.
		f.Close()
		if f, err = h.OpenThreadFDs(pid); err != nil {
			return nil, nil // it is dead altogether
		}
	}
	defer f.Close()
	var ends []far
	for _, fd := range f.Names {
		target, err := f.Target(fd)
		if err != nil {
			continue // closed meanwhile
		}
		kind, inode := parseEnd(target)
		in, out := far{kind: kind, inode: inode}, far{kind: kind, inode: inode, reading: true}
		if wanted[in] == nil && wanted[out] == nil {
			continue
		}
		read, write := false, true // a socket is both, and wanted as one
		if kind == StdinPipe {
			if read, write, err = f.Mode(fd); err != nil {
				continue
			}
		}
		if write && wanted[in] != nil && !slices.Contains(ends, in) {
			ends = append(ends, in)
		}
		if read && wanted[out] != nil && !slices.Contains(ends, out) {
			ends = append(ends, out)
		}
	}
	return ends, nil
}

// kernelThread tells the kernel's threads, which may not be looked into and hold nothing.
func (p *Process) kernelThread() bool { return p.PID == 2 || p.PPID == 2 }
