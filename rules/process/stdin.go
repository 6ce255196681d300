package process

import (
	"slices"

	"mcpdoctor/scan"
)

// StdinState is what is known about the other end of a stdin: whether a client can still reach the server. The states
// from StdinOpen on are those of a pipe or socket.
type StdinState uint8

// The states of a stdin.
const (
	StdinUnseen      StdinState = iota // it was not looked at
	StdinUnreadable                    // it was looked at, and could not be read
	StdinNoPipe                        // /dev/null, a terminal or a file
	StdinOpen                          // a process holds the other end
	StdinMaybeClosed                   // closed, but on a descriptor that may be something else (see [scan.Stdin])
	StdinUnread                        // closed, with requests left that were not read yet
	StdinClosed                        // no process holds the other end
)

// Stdin returns the state of an instance's stdin and the PIDs that hold its other end.
//
// Launchers and their server share one stdin, and a launcher that gives its child a pipe of its own holds that pipe
// itself, so the outermost process with a pipe decides. Only when that one is closed do the others matter: two
// servers, each with its own pipe, may lie below one launcher.
func (in *Instance) Stdin() (state StdinState, holders []int) {
	state, holders = in.OuterStdin()
	if state > StdinOpen {
		if other := in.heldBelow(); other != nil {
			return StdinOpen, other.Holders
		}
	}
	return state, holders
}

// OuterStdin is [Instance.Stdin] of the outermost process with a pipe alone.
func (in *Instance) OuterStdin() (state StdinState, holders []int) {
	for _, m := range in.Members {
		p := in.Table.Process(m)
		if in.Table.Recognitions[m] == nil || in.isHelper(m) {
			continue
		}
		seen := StdinOf(p)
		switch {
		case seen == StdinUnseen && in.Table.examined:
			seen = StdinUnreadable // others were looked at, and this one could not be
		case seen == StdinUnread && in.Role == RoleGateway:
			seen = StdinClosed // gateways to the network never read theirs
		}
		if seen >= StdinOpen {
			return seen, p.Stdin.Holders
		}
		state = max(state, seen)
	}
	return state, nil
}

// heldBelow returns the stdin of one of the instance's servers that a process outside of the instance may hold; nil for
// none.
func (in *Instance) heldBelow() *scan.Stdin {
	outside := func(pid int) bool { return in.Table.InstanceAt(pid) != in }
	for _, m := range in.Members {
		p := in.Table.Process(m)
		if in.Table.Role(m) != RoleServer || StdinOf(p) != StdinOpen {
			continue
		}
		if p.Stdin.Holders == nil || slices.ContainsFunc(p.Stdin.Holders, outside) {
			return p.Stdin
		}
	}
	return nil
}

// StdinOf returns the state of one process's stdin.
func StdinOf(p *scan.Process) StdinState {
	in := p.Stdin
	switch {
	case in == nil && slices.Contains(p.Unreadable, "stdin"):
		return StdinUnreadable
	case in == nil:
		return StdinUnseen
	case in.Type != scan.StdinPipe && in.Type != scan.StdinSocket:
		return StdinNoPipe
	case in.Peer == scan.PeerOpen:
		return StdinOpen
	case in.Peer == scan.PeerClosed && in.Unread:
		return StdinUnread
	case in.Peer == scan.PeerClosed && in.FD > 0:
		return StdinMaybeClosed
	case in.Peer == scan.PeerClosed:
		return StdinClosed
	}
	return StdinUnreadable
}

// OnPipe reports whether a process's stdin can carry MCP, as far as it was looked at.
func OnPipe(p *scan.Process) bool {
	return p.Stdin == nil || p.Stdin.Type == scan.StdinPipe || p.Stdin.Type == scan.StdinSocket || p.Stdin.FD > 0
}
