package rules

import (
	"fmt"
	"slices"

	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

// Who else is at the wires of an orphan: who holds its stdin open, and who reads what it writes.

// followHolders takes in the servers whose stdin is held open by orphans only: a client that does
// not close its descriptors on exec gives each server the writing ends of all earlier ones.
func (j *judgement) followHolders(gone map[*process.Instance]lost) {
	for grown := true; grown; {
		grown = false
		for _, in := range j.Instances {
			if _, ok := gone[in]; ok || in.Role != process.RoleServer || in.Service != nil || in.Owner.Kind != process.OwnerNobody {
				continue
			}
			w, holders := in.Stdin()
			if w != process.StdinOpen || len(holders) == 0 || len(in.Listen()) > 0 || in.Unreadable("holders") {
				continue // nobody looked for the holders, or not all could be seen
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
			l := lost{in: in, confidence: process.Certain, safe: true, proof: j.heldBy(others)}
			for _, pid := range others {
				// What is doubted of the holder is doubted of what it holds.
				if holder := gone[j.InstanceOf[j.Forest.Node(pid)]]; !holder.safe {
					l.safe, l.confidence, l.doubt = false, holder.confidence, "pid "+fmt.Sprint(pid)+" holds its stdin, and of that one "+holder.doubt
				}
			}
			j.weigh(&l)
			gone[in], grown = l, true
		}
	}
}

// spareRead doubts of those whose answers somebody reads who is no orphan himself: a stdin that was
// closed after one question looks the same as one that was lost.
func (j *judgement) spareRead(gone map[*process.Instance]lost) {
	for in, l := range gone {
		if !l.safe {
			continue
		}
		if reader := j.reader(in, gone); reader != "" {
			l.safe, l.confidence, l.doubt = false, process.Likely, reader+" still reads what it writes"
			gone[in] = l
		}
	}
}

// reader says who reads what an instance writes, besides itself and other orphans; "" for nobody. Who
// cannot be seen reads too.
func (j *judgement) reader(in *process.Instance, gone map[*process.Instance]lost) string {
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
	if len(out.Holders) == 0 || in.Unreadable("holders") { // nobody looked, or not everywhere
		return "somebody who cannot be seen"
	}
	return ""
}

// forgot tells that who still reads what a server writes does not wait for it. A gateway, and a client
// on an SDK, talk to their servers as long as they want anything of them, and close their stdin when
// they are done. But a client also runs commands, which may ask a server once with a stdin that is
// closed: they are below the client, or were left in the background by a shell, which gives a pipe, and
// not the pair of sockets that those clients have which forget their ends (Node, Bun).
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

// startedAgain tells that a client of which little is known has started the same server anew.
func (j *judgement) startedAgain(in, client *process.Instance) bool {
	return slices.ContainsFunc(j.Copies[in.Identity], func(other *process.Instance) bool {
		return other != in && other.OwnedBy == client && other.Root().Started.After(in.Root().Started)
	})
}

// heldBy says who holds the stdin of an orphan: of many the one that is the cause, since it is the
// one whose own stdin is dead and that stays all the same.
func (j *judgement) heldBy(holders []int) string {
	if dying := slices.DeleteFunc(slices.Clone(holders), func(pid int) bool { return process.StdinOf(j.Process(j.Forest.Node(pid))) != process.StdinClosed }); len(dying) > 0 {
		holders = dying
	}
	return "its stdin is held only by pid " + format.PIDs(holders, 3) + ", which " + format.Plural(len(holders), "is an orphan itself", "are orphans themselves")
}
