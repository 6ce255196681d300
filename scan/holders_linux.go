package scan

import (
	"context"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// A far is the other end of a wire: a pipe that is held for writing, or a socket.
type far struct {
	kind  StdinType
	inode uint64
}

// holders fills in who holds the other ends of the rows' standard inputs.
func holders(ctx context.Context, s *Snapshot, rows []*Process, o ExamineOptions) {
	root, err := openRoot(o)
	if err != nil {
		s.problem("cannot look for who holds a standard input: %v", err)
		return
	}
	defer unix.Close(root)

	diag, err := openSockDiag(ctx)
	if err != nil {
		s.problem("cannot look for who holds a standard input: %v", err)
		return
	}
	defer diag.close()
	wanted := make(map[far][]*Process)
	for _, p := range rows {
		if f, ok := farEnd(diag, root, p); ok {
			wanted[f] = append(wanted[f], p)
			p.Stdin.Holders = []int{}
		}
	}
	if len(wanted) == 0 {
		return
	}
	// Holders can be younger than the snapshot: list anew.
	pids, err := listPIDs(root)
	if err != nil {
		s.problem("cannot look for who holds a standard input: %v", err)
		return
	}

	type held struct {
		ends   []far
		hidden bool
	}
	hidden := s.find(1) == nil // hidepid: there are processes that we do not see at all
	late := sweep(ctx, len(pids), func() func(int) held {
		buf := make([]byte, smallFile)
		return func(i int) held {
			ends, err := heldEnds(root, pids[i], buf, wanted)
			return held{ends, err != nil && !gone(err)}
		}
	}, func(i int, h held) {
		for _, f := range h.ends {
			for _, p := range wanted[f] {
				p.Stdin.Holders = append(p.Stdin.Holders, pids[i])
			}
		}
		if p := s.find(pids[i]); h.hidden && (p == nil || !p.kernelThread()) {
			hidden = true
		}
	})
	for _, ps := range wanted {
		for _, p := range ps {
			p.setUnreadable("holders", hidden || len(late) > 0)
		}
	}
	if len(late) > 0 {
		s.problem("looking for who holds standard inputs did not end within %v: %d of %d processes were not asked", o.deadline(), len(late), len(pids))
	}
}

// farEnd finds the end of p's wire that others hold.
func farEnd(diag *sockDiag, root int, p *Process) (far, bool) {
	h, err := openHandle(root, p.ID(), make([]byte, smallFile))
	if err != nil {
		return far{}, false
	}
	defer h.close()
	target, err := h.link("fd/" + strconv.Itoa(p.Stdin.FD))
	if err != nil {
		return far{}, false
	}
	kind, inode := parseEnd(target)
	switch kind {
	case StdinPipe:
		return far{StdinPipe, inode}, true
	case StdinSocket:
		u, ok := diag.unixSocket(uint32(inode))
		return far{StdinSocket, uint64(u.peer)}, ok && u.peer != 0
	}
	return far{}, false
}

// heldEnds returns the wanted ends that a process holds, each once.
func heldEnds(root, pid int, buf []byte, wanted map[far][]*Process) ([]far, error) {
	h, err := openAny(root, pid, buf)
	if err != nil {
		return nil, err
	}
	defer h.close()
	f, err := h.openFDs()
	if err != nil {
		return nil, err
	}
	if len(f.names) == 0 {
		// The first thread may have ended, as a zombie that holds nothing, while others go on with
		// the descriptors that they shared with it.
		f.close()
		if f, err = h.threadFDs(pid); err != nil {
			return nil, nil // it is dead altogether
		}
	}
	defer f.close()
	var ends []far
	for _, fd := range f.names {
		target, err := f.target(fd)
		if err != nil {
			continue // closed meanwhile
		}
		kind, inode := parseEnd(target)
		end := far{kind, inode}
		if _, ok := wanted[end]; !ok || slices.Contains(ends, end) {
			continue
		}
		if kind == StdinPipe {
			if _, write, err := f.mode(fd); err != nil || !write {
				continue
			}
		}
		ends = append(ends, end)
	}
	return ends, nil
}

// kernelThread tells the kernel's threads, which may not be looked into and hold nothing.
func (p *Process) kernelThread() bool { return p.PID == 2 || p.PPID == 2 }
