// Package process turns a snapshot into a [Table]: the forest of parents and children, what each process is to MCP and
// how that is known, the instances (a server with its launchers and helpers), their owners, and the state of their stdin.
// It decides nothing about leaks: that is package rules.
package process

import (
	"slices"
	"time"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
	"mcpdoctor/scan"
)

// Recognised is a process table in which the clients, gateways, launchers, servers and helpers are known. [Recognise]
// makes it from command lines and relations alone. A closer look and the clients' configuration files may then add to
// it, before [NewTable] groups its processes into instances.
type Recognised struct {
	Snapshot     *scan.Snapshot
	Forest       *Forest
	Recognitions []*Recognition // by node; nil for a process that has nothing to do with MCP
}

// How a process was recognised if not by its command line alone.
const (
	ByRelation = "relation" // it is the child of a gateway or launcher that was started to run it
	byDescent  = "descent"  // a client started it together with recognised servers
)

// bornTogether is how close the starts of servers lie that a client started at one moment. They start within 0.1 s of
// each other; a slow machine gets some more.
const bornTogether = 2 * time.Second

// Recognise finds the processes that have to do with MCP.
func Recognise(s *scan.Snapshot) *Recognised {
	r := &Recognised{Snapshot: s, Forest: newForest(s)}
	r.Recognitions = make([]*Recognition, len(r.Forest.Processes))
	r.Forest.Walk(func(node int32) { r.Recognitions[node] = r.recognise(node) })
	r.FollowRelations()
	return r
}

// FollowRelations recognises clients by the servers that they started, and servers of agents by their siblings. Editors
// start language servers at the same moments and in the same way, so their children are left out, and so are those of
// programs that are clients by relation only.
func (r *Recognised) FollowRelations() {
	r.promoteOwners()
	for i, rec := range r.Recognitions {
		if rec.RoleOrNone() == RoleClient && rec.By != ByRelation && !rec.Client.IsEditor() {
			r.descend(r.Forest.Children[i])
		}
	}
}

// Process returns the process of a node.
func (r *Recognised) Process(node int32) *scan.Process { return r.Forest.Processes[node] }

// Role returns the role of a node's process; empty for one that has nothing to do with MCP, and for [None].
func (r *Recognised) Role(node int32) Role {
	if node == None {
		return ""
	}
	return r.Recognitions[node].RoleOrNone()
}

// NeedsExamination returns the PIDs that deserve a closer look, ascending: every process that has to do with MCP, the
// descendants of servers (a worker may be the one that listens), and the parents of recognised processes that may be
// jobs of a service manager (a script around a server).
func (r *Recognised) NeedsExamination() []int {
	needed := make([]bool, len(r.Recognitions))
	r.Forest.Walk(func(node int32) {
		up := r.Forest.Parent[node]
		switch {
		case r.Process(node).State == "Z":
		case r.Recognitions[node] != nil:
			needed[node] = true
		case up != None && needed[up] && r.Role(up) != RoleClient && r.Role(up) != RoleGateway:
			needed[node] = r.Recognitions[up] != nil || !r.mayBeJob(up)
		default:
			needed[node] = r.mayBeJob(node)
		}
	})
	var pids []int
	for i, p := range r.Forest.Processes {
		if needed[i] {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// NeedsOnlyStdin returns those of [Recognised.NeedsExamination] whose open stdin answers every question: clients that
// were not adopted, and the servers below clients that do not serve over HTTP.
func (r *Recognised) NeedsOnlyStdin() []int {
	below := make([]bool, len(r.Recognitions))
	var pids []int
	r.Forest.Walk(func(node int32) {
		up, rec := r.Forest.Parent[node], r.Recognitions[node]
		if up == None {
			return
		}
		below[node] = below[up] || r.Role(up) == RoleClient
		client := r.Role(node) == RoleClient && !r.IsAdopter(up)
		server := below[node] && rec != nil && (rec.Role == RoleServer || rec.Role == RoleLauncher && rec.Target != RoleGateway)
		if client || server && !SpeaksHTTP(rec.Command) {
			pids = append(pids, r.Process(node).PID)
		}
	})
	slices.Sort(pids)
	return pids
}

// mayBeJob reports whether an unrecognised process lies between an adopter and a recognised one.
func (r *Recognised) mayBeJob(node int32) bool {
	up := r.Forest.Parent[node]
	return up != None && r.IsAdopter(up) && !r.IsAdopter(node) &&
		slices.ContainsFunc(r.Forest.Children[node], func(child int32) bool { return r.Recognitions[child] != nil })
}

// recognise decides about one process; its parent has been decided about.
func (r *Recognised) recognise(node int32) *Recognition {
	p := r.Process(node)
	if p.State == "Z" {
		return nil
	}
	rec := Classify(p, r.Snapshot.Host.OS)
	if rec.Role != "" {
		return &rec
	}
	up := r.Forest.Parent[node]
	if rec.Command.Program == "" {
		return nil
	}
	switch r.Role(up) {
	case RoleGateway:
		// A gateway starts nothing but servers, so that its command line, which pm2 cuts down to the script, only makes
		// this more certain.
		targets := r.Recognitions[up].Targets(r.Snapshot.Host.OS)
		rec.Confidence = Possible
		if slices.ContainsFunc(targets, func(t command.Command) bool { return command.SameProgram(t, rec.Command) }) {
			rec.Confidence = Certain
		} else if len(targets) > 0 && r.Process(up).PID == 1 {
			// The first process of a container has children that it did not start: orphans, and what the script started
			// that became the gateway (exec).
			return nil
		}
	case RoleLauncher:
		launcher := r.Recognitions[up]
		if launcher.Command.Program == "" || launcher.By != ByRelation && !command.SameProgram(launcher.Command, rec.Command) {
			return nil
		}
		rec.Confidence = launcher.Confidence
	default:
		return nil
	}
	rec.Role, rec.By, rec.Name = RoleServer, ByRelation, rec.Command.Program
	if len(rec.Command.Launchers) > 0 {
		rec.Role = RoleLauncher
	}
	return &rec
}

// promoteOwners makes a client of an unknown program that started recognised servers: any program built on an MCP SDK
// is one.
func (r *Recognised) promoteOwners() {
	for i, children := range r.Forest.Children {
		started := func(child int32) bool { return r.Recognitions[child].Serves() }
		if r.Recognitions[i] != nil || !slices.ContainsFunc(children, started) || r.isBystander(int32(i)) {
			continue
		}
		rec := Classify(r.Forest.Processes[i], r.Snapshot.Host.OS)
		if rec.Command.Program != "" {
			rec.Role, rec.By, rec.Confidence, rec.Name = RoleClient, ByRelation, Possible, rec.Command.Program
			r.Recognitions[i] = &rec
		}
	}
}

// isBystander reports whether a process is the parent of servers without using them: it adopted them, it supervises
// them, or a person typed the command.
func (r *Recognised) isBystander(node int32) bool {
	p := r.Process(node)
	return r.IsAdopter(node) || supervisor(p) != "" || TerminalOrShell(p) || OtherStarter(p)
}

// descend recognises children of one client that an interpreter runs and that were born together with a recognised
// server, and the copies of these.
func (r *Recognised) descend(siblings []int32) {
	var births []time.Time
	for _, s := range siblings {
		if r.Recognitions[s].Serves() {
			births = append(births, r.Process(s).Started)
		}
	}
	if len(births) == 0 {
		return
	}
	found := map[string]bool{} // by identity
	unnamed := map[int32]*Recognition{}
	for _, s := range siblings {
		p := r.Process(s)
		if r.Recognitions[s] != nil || p.State == "Z" || !OnPipe(p) {
			continue
		}
		rec := Classify(p, r.Snapshot.Host.OS)
		c := &rec.Command
		if c.Runtime == "" || c.Program == "" || len(c.Launchers) > 0 || catalog.Load().Lookalikes[c.Program] {
			continue
		}
		rec.Role, rec.By, rec.Confidence, rec.Name = RoleServer, byDescent, Possible, c.Program
		unnamed[s] = &rec
		if !p.Started.IsZero() && slices.ContainsFunc(births, func(b time.Time) bool { return p.Started.Sub(b).Abs() <= bornTogether }) {
			found[c.Identity()] = true
		}
	}
	for s, rec := range unnamed {
		if found[rec.Command.Identity()] {
			r.Recognitions[s] = rec
		}
	}
}

// Packages returns the gateways that are scripts of a package, as PIDs with the paths of the scripts. What a gateway
// leaks depends on the version of its package.
func (r *Recognised) Packages() map[int]string {
	out := map[int]string{}
	for i, rec := range r.Recognitions {
		if rec.RoleOrNone() == RoleGateway && rec.Command.Runtime != "" && rec.Command.Path != "" {
			out[r.Forest.Processes[i].PID] = rec.Command.Path
		}
	}
	return out
}

// OtherUser reports whether a process belongs to another user than the one who runs mcpdoctor, who is not root.
func (r *Recognised) OtherUser(p *scan.Process) bool {
	me := r.Snapshot.Host.UID
	return me != nil && *me != 0 && p.UID != nil && *p.UID != *me
}
