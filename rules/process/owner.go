package process

import (
	"fmt"

	"mcpdoctor/rules/command"
	"mcpdoctor/scan"
)

// OwnerKind is the sort of process that a server belongs to.
type OwnerKind string

// The kinds of owner. OwnerNobody is an adopter (on Windows, a dead parent): a process that inherited the server and does
// not use it. OwnerUnknown must never be taken for it.
const (
	OwnerClient   OwnerKind = "client"
	OwnerGateway  OwnerKind = "gateway"
	OwnerService  OwnerKind = "service"
	OwnerTerminal OwnerKind = "terminal"
	OwnerNobody   OwnerKind = "nobody"
	OwnerUnknown  OwnerKind = "unknown"
)

// Owner is the process that a server belongs to, as far as its ancestors show.
type Owner struct {
	Kind OwnerKind `json:"kind"`
	PID  int       `json:"pid,omitempty"` // 0 when there is no such process
	Name string    `json:"name,omitempty"`
}

// String describes an owner: "Claude Code (pid 71400)".
func (o Owner) String() string {
	name := o.Name
	if name == "" {
		name = "a process"
	}
	if o.PID == 0 {
		return name
	}
	return fmt.Sprintf("%s (pid %d)", name, o.PID)
}

// owner finds the owner of an instance by walking up from its root. PPID 1 is neither necessary for an orphan (a
// subreaper adopts too, and only the top of a chain is adopted) nor sufficient (a service has it from birth, and in a
// container PID 1 may be the client itself).
func (t *Table) owner(in *Instance) Owner {
	if in.Service != nil {
		return ofService(in.Service, in.Service.MainPID)
	}
	up := t.Forest.Parent[in.RootNode]
	if up == None {
		return t.ownerless(in)
	}
	for at := up; at != None; at = t.Forest.Parent[at] {
		p := t.Process(at)
		if t.IsAdopter(at) {
			if at != up || startedAs(p, in.Root(), t.Snapshot.Host.OS) { // else an unknown process in between may be the client
				return named(OwnerUnknown, t.Process(up))
			}
			return named(OwnerNobody, p)
		}
		if over := t.InstanceOf[at]; over != nil && over != in {
			switch over.Role {
			case RoleClient:
				return Owner{Kind: OwnerClient, PID: p.PID, Name: over.Name}
			case RoleGateway, RoleServer: // a server that starts servers is a gateway to them
				return Owner{Kind: OwnerGateway, PID: p.PID, Name: over.Name}
			}
		}
		if job := t.services[at]; job != nil { // a script that a manager keeps, and that started this
			return ofService(job, p.PID)
		}
		if manager := supervisor(p); manager != "" {
			if p.PID == 1 && at == up && t.Snapshot.Host.Services != nil {
				// As PID 1 it adopts too. Its jobs are known, and this is none of them.
				return Owner{Kind: OwnerNobody, PID: p.PID, Name: manager}
			}
			return Owner{Kind: OwnerService, PID: p.PID, Name: manager}
		}
		if Terminal(p) {
			return named(OwnerTerminal, p)
		}
	}
	return named(OwnerUnknown, t.Process(up))
}

func named(kind OwnerKind, p *scan.Process) Owner {
	return Owner{Kind: kind, PID: p.PID, Name: BaseName(p)}
}

func ofService(s *scan.Service, pid int) Owner {
	return Owner{Kind: OwnerService, PID: pid, Name: s.Manager + " " + s.Name}
}

// ownerless is the owner of an instance whose parent is not in the table. Only Windows keeps the number of a dead
// parent. Elsewhere the kernel gives orphans a new one at once, so that the parent is only hidden (hidepid, another
// namespace).
func (t *Table) ownerless(in *Instance) Owner {
	switch state := t.Forest.ParentStates[in.RootNode]; {
	case t.Snapshot.Host.OS == "windows" && (state == ParentMissing || state == ParentReused):
		return Owner{Kind: OwnerNobody}
	case in.Root().PPID > 0:
		return Owner{Kind: OwnerUnknown, PID: in.Root().PPID}
	}
	return Owner{Kind: OwnerUnknown}
}

// startedAs reports whether the command line of a container's init names the child's program, which is then not adopted:
// `tini -- mcp-server`.
func startedAs(init, child *scan.Process, os string) bool {
	c := command.Parse(init, os)
	return len(c.Launchers) > 0 && c.Program != "" && command.SameProgram(c, command.Parse(child, os))
}
