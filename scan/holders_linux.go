package scan

import (
	"context"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

// A farEnd is what is at the other end of a process's stdin or stdout: a socket, or a pipe open for writing
// or, at the other end of stdout, for reading.
type farEnd struct {
	kind    StdinType
	inode   uint64
	reading bool
}

// holders fills in which processes hold the other end of the rows' stdin and stdout.
func holders(ctx context.Context, s *Snapshot, rows []*Process, o ExamineOptions) {
	root, err := openRoot(o.Root)
	if err != nil {
		s.problem("cannot search for the holders of stdin: %v", err)
		return
	}
	defer unix.Close(root)
	wanted, marked, err := findFarEnds(ctx, root, rows)
	var pids []int
	if err == nil && len(wanted) > 0 {
		pids, err = procfs.PIDs(root) // not those of the snapshot: a holder can be younger
	}
	if err != nil {
		s.problem("cannot search for the holders of stdin: %v", err)
		return
	}

	type held struct {
		ends   []farEnd
		hidden bool
	}
	hidden := s.find(1) == nil // hidepid: there are processes that we do not see
	stuck, skipped := sweep(ctx, o.deadline(), len(pids), func() func(int) held {
		buf := make([]byte, smallFile)
		return func(i int) held {
			ends, err := heldEnds(root, pids[i], buf, wanted)
			return held{ends, err != nil && !procfs.IsGone(err)}
		}
	}, func(i int, h held) {
		for _, end := range h.ends {
			for _, std := range wanted[end] {
				std.Holders = append(std.Holders, pids[i])
			}
		}
		if p := s.find(pids[i]); h.hidden && (p == nil || !p.kernelThread()) {
			hidden = true
		}
	})
	late := len(stuck) + len(skipped)
	for _, p := range marked {
		p.setUnreadable("holders", hidden || late > 0)
	}
	if late > 0 {
		s.problem("the search for the holders of stdin did not finish within %v: %d of %d processes were not read", o.deadline(), late, len(pids))
	}
}

// findFarEnds returns the ends to look for, each with what it is the other end of, and the rows that have
// any.
func findFarEnds(ctx context.Context, root int, rows []*Process) (wanted map[farEnd][]*Stdin, marked []*Process, err error) {
	diag, err := procfs.OpenSockDiag(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer diag.Close()
	wanted = make(map[farEnd][]*Stdin)
	for _, p := range rows {
		h, err := procfs.Open(root, p.PID, p.Start, make([]byte, smallFile))
		if err != nil {
			continue
		}
		for _, std := range []*Stdin{p.Stdin, p.Stdout} {
			if std == nil || std.Peer != PeerOpen {
				continue
			}
			fd := std.FD
			if std == p.Stdout {
				fd = 1
			}
			end, ok := farEndOf(h, fd, diag)
			if !ok {
				continue
			}
			wanted[end], std.Holders = append(wanted[end], std), []int{}
			if !slices.Contains(marked, p) {
				marked = append(marked, p)
			}
		}
		h.Close()
	}
	return wanted, marked, nil
}

// farEndOf finds the other end of a descriptor.
func farEndOf(h procfs.Process, fd int, diag *procfs.SockDiag) (farEnd, bool) {
	target, err := h.Link("fd/" + strconv.Itoa(fd))
	if err != nil {
		return farEnd{}, false
	}
	kind, inode := parseTarget(target)
	switch kind {
	case StdinPipe:
		return farEnd{kind: kind, inode: inode, reading: fd == 1}, true
	case StdinSocket:
		u, ok := diag.UnixSocket(uint32(inode))
		return farEnd{kind: kind, inode: uint64(u.Peer)}, ok && u.Peer != 0
	}
	return farEnd{}, false
}

// heldEnds returns the wanted ends that a process holds, each once.
func heldEnds(root, pid int, buf []byte, wanted map[farEnd][]*Stdin) ([]farEnd, error) {
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
		// The first thread may have exited, as a zombie that holds nothing, while others go on with
		// the descriptors that they shared with it.
		f.Close()
		if f, err = h.OpenThreadFDs(pid); err != nil {
			return nil, nil // the whole process is dead
		}
	}
	defer f.Close()
	var ends []farEnd
	for _, fd := range f.Names {
		target, err := f.Target(fd)
		if err != nil {
			continue // closed meanwhile
		}
		kind, inode := parseTarget(target)
		for _, end := range []farEnd{{kind: kind, inode: inode}, {kind: kind, inode: inode, reading: true}} {
			if wanted[end] == nil || slices.Contains(ends, end) {
				continue
			}
			if kind == StdinPipe {
				read, write, err := f.Mode(fd)
				if err != nil || end.reading && !read || !end.reading && !write {
					continue
				}
			}
			ends = append(ends, end)
		}
	}
	return ends, nil
}

// kernelThread reports whether p is a thread of the kernel, which may not be looked into and holds nothing.
func (p *Process) kernelThread() bool { return p.PID == 2 || p.PPID == 2 }
