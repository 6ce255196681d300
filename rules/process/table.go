package process

import (
	"cmp"
	"slices"
	"time"

	"mcpdoctor/rules/command"
	"mcpdoctor/scan"
)

// Table is a [Recognised] process table grouped into instances, on which the rules work. [NewTable] makes it; it does
// not change afterwards.
type Table struct {
	*Recognised
	Now        time.Time
	Instances  []*Instance // ascending by their root's PID
	InstanceOf []*Instance // by node
	Copies     map[string][]*Instance
	services   map[int32]*scan.Service // by the node of their main process
	examined   bool                    // the stdin of some processes was read
}

// NewTable groups processes into instances and finds their owners.
func NewTable(r *Recognised) *Table {
	t := &Table{
		Recognised: r, Now: r.Snapshot.Taken, InstanceOf: make([]*Instance, len(r.Forest.Processes)),
		Copies: map[string][]*Instance{}, services: map[int32]*scan.Service{},
		examined: slices.ContainsFunc(r.Forest.Processes, func(p *scan.Process) bool {
			return p.Stdin != nil || slices.Contains(p.Unreadable, "stdin")
		}),
	}
	for i, s := range r.Snapshot.Host.Services {
		if at := r.Forest.Node(s.MainPID); at != None && s.MainPID > 0 {
			t.services[at] = &r.Snapshot.Host.Services[i]
		}
	}
	r.Forest.Walk(t.place)
	for _, in := range t.Instances {
		in.setName()
		for _, m := range slices.Backward(in.Members) {
			in.Service = cmp.Or(t.services[m], in.Service) // of several, the outermost
		}
		t.Copies[in.Identity] = append(t.Copies[in.Identity], in)
	}
	slices.SortFunc(t.Instances, func(a, b *Instance) int { return int(a.RootNode - b.RootNode) })
	for _, in := range t.Instances {
		in.Owner = t.owner(in)
		if in.Owner.Kind == OwnerClient || in.Owner.Kind == OwnerGateway {
			in.OwnedBy = t.InstanceOf[t.Forest.Node(in.Owner.PID)]
			if in.Role == RoleServer {
				in.OwnedBy.Owned = append(in.OwnedBy.Owned, in)
			}
		}
	}
	t.demote()
	t.findWorkers()
	return t
}

// place puts one process into the instance of its parent, or starts an instance with it.
func (t *Table) place(node int32) {
	up, rec := t.Forest.Parent[node], t.Recognitions[node]
	var over *Instance
	if up != None {
		over = t.InstanceOf[up]
	}
	switch {
	case rec == nil:
		// What a server started itself is a helper; what a client or gateway started is not.
		if over != nil && (over.Role == RoleServer || over.Role == RoleHelper) && t.Role(up) != RoleLauncher && t.Process(node).State != "Z" {
			t.join(over, node)
		}
		return
	case rec.By == byDescent && !OnPipe(t.Process(node)):
		t.Recognitions[node] = nil // the closer look has shown that it does not speak over stdin
		return
	case over == nil || !t.joins(over, up, rec):
		over = &Instance{Table: t, Role: rec.Role, RootNode: node, MainNode: node, Recognition: rec}
		if rec.Role == RoleLauncher {
			over.Role = rec.target()
		}
		t.join(over, node)
		t.Instances = append(t.Instances, over)
		return
	}
	t.join(over, node)
	switch {
	case rec.Role == RoleLauncher || rec.Role == RoleHelper:
	case over.Recognition.Role == RoleLauncher || t.Role(up) == RoleLauncher && command.SameProgram(t.Recognitions[up].Command, rec.Command):
		over.Recognition, over.MainNode, over.Role = rec, node, rec.Role
	case over.Role == RoleGateway && rec.Role == RoleGateway:
		over.Recognition, over.MainNode = rec, node // the inner layer has the children
	}
}

func (t *Table) join(in *Instance, node int32) {
	in.Members = append(in.Members, node)
	t.InstanceOf[node] = in
}

// joins reports whether a process belongs to the instance of its parent.
func (t *Table) joins(over *Instance, up int32, child *Recognition) bool {
	parent := t.Recognitions[up]
	switch {
	case parent == nil:
		return false // below an unknown process that a server started
	case parent.Role == RoleLauncher:
		// A launcher starts nothing but its program, unless it adopts other processes as well: tini -s.
		return !t.IsAdopter(up) || command.SameProgram(parent.Command, child.Command)
	case child.Role == RoleHelper:
		return over.Role == RoleServer || over.Role == RoleHelper
	case over.Role == RoleHelper:
		return false // an agent or server that was started from inside a helper
	case over.Role == RoleClient, over.Role == RoleGateway:
		if t.Process(up).PID == 1 && parent.Command.Identity() != child.Command.Identity() {
			return false // the script that became the first process of a container had started another
		}
		return child.Role == over.Role && child.Name == over.Recognition.Name // one program in two layers
	}
	// A server below a server is a worker of the same program, or a server that it uses as a client.
	return command.SameProgram(parent.Command, child.Command)
}

// demote takes the role from a client by relation all of whose servers have lost their stdin: it may have adopted them
// (prctl(2), PR_SET_CHILD_SUBREAPER).
func (t *Table) demote() {
	for _, in := range t.Instances {
		if in.Role != RoleClient || in.Recognition.By != ByRelation || len(in.Owned) == 0 {
			continue
		}
		if slices.ContainsFunc(in.Owned, func(s *Instance) bool { w, _ := s.Stdin(); return w != StdinClosed }) {
			continue
		}
		in.Role = ""
		for _, s := range in.Owned {
			s.Owner.Kind, s.OwnedBy = OwnerUnknown, nil
		}
		in.Owned = nil
	}
}

// findWorkers makes the process with the most servers the main one of each client: a desktop application is many
// processes, and one of them is the client.
func (t *Table) findWorkers() {
	servers := map[int32]int{} // by node
	for _, in := range t.Instances {
		if in.OwnedBy == nil || in.OwnedBy.Role != RoleClient {
			continue
		}
		at := t.Forest.Node(in.Owner.PID)
		servers[at]++
		if servers[at] > servers[in.OwnedBy.MainNode] {
			in.OwnedBy.MainNode = at
		}
	}
}

// WithRole returns the instances of some roles, ascending by their root's PID.
func (t *Table) WithRole(roles ...Role) []*Instance {
	return slices.DeleteFunc(slices.Clone(t.Instances), func(in *Instance) bool { return !slices.Contains(roles, in.Role) })
}

// InstanceAt returns the instance that a process belongs to; nil for none.
func (t *Table) InstanceAt(pid int) *Instance {
	if at := t.Forest.Node(pid); at != None {
		return t.InstanceOf[at]
	}
	return nil
}

// Over returns the instance that the parent of an instance belongs to; nil for none.
func (t *Table) Over(in *Instance) *Instance {
	if up := t.Forest.Parent[in.RootNode]; up != None {
		return t.InstanceOf[up]
	}
	return nil
}

// SortByStart sorts instances by age, the oldest first. PIDs say nothing about age once they have wrapped around.
func (t *Table) SortByStart(ins []*Instance) {
	slices.SortStableFunc(ins, func(a, b *Instance) int {
		return cmp.Or(a.Root().Started.Compare(b.Root().Started), int(a.RootNode-b.RootNode))
	})
}
