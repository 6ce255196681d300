package scan

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

// A descriptor is an open file of a process.
type descriptor struct {
	name  string // its number, as in /proc/PID/fd
	kind  StdinType
	inode uint64 // of a pipe or socket, else 0
}

// parseTarget classifies what /proc/PID/fd/N links to; see proc_pid_fd(5). A named pipe (fifo(7)) is a file
// here: it can be opened again by its name, so that a missing writer proves nothing.
func parseTarget(target string) (kind StdinType, inode uint64) {
	if n, ok := bracketed(target, "pipe:["); ok {
		return StdinPipe, n
	}
	if n, ok := bracketed(target, "socket:["); ok {
		return StdinSocket, n
	}
	switch {
	case target == "/dev/null":
		return StdinNull, 0
	case strings.HasPrefix(target, "/dev/pts/"), strings.HasPrefix(target, "/dev/tty"), target == "/dev/console":
		return StdinTTY, 0
	}
	return StdinFile, 0
}

// bracketed parses "pipe:[4711]".
func bracketed(target, prefix string) (uint64, bool) {
	rest, begins := strings.CutPrefix(target, prefix)
	digits, ends := strings.CutSuffix(rest, "]")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, begins && ends && err == nil
}

// listDescriptors returns the pipes and sockets of a process in order, and descriptors 0 and 1 whatever they
// are. Descriptors 1 and 2 are not in the list: they are for output.
func listDescriptors(f procfs.FDs) (fds []descriptor, stdin, stdout descriptor) {
	// A daemon that does not read stdin may have closed it or opened /dev/null there.
	stdin, stdout = descriptor{name: "0", kind: StdinNull}, descriptor{name: "1", kind: StdinNull}
	for _, name := range f.Names {
		if name == "2" {
			continue
		}
		target, err := f.Target(name)
		if err != nil {
			continue // closed meanwhile
		}
		d := descriptor{name: name}
		d.kind, d.inode = parseTarget(target)
		switch name {
		case "0":
			stdin = d
		case "1":
			stdout = d
			continue
		}
		if d.kind == StdinPipe || d.kind == StdinSocket {
			fds = append(fds, d)
		}
	}
	return fds, stdin, stdout
}

// observeStdin observations at descriptor 0 alone. The result has no type when it cannot be read.
func observeStdin(h procfs.Process, sockets *socketTable) Stdin {
	const name = "fd/0"
	target, err := h.Link(name)
	if err != nil {
		return Stdin{}
	}
	d := descriptor{name: name}
	d.kind, d.inode = parseTarget(target)
	return peerOf(procfs.FDs{Dir: h.Dir}, d, sockets)
}

// A server that moves its stdin does so when it starts, before it has opened much.
const firstMoved, lastMoved = 3, 16

// findStdin finds the descriptor on which a stdio server reads from its client: descriptor 0, or, when that is
// /dev/null, the lowest one that can be a moved stdin. A driven browser reads from descriptor 3.
func findStdin(f procfs.FDs, fds []descriptor, stdin descriptor, sockets *socketTable, driven bool) Stdin {
	for _, d := range fds {
		fd, err := strconv.Atoi(d.name)
		if err != nil || fd < firstMoved || fd > lastMoved {
			continue
		}
		moved := stdin.kind == StdinNull && (d.kind == StdinPipe && readsOnly(f, d, fds) || d.kind == StdinSocket && sockets.isPair(d, fds))
		if moved || driven && fd == 3 {
			found := peerOf(f, d, sockets)
			found.FD = fd
			return found
		}
	}
	return peerOf(f, stdin, sockets)
}

// peerOf observations at the other end of a pipe or socket. The peer is empty for anything else.
func peerOf(f procfs.FDs, d descriptor, sockets *socketTable) Stdin {
	stdin := Stdin{Type: d.kind}
	switch d.kind {
	case StdinPipe:
		stdin.Peer, stdin.Unread = pipeWriter(f, d)
	case StdinSocket:
		stdin.Peer = PeerUnknown
		if u, ok := sockets.unixSocket(d.inode); ok {
			stdin.Peer = peerState(u)
		}
	}
	return stdin
}

// readsOnly reports whether the process reads from a pipe that it does not write to itself. Event loops wake
// themselves through pipes of which they hold both ends.
func readsOnly(f procfs.FDs, pipe descriptor, fds []descriptor) bool {
	return !slices.ContainsFunc(fds, func(other descriptor) bool {
		if other.kind != StdinPipe || other.inode != pipe.inode {
			return false
		}
		_, write, err := f.Mode(other.name)
		return err != nil || write
	})
}

// isPair reports whether a socket can be one end of a socketpair(2) with another process: not a connection to
// a name, and not one of the pairs with which an event loop wakes itself.
func (t *socketTable) isPair(d descriptor, fds []descriptor) bool {
	u, ok := t.unixSocket(d.inode)
	if !ok || u.Kind != unix.SOCK_STREAM || u.Name != "" || peerState(u) == PeerUnknown || t.unix[u.Peer].Name != "" {
		return false
	}
	return !slices.ContainsFunc(fds, func(other descriptor) bool {
		return other.kind == StdinSocket && other.inode == uint64(u.Peer)
	})
}

// pipeWriter reports whether any process of any namespace can still write to the anonymous pipe: a new reader
// of a pipe without writers polls POLLHUP, see poll(2). Nothing is read, and the reader that we are for
// a moment keeps nothing alive.
//
// A pipe that its own process opened for writing counts as open; [Holders] names that process.
func pipeWriter(f procfs.FDs, d descriptor) (peer StdinPeer, unread bool) {
	events, err := f.PollPipe(d.name, d.inode, unix.O_RDONLY, unix.POLLIN)
	switch {
	case err != nil:
		return PeerUnknown, false
	case events&unix.POLLHUP == 0:
		return PeerOpen, false
	}
	return PeerClosed, events&unix.POLLIN != 0
}

// pipeReader reports likewise whether any process can still read from the anonymous pipe: a new writer of
// a pipe without readers polls POLLERR. Nothing is written.
func pipeReader(f procfs.FDs, d descriptor) StdinPeer {
	events, err := f.PollPipe(d.name, d.inode, unix.O_WRONLY, unix.POLLOUT)
	switch {
	case err != nil:
		return PeerUnknown
	case events&unix.POLLERR == 0:
		return PeerOpen
	}
	return PeerClosed
}

// peerState returns the state of a socket's other end: closed when the other socket is gone. A client that has
// only shut down its sending side (shutdown(2)) may still wait for the answer and counts as open; Node's
// stdin.end() closes the socket.
func peerState(u procfs.UnixSocket) StdinPeer {
	switch {
	case u.Kind != unix.SOCK_STREAM && u.Kind != unix.SOCK_SEQPACKET, u.State != procfs.TCPEstablished:
		return PeerUnknown
	case u.Peer != 0:
		return PeerOpen
	case u.Shutdown&procfs.RcvShutdown != 0:
		return PeerClosed
	}
	return PeerUnknown
}
