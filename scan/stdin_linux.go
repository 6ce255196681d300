package scan

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
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
func (h handle) openStdin(sockets *socketTable) Stdin {
	const name = "fd/0"
	target, err := h.link(name)
	if err != nil {
		return Stdin{}
	}
	e := end{name: name}
	e.kind, e.inode = parseEnd(target)
	return fds{dir: h.root}.far(e, sockets)
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
//
// Only a FIFO is ever opened again, since to open a terminal or a device can have effects. O_PATH
// opens nothing but pins down the file, so that what is checked is what is opened.
func (f fds) pipePeer(e end) (peer StdinPeer, unread bool) {
	events, err := f.pollPipe(e, unix.O_RDONLY, unix.POLLIN)
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
func (f fds) pipeReader(e end) StdinPeer {
	events, err := f.pollPipe(e, unix.O_WRONLY, unix.POLLOUT)
	switch {
	case err != nil:
		return PeerUnknown
	case events&unix.POLLERR == 0:
		return PeerOpen
	}
	return PeerClosed
}

// pollPipe opens an anonymous pipe once more and polls it.
func (f fds) pollPipe(e end, mode int, want int16) (events int16, err error) {
	pinned, err := openAt(f.dir, e.name, unix.O_PATH)
	if err != nil {
		return 0, err
	}
	defer unix.Close(pinned)
	var st unix.Stat_t
	if err := unix.Fstat(pinned, &st); err != nil {
		return 0, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFIFO || st.Ino != e.inode {
		return 0, errOther
	}
	// The mode of the pipe is 0600 and its owner the user who made it: a pipe from another user
	// cannot be opened, although the descriptor can be seen.
	fd, err := openAt(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(pinned), mode|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	for {
		poll := []unix.PollFd{{Fd: int32(fd), Events: want}}
		if _, err = unix.Poll(poll, 0); err != unix.EINTR { // it does not wait, and a signal cuts it short all the same
			return poll[0].Revents, err
		}
	}
}
