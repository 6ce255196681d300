package process

import (
	"slices"

	"mcpdoctor/scan"
)

// wire is what is known of the other end of an instance's stdin: whether anybody can still talk
// to the server.
type StdinState uint8

const (
	StdinUnseen      StdinState = iota // nobody looked
	StdinUnreadable                    // somebody looked and was not let, or could not tell
	StdinNoPipe                        // no pipe or socket at all: /dev/null, a terminal, a file
	StdinOpen                          // somebody holds the other end
	StdinMaybeClosed                   // dead, but on a descriptor that may be something else (see [scan.Stdin])
	StdinUnread                        // dead, but with requests left that were not read yet
	StdinClosed                        // nobody holds the other end
)

// wire returns what is known of an instance's stdin, and who holds its other end.
//
// Launchers and their server share one stdin, and a launcher that gives its child a pipe of its
// own holds that pipe itself; so the outermost process that has a wire decides. Only when that one is
// dead the others matter: two servers may lie below one launcher, each on a wire of its own.
func (in *Instance) Stdin() (w StdinState, holders []int) {
	w, holders = in.OuterStdin()
	if w > StdinOpen {
		if other := in.heldBelow(); other != nil {
			return StdinOpen, other.Holders
		}
	}
	return w, holders
}

// outerWire is what is known of the stdin of the outermost process that has a wire.
func (in *Instance) OuterStdin() (w StdinState, holders []int) {
	for _, m := range in.Members {
		p, rec := in.Table.Forest.Processes[m], in.Table.Recognitions[m]
		if rec == nil || rec.Role == RoleHelper && in.Role != RoleHelper {
			continue
		}
		seen := StdinOf(p)
		if seen == StdinUnseen && in.Table.looked {
			seen = StdinUnreadable // others were looked at, and this one could not be
		}
		if seen == StdinUnread && in.Role == RoleGateway {
			seen = StdinClosed // gateways to the network never read theirs
		}
		if seen >= StdinOpen {
			return seen, p.Stdin.Holders
		}
		w = max(w, seen)
	}
	return w, nil
}

// heldBelow returns the stdin of a server in an instance that somebody outside of the instance may
// hold; nil for none.
func (in *Instance) heldBelow() *scan.Stdin {
	for _, m := range in.Members {
		p := in.Table.Forest.Processes[m]
		if in.Table.Recognitions[m].RoleOrNone() != RoleServer || StdinOf(p) != StdinOpen {
			continue
		}
		if p.Stdin.Holders == nil || slices.ContainsFunc(p.Stdin.Holders, func(pid int) bool {
			at := in.Table.Forest.Node(pid)
			return at == None || in.Table.InstanceOf[at] != in
		}) {
			return p.Stdin
		}
	}
	return nil
}

func StdinOf(p *scan.Process) StdinState {
	if p.Stdin == nil {
		if slices.Contains(p.Unreadable, "stdin") {
			return StdinUnreadable
		}
		return StdinUnseen
	}
	switch {
	case p.Stdin.Type != scan.StdinPipe && p.Stdin.Type != scan.StdinSocket:
		return StdinNoPipe
	case p.Stdin.Peer == scan.PeerOpen:
		return StdinOpen
	case p.Stdin.Peer == scan.PeerClosed && p.Stdin.Unread:
		return StdinUnread
	case p.Stdin.Peer == scan.PeerClosed && p.Stdin.FD > 0:
		return StdinMaybeClosed
	case p.Stdin.Peer == scan.PeerClosed:
		return StdinClosed
	}
	return StdinUnreadable
}
