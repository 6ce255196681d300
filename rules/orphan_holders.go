package rules

import (
	"fmt"
	"slices"

	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

// The other ends of an orphan's pipes: which processes hold its stdin open, and which read its output.

// followHolders adds the servers whose stdin is held open by orphans only: a client that does not close its
// descriptors on exec gives each server the writing ends of all earlier ones.
func (j *judgement) followHolders(gone map[*process.Instance]orphanCandidate) {
	for grown := true; grown; {
		grown = false
		for _, in := range j.Instances {
			if _, ok := gone[in]; ok || in.Role != process.RoleServer || in.Service != nil || in.Owner.Kind != process.OwnerNobody {
				continue
			}
			w, holders := in.Stdin()
			if w != process.StdinOpen || len(holders) == 0 || len(in.Listen()) > 0 || in.Unreadable("holders") {
				continue // its holders are unknown, or not all were seen
			}
			onlyLost := !slices.ContainsFunc(holders, func(pid int) bool {
				at := j.Forest.Node(pid)
				if at == process.None || j.InstanceOf[at] == nil {
					return true
				}
				_, ok := gone[j.InstanceOf[at]]
				return !ok && j.InstanceOf[at] != in
			})
			if !onlyLost {
				continue
			}
			others := slices.DeleteFunc(slices.Clone(holders), func(pid int) bool { return j.InstanceOf[j.Forest.Node(pid)] == in })
			if len(others) == 0 {
				continue
			}
			l := orphanCandidate{in: in, confidence: process.Certain, safe: true, proof: j.heldBy(others)}
			for _, pid := range others {
				// A doubt about the holder is a doubt about what it holds.
				if holder := gone[j.InstanceOf[j.Forest.Node(pid)]]; !holder.safe {
					l.safe, l.confidence, l.doubt = false, holder.confidence, "pid "+fmt.Sprint(pid)+" holds its stdin, and "+holder.doubt
				}
			}
			j.downgrade(&l)
			gone[in], grown = l, true
		}
	}
}

// spareRead adds a doubt about those whose output is read by a process that is no orphan: a stdin that was
// closed after one request looks like one that was lost.
func (j *judgement) spareRead(gone map[*process.Instance]orphanCandidate) {
	for in, l := range gone {
		if !l.safe {
			continue
		}
		if reader := j.reader(in, gone); reader != "" {
			l.safe, l.confidence, l.doubt = false, process.Likely, reader+" still reads its output"
			gone[in] = l
		}
	}
}

// reader returns which process reads an instance's output, besides itself and other orphans; "" for none. An
// unseen reader counts.
func (j *judgement) reader(in *process.Instance, gone map[*process.Instance]orphanCandidate) string {
	out := in.Main().Stdout
	if out == nil || out.Type != scan.StdinPipe && out.Type != scan.StdinSocket || out.Peer == scan.PeerClosed {
		return ""
	}
	for _, pid := range out.Holders {
		at := j.Forest.Node(pid)
		if at == process.None || j.InstanceOf[at] == nil {
			return fmt.Sprintf("pid %d", pid)
		}
		if _, lost := gone[j.InstanceOf[at]]; !lost && j.InstanceOf[at] != in && !j.forgot(j.InstanceOf[at], in) {
			return fmt.Sprintf("pid %d", pid)
		}
	}
	if len(out.Holders) == 0 || in.Unreadable("holders") { // the readers are unknown, or not all were seen
		return "a process that cannot be seen"
	}
	return ""
}

// forgot reports whether the reader of a server's output is not waiting for it. Gateways and clients on an SDK
// talk to a server as long as they need it, and close its stdin when they are done. But a client also runs
// commands, which may ask a server once with a closed stdin: these are below the client, or were left in the
// background by a shell, which gives them a pipe; the clients that forget their ends (Node, Bun) use a
// socketpair.
func (j *judgement) forgot(reader, in *process.Instance) bool {
	stdin := in.Root().Stdin
	socket := in.Owner.Kind == process.OwnerNobody && stdin != nil && stdin.Type == scan.StdinSocket
	switch {
	case reader.Role == process.RoleGateway && reader.Recognition.By != process.ByRelation:
		return true
	case reader.Role != process.RoleClient || !socket:
		return false
	}
	return reader.Recognition.By != process.ByRelation || j.startedAgain(in, reader)
}

// startedAgain reports whether a client has started the same server again.
func (j *judgement) startedAgain(in, client *process.Instance) bool {
	return slices.ContainsFunc(j.Copies[in.Identity], func(other *process.Instance) bool {
		return other != in && other.OwnedBy == client && other.Root().Started.After(in.Root().Started)
	})
}

// heldBy describes which processes hold the stdin of an orphan: of many only the cause, whose own stdin is
// closed.
func (j *judgement) heldBy(holders []int) string {
	if dying := slices.DeleteFunc(slices.Clone(holders), func(pid int) bool { return process.StdinOf(j.Process(j.Forest.Node(pid))) != process.StdinClosed }); len(dying) > 0 {
		holders = dying
	}
	return "its stdin is held only by pid " + format.PIDs(holders, 3) + ", which " + format.Plural(len(holders), "is an orphan itself", "are orphans themselves")
}
