package scan

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

// An end is one descriptor that can be the wire of a stdio server, as the process itself has it.
type end struct {
	name  string // of the descriptor: its number
	kind  StdinType
	inode uint64 // of a pipe or a socket, else 0
}

// parseEnd classifies what /proc/PID/fd/N links to; see proc_pid_fd(5). Pipes with a name in a file
// system (fifo(7)) are files here: whoever knows the name can open them again, so that a missing
// writer proves nothing.
func parseEnd(target string) (kind StdinType, inode uint64) {
	if n, ok := bracketed(target, "pipe:"); ok {
		return StdinPipe, n
	}
	if n, ok := bracketed(target, "socket:"); ok {
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

// openStdin looks at descriptor 0 alone. What it cannot tell has no type.
func openStdin(h procfs.Process, sockets *socketTable) Stdin {
	const name = "fd/0"
	target, err := h.Link(name)
	if err != nil {
		return Stdin{}
	}
	e := end{name: name}
	e.kind, e.inode = parseEnd(target)
	return farPeer(procfs.FDs{Dir: h.Dir}, e, sockets)
}

// bracketed parses "pipe:[4711]".
func bracketed(target, prefix string) (uint64, bool) {
	rest, ok := strings.CutPrefix(target, prefix+"[")
	if !ok {
		return 0, false
	}
	digits, ok := strings.CutSuffix(rest, "]")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

// pipePeer tells whether anybody can still write into the anonymous pipe at descriptor fd, which
// holds for all processes of all namespaces: a fresh reader of a pipe without writers polls POLLHUP.
// No byte is taken, and the reader that we are for a moment keeps nothing alive.
//
// A pipe that its own process opened for writing too counts as open; [Holders] names that process.
func pipePeer(f procfs.FDs, e end) (peer StdinPeer, unread bool) {
	events, err := f.PollPipe(e.name, e.inode, unix.O_RDONLY, unix.POLLIN)
	switch {
	case err != nil:
		return PeerUnknown, false
	case events&unix.POLLHUP == 0:
		return PeerOpen, false
	case events&unix.POLLIN != 0:
		return PeerClosed, true
	}
	return PeerClosed, false
}

// pipeReader tells in the same way whether anybody can still read from the anonymous pipe at
// descriptor fd: a fresh writer of a pipe without readers polls POLLERR. Nothing is written.
func pipeReader(f procfs.FDs, e end) StdinPeer {
	events, err := f.PollPipe(e.name, e.inode, unix.O_WRONLY, unix.POLLOUT)
	switch {
	case err != nil:
		return PeerUnknown
	case events&unix.POLLERR == 0:
		return PeerOpen
	}
	return PeerClosed
}

// peerState returns what a socket says about the other end of a wire: closed when the other socket is
// gone. A client that only ended its sending side (shutdown(2)) is still there and may wait for the
// answer, so that this counts as open. Node's stdin.end() closes the socket.
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
