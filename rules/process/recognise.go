// Package process turns a snapshot into a [Table]: the forest of parents and children, what each process
// is to MCP and how that is known, the instances (a server with its launchers and helpers), who owns
// each, and the state of its stdin. It decides nothing about leaks: that is package rules.
package process

import (
	"slices"
	"time"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
	"mcpdoctor/scan"
)

// Recognised is a process table in which it is known who is a client, a gateway, a launcher, a
// server or a helper. [Recognise] makes it and [rules.Judge] judges it; between the two the
// processes named by [Recognised.Look] may be examined more closely.
type Recognised struct {
	Snapshot     *scan.Snapshot
	Forest       *forest
	Recognitions []*Recognition // by node; nil for a process that is nobody to us
}

// Ways in which a process was recognised, besides those of a command line alone.
const (
	ByRelation = "relation" // it is the child of a gateway or launcher that was told to start it
	byDescent  = "descent"  // it was born under a client next to servers that were recognised
)

// bornTogether is how close the starts of servers lie that a client started at one moment. Direct
// children of one client start within 0.1 s of each other; a slow machine is allowed some more.
const bornTogether = 2 * time.Second

// Recognise finds the processes that have to do with MCP.
func Recognise(s *scan.Snapshot) *Recognised {
	r := &Recognised{Snapshot: s, Forest: NewForest(s)}
	r.Recognitions = make([]*Recognition, len(r.Forest.Processes))
	r.Forest.Walk(func(node int32) { r.Recognitions[node] = r.recognise(node) })
	r.PromoteOwners()
	r.FollowDescent()
	return r
}

// Look returns the PIDs that deserve a closer look, ascending: who has to do with MCP, what servers
// have started themselves (a worker may be the one that listens), and who started one of these and
// may be the job of a service manager itself (a script around a server).
func (r *Recognised) Look() []int {
	wanted := make([]bool, len(r.Recognitions))
	r.Forest.Walk(func(node int32) {
		up := r.Forest.Parent[node]
		switch rec := r.Recognitions[node]; {
		case r.Forest.Processes[node].State == "Z":
		case rec != nil:
			wanted[node] = true
		case up != None && wanted[up] && r.Recognitions[up].RoleOrNone() != RoleClient && r.Recognitions[up].RoleOrNone() != RoleGateway:
			wanted[node] = r.Recognitions[up] != nil || !r.mayBeJob(up)
		default:
			wanted[node] = r.mayBeJob(node)
		}
	})
	var pids []int
	for i, w := range wanted {
		if w {
			pids = append(pids, r.Forest.Processes[i].PID)
		}
	}
	return pids
}

// Brief returns those of [Recognised.Look] about which an open stdin tells all: clients that were not
// adopted, and what lies below them, but for gateways and who serves over HTTP.
func (r *Recognised) Brief() []int {
	below := make([]bool, len(r.Recognitions))
	var pids []int
	r.Forest.Walk(func(node int32) {
		up, rec := r.Forest.Parent[node], r.Recognitions[node]
		if up == None {
			return
		}
		below[node] = below[up] || r.Recognitions[up].RoleOrNone() == RoleClient
		if rec.RoleOrNone() == RoleClient && !r.IsAdopter(up) {
			pids = append(pids, r.Forest.Processes[node].PID)
		}
		if below[node] && rec != nil && (rec.Role == RoleServer || rec.Role == RoleLauncher && rec.Target != RoleGateway) && !SpeaksHTTP(rec.Command) {
			pids = append(pids, r.Forest.Processes[node].PID)
		}
	})
	slices.Sort(pids)
	return pids
}

// mayBeJob tells that a process of which nothing is known lies between an init and a server.
func (r *Recognised) mayBeJob(node int32) bool {
	up := r.Forest.Parent[node]
	if up == None || !r.IsAdopter(up) || r.IsAdopter(node) {
		return false
	}
	for _, child := range r.Forest.Children[node] {
		if r.Recognitions[child] != nil {
			return true
		}
	}
	return false
}

// recognise decides on one process whose parent has been decided on already.
func (r *Recognised) recognise(node int32) *Recognition {
	p := r.Forest.Processes[node]
	if p.State == "Z" {
		return nil
	}
	rec := Classify(p, r.Snapshot.Host.OS)
	if rec.Role != "" {
		return &rec
	}
	up := r.Forest.Parent[node]
	if up == None || r.Recognitions[up] == nil || rec.Command.Program == "" {
		return nil
	}
	switch parent := r.Recognitions[up]; {
	case parent.Role == RoleGateway:
		// A gateway starts nothing but servers. Whether it was told to start this one only
		// makes it surer: pm2 cuts a gateway's command line down to its script.
		targets := parent.Targets(r.Snapshot.Host.OS)
		rec.Confidence = Possible
		if slices.ContainsFunc(targets, func(t command.Command) bool { return command.SameProgram(t, rec.Command) }) {
			rec.Confidence = Certain
		}
		if len(targets) > 0 && rec.Confidence == Possible && r.Forest.Processes[up].PID == 1 {
			// The first process of a container has children that it did not start: what was left
			// behind, and what the script started that became the gateway (exec).
			return nil
		}
	case parent.Role == RoleLauncher && r.Recognitions[up].Command.Program != "":
		if !command.SameProgram(parent.Command, rec.Command) && parent.By != ByRelation {
			return nil
		}
		rec.Confidence = parent.Confidence
	default:
		return nil
	}
	rec.By = ByRelation
	rec.Role = RoleServer
	if len(rec.Command.Launchers) > 0 {
		rec.Role = RoleLauncher
	}
	rec.Name = rec.Command.Program
	return &rec
}

// promoteOwners makes a client of a program that nobody knows but that started recognised servers
// and is nothing else: "any program on an MCP SDK" is a client.
func (r *Recognised) PromoteOwners() {
	for i := range r.Forest.Processes {
		if r.Recognitions[i] != nil || len(r.Forest.Children[i]) == 0 {
			continue
		}
		p := r.Forest.Processes[i]
		servers := 0
		for _, child := range r.Forest.Children[i] {
			if r.Recognitions[child].Serves() {
				servers++
			}
		}
		if servers == 0 || r.bystander(int32(i)) {
			continue
		}
		rec := Classify(p, r.Snapshot.Host.OS)
		if rec.Command.Program == "" {
			continue
		}
		rec.Role, rec.By, rec.Confidence, rec.Name = RoleClient, ByRelation, Possible, rec.Command.Program
		r.Recognitions[i] = &rec
	}
}

// serves tells that a process is a server, or launches one.
func (rec *Recognition) Serves() bool {
	return rec != nil && (rec.Role == RoleServer || rec.Role == RoleLauncher && (rec.Target == RoleServer || rec.Target == ""))
}

// bystander tells that a process is the parent of servers for another reason than using them: it
// adopted them, keeps them as a supervisor, or a person typed the command.
func (r *Recognised) bystander(node int32) bool {
	return r.IsAdopter(node) || supervisor(r.Forest.Processes[node]) != "" || TerminalOrShell(r.Forest.Processes[node]) ||
		OtherStarter(r.Forest.Processes[node])
}

// followDescent finds servers that no name tells: children of an agent, started by an interpreter,
// born next to recognised servers; then their copies. Editors are left out, since they start
// language servers at the same moments and in the same way, and so are programs that are only taken
// for clients.
func (r *Recognised) FollowDescent() {
	for i, rec := range r.Recognitions {
		if rec == nil || rec.Role != RoleClient || rec.By == ByRelation || rec.Client.IsEditor() {
			continue
		}
		r.descend(r.Forest.Children[i])
	}
}

func (r *Recognised) descend(siblings []int32) {
	var births []time.Time
	for _, s := range siblings {
		if r.Recognitions[s].Serves() {
			births = append(births, r.Forest.Processes[s].Started)
		}
	}
	if len(births) == 0 {
		return
	}
	found := map[string]bool{}
	unnamed := map[int32]*Recognition{}
	for _, s := range siblings {
		p := r.Forest.Processes[s]
		if r.Recognitions[s] != nil || p.State == "Z" {
			continue
		}
		rec := Classify(p, r.Snapshot.Host.OS)
		if rec.Command.Runtime == "" || rec.Command.Program == "" || len(rec.Command.Launchers) > 0 || !OnPipe(p) || catalog.Load().Lookalikes[rec.Command.Program] {
			continue
		}
		rec.Role, rec.By, rec.Confidence, rec.Name = RoleServer, byDescent, Possible, rec.Command.Program
		unnamed[s] = &rec
		for _, b := range births {
			if d := p.Started.Sub(b); !p.Started.IsZero() && d.Abs() <= bornTogether {
				found[rec.Command.Identity()] = true
				break
			}
		}
	}
	for s, rec := range unnamed {
		if found[rec.Command.Identity()] {
			r.Recognitions[s] = rec
		}
	}
}

// onWire tells that a process's stdin can carry MCP, as far as anybody looked.
func OnPipe(p *scan.Process) bool {
	return p.Stdin == nil || p.Stdin.Type == scan.StdinPipe || p.Stdin.Type == scan.StdinSocket || p.Stdin.FD > 0
}

// Packages returns the gateways that are scripts of a package: PID to the path of the script, for
// the version of the package to be looked up. What a gateway leaks depends on it.
func (r *Recognised) Packages() map[int]string {
	out := map[int]string{}
	for i, rec := range r.Recognitions {
		if rec.RoleOrNone() == RoleGateway && rec.Command.Runtime != "" && rec.Command.Path != "" {
			out[r.Forest.Processes[i].PID] = rec.Command.Path
		}
	}
	return out
}
