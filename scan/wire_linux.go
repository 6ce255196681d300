package scan

import (
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// The descriptors among which the wire is looked for when descriptor 0 is /dev/null. A server moves
// it when it starts, before it has opened much.
const firstWire, lastWire = 3, 16

// ends returns the process's pipes and sockets, in order, and whatever is at descriptors 0 and 1.
// Descriptors 1 and 2 are not among the former: what a server writes to is not its wire, and nobody
// listens there.
func (f fds) ends() (ends []end, stdin, stdout end) {
	// A descriptor that is closed counts as /dev/null: both are how a daemon says that it does not
	// listen there.
	stdin, stdout = end{name: "0", kind: StdinNull}, end{name: "1", kind: StdinNull}
	for _, fd := range f.names {
		if fd == "2" {
			continue
		}
		target, err := f.target(fd)
		if err != nil {
			continue // closed meanwhile
		}
		e := end{name: fd}
		e.kind, e.inode = parseEnd(target)
		switch fd {
		case "0":
			stdin = e
		case "1":
			stdout = e
			continue
		}
		if e.kind == StdinPipe || e.kind == StdinSocket {
			ends = append(ends, e)
		}
	}
	return ends, stdin, stdout
}

// wire finds the descriptor that connects a stdio server with its client, and who is at its other
// end: descriptor 0, or, when that is /dev/null, the lowest one that looks like it; for a browser
// that is driven through a pipe descriptor 3.
func (f fds) wire(ends []end, stdin end, sockets *socketTable, driven bool) Stdin {
	if i := slices.IndexFunc(ends, func(e end) bool { return e.name == "3" }); driven && i >= 0 {
		wire := f.far(ends[i], sockets)
		wire.FD = firstWire
		return wire
	}
	if stdin.kind == StdinNull {
		for _, e := range ends {
			fd, err := strconv.Atoi(e.name)
			if err != nil || fd < firstWire || fd > lastWire {
				continue
			}
			if e.kind == StdinPipe && f.readsOnly(e, ends) || e.kind == StdinSocket && sockets.pair(e, ends) {
				wire := f.far(e, sockets)
				wire.FD = fd
				return wire
			}
		}
	}
	return f.far(stdin, sockets)
}

// far tells whether anybody is at the other end; it has no peer when there is no other end.
func (f fds) far(e end, sockets *socketTable) Stdin {
	wire := Stdin{Type: e.kind}
	switch e.kind {
	case StdinPipe:
		wire.Peer, wire.Unread = f.pipePeer(e)
	case StdinSocket:
		wire.Peer = PeerUnknown
		if u, ok := sockets.unixSocket(e.inode); ok {
			wire.Peer = u.peerState()
		}
	}
	return wire
}

// readsOnly tells whether the process reads from a pipe that it does not write itself. Event loops
// wake themselves through pipes that they hold both ends of.
func (f fds) readsOnly(pipe end, ends []end) bool {
	return !slices.ContainsFunc(ends, func(other end) bool {
		if other.kind != StdinPipe || other.inode != pipe.inode {
			return false
		}
		_, write, err := f.mode(other.name)
		return err != nil || write
	})
}

// pair tells whether a socket can be the process's end of a socketpair(2) with another process: not
// a connection to a name, and not one of the pairs by which an event loop wakes itself.
func (t *socketTable) pair(e end, ends []end) bool {
	u, ok := t.unixSocket(e.inode)
	if !ok || u.kind != unix.SOCK_STREAM || u.name != "" || u.peerState() == PeerUnknown {
		return false
	}
	if peer, ok := t.unix[u.peer]; ok && peer.name != "" {
		return false
	}
	return !slices.ContainsFunc(ends, func(other end) bool {
		return other.kind == StdinSocket && other.inode == uint64(u.peer)
	})
}
