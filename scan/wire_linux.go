package scan

import (
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

// The descriptors among which the wire is looked for when descriptor 0 is /dev/null. A server moves
// it when it starts, before it has opened much.
const firstWire, lastWire = 3, 16

// listEnds returns the process's pipes and sockets, in order, and whatever is at descriptors 0 and 1.
// Descriptors 1 and 2 are not among the former: what a server writes to is not its wire, and nobody
// listens there.
func listEnds(f procfs.FDs) (ends []end, stdin, stdout end) {
	// A descriptor that is closed counts as /dev/null: both are how a daemon says that it does not
	// listen there.
	stdin, stdout = end{name: "0", kind: StdinNull}, end{name: "1", kind: StdinNull}
	for _, fd := range f.Names {
		if fd == "2" {
			continue
		}
		target, err := f.Target(fd)
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

// findWire finds the descriptor that connects a stdio server with its client, and who is at its other
// end: descriptor 0, or, when that is /dev/null, the lowest one that looks like it; for a browser
// that is driven through a pipe descriptor 3.
func findWire(f procfs.FDs, ends []end, stdin end, sockets *socketTable, driven bool) Stdin {
	if i := slices.IndexFunc(ends, func(e end) bool { return e.name == "3" }); driven && i >= 0 {
		wire := farPeer(f, ends[i], sockets)
		wire.FD = firstWire
		return wire
	}
	if stdin.kind == StdinNull {
		for _, e := range ends {
			fd, err := strconv.Atoi(e.name)
			if err != nil || fd < firstWire || fd > lastWire {
				continue
			}
			if e.kind == StdinPipe && readsOnly(f, e, ends) || e.kind == StdinSocket && sockets.pair(e, ends) {
				wire := farPeer(f, e, sockets)
				wire.FD = fd
				return wire
			}
		}
	}
	return farPeer(f, stdin, sockets)
}

// farPeer looks at the other end of e; the result has no peer when there is no other end.
func farPeer(f procfs.FDs, e end, sockets *socketTable) Stdin {
	wire := Stdin{Type: e.kind}
	switch e.kind {
	case StdinPipe:
		wire.Peer, wire.Unread = pipePeer(f, e)
	case StdinSocket:
		wire.Peer = PeerUnknown
		if u, ok := sockets.unixSocket(e.inode); ok {
			wire.Peer = peerState(u)
		}
	}
	return wire
}

// readsOnly reports whether the process reads from a pipe that it does not write itself. Event loops
// wake themselves through pipes that they hold both ends of.
func readsOnly(f procfs.FDs, pipe end, ends []end) bool {
	return !slices.ContainsFunc(ends, func(other end) bool {
		if other.kind != StdinPipe || other.inode != pipe.inode {
			return false
		}
		_, write, err := f.Mode(other.name)
		return err != nil || write
	})
}

// pair tells whether a socket can be the process's end of a socketpair(2) with another process: not
// a connection to a name, and not one of the pairs by which an event loop wakes itself.
func (t *socketTable) pair(e end, ends []end) bool {
	u, ok := t.unixSocket(e.inode)
	if !ok || u.Kind != unix.SOCK_STREAM || u.Name != "" || peerState(u) == PeerUnknown {
		return false
	}
	if peer, ok := t.unix[u.Peer]; ok && peer.Name != "" {
		return false
	}
	return !slices.ContainsFunc(ends, func(other end) bool {
		return other.kind == StdinSocket && other.inode == uint64(u.Peer)
	})
}
