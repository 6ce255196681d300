package rules

import (
	"fmt"
	"slices"

	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

// The other ends of an orphan's pipes: which processes hold its stdin open, and which read its output.

// heldByOrphans judges a server whose stdin is held open by orphans only: a client that does not close its
// descriptors on exec gives each server the writing ends of all earlier ones.
func (j *judgement) heldByOrphans(in *process.Instance, gone orphans) *orphanCandidate {
	w, holders := in.Stdin()
	if in.Owner.Kind != process.OwnerNobody || w != process.StdinOpen || in.Unreadable("holders") {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(holders), func(pid int) bool { return j.InstanceAt(pid) == in })
	if len(others) == 0 || slices.ContainsFunc(others, func(pid int) bool { return gone[j.InstanceAt(pid)] == nil }) {
		return nil
	}
	l := &orphanCandidate{in: in, confidence: process.Certain, proof: j.heldBy(others)}
	for _, pid := range others {
		// A doubt about the holder is a doubt about what it holds.
		if holder := gone[j.InstanceAt(pid)]; holder.doubt != "" {
			l.confidence, l.doubt = holder.confidence, fmt.Sprintf("pid %d holds its stdin, and %s", pid, holder.doubt)
		}
	}
	return l
}

// spareRead adds a doubt about those whose output is read by a process that is no orphan: a stdin that was
// closed after one request looks like one that was lost.
func (j *judgement) spareRead(gone orphans) {
	for in, l := range gone {
		if reader := j.reader(in, gone); l.doubt == "" && reader != "" {
			l.confidence, l.doubt = process.Likely, reader+" still reads its output"
		}
	}
}

// reader returns which process reads an instance's output, besides itself and other orphans; "" for none. An
// unseen reader counts.
func (j *judgement) reader(in *process.Instance, gone orphans) string {
	out := in.Main().Stdout
	if out == nil || out.Type != scan.StdinPipe && out.Type != scan.StdinSocket || out.Peer == scan.PeerClosed {
		return ""
	}
	for _, pid := range out.Holders {
		if reader := j.InstanceAt(pid); reader == nil || gone[reader] == nil && reader != in && !j.forgot(reader, in) {
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
	startedAgain := func(other *process.Instance) bool {
		return other.OwnedBy == reader && other.Root().Started.After(in.Root().Started)
	}
	return reader.Recognition.By != process.ByRelation || j.twin(in, startedAgain) != nil
}

// heldBy describes which processes hold the stdin of an orphan: of many only the cause, whose own stdin is
// closed.
func (j *judgement) heldBy(holders []int) string {
	dying := slices.DeleteFunc(slices.Clone(holders), func(pid int) bool {
		return process.StdinOf(j.Process(j.Forest.Node(pid))) != process.StdinClosed
	})
	if len(dying) > 0 {
		holders = dying
	}
	return "its stdin is held only by pid " + format.PIDs(holders, 3) + ", which " +
		format.Plural(len(holders), "is an orphan itself", "are orphans themselves")
}
