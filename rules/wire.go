package rules

import (
	"slices"

	"mcpdoctor/scan"
)

// wire is what is known of the other end of an instance's stdin: whether anybody can still talk
// to the server.
type wire uint8

const (
	unseen  wire = iota // nobody looked
	refused             // somebody looked and was not let, or could not tell
	unwired             // no pipe or socket at all: /dev/null, a terminal, a file
	held                // somebody holds the other end
	weak                // dead, but on a descriptor that may be something else (see [scan.Stdin])
	pending             // dead, but with requests left that were not read yet
	dead                // nobody holds the other end
)

// wire returns what is known of an instance's stdin, and who holds its other end.
//
// Launchers and their server share one stdin, and a launcher that gives its child a pipe of its
// own holds that pipe itself; so the outermost process that has a wire decides. Only when that one is
// dead the others matter: two servers may lie below one launcher, each on a wire of its own.
func (in *instance) wire() (w wire, holders []int) {
	w, holders = in.outerWire()
	if w > held {
		if other := in.heldBelow(); other != nil {
			return held, other.Holders
		}
	}
	return w, holders
}

// outerWire is what is known of the stdin of the outermost process that has a wire.
func (in *instance) outerWire() (w wire, holders []int) {
	for _, m := range in.members {
		p, rec := in.table.forest.procs[m], in.table.recs[m]
		if rec == nil || rec.Role == RoleHelper && in.role != RoleHelper {
			continue
		}
		seen := wireOf(p)
		if seen == unseen && in.table.looked {
			seen = refused // others were looked at, and this one could not be
		}
		if seen == pending && in.role == RoleGateway {
			seen = dead // gateways to the network never read theirs
		}
		if seen >= held {
			return seen, p.Stdin.Holders
		}
		w = max(w, seen)
	}
	return w, nil
}

// heldBelow returns the stdin of a server in an instance that somebody outside of the instance may
// hold; nil for none.
func (in *instance) heldBelow() *scan.Stdin {
	for _, m := range in.members {
		p := in.table.forest.procs[m]
		if in.table.recs[m].role() != RoleServer || wireOf(p) != held {
			continue
		}
		if p.Stdin.Holders == nil || slices.ContainsFunc(p.Stdin.Holders, func(pid int) bool {
			at := in.table.forest.at(pid)
			return at == none || in.table.of[at] != in
		}) {
			return p.Stdin
		}
	}
	return nil
}

func wireOf(p *scan.Process) wire {
	if p.Stdin == nil {
		if slices.Contains(p.Unreadable, "stdin") {
			return refused
		}
		return unseen
	}
	switch {
	case p.Stdin.Type != scan.StdinPipe && p.Stdin.Type != scan.StdinSocket:
		return unwired
	case p.Stdin.Peer == scan.PeerOpen:
		return held
	case p.Stdin.Peer == scan.PeerClosed && p.Stdin.Unread:
		return pending
	case p.Stdin.Peer == scan.PeerClosed && p.Stdin.FD > 0:
		return weak
	case p.Stdin.Peer == scan.PeerClosed:
		return dead
	}
	return refused
}
