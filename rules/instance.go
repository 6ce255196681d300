package rules

import (
	"slices"
	"strings"
	"time"

	"mcpdoctor/scan"
)

// instance is one running server with its launchers and helpers: what is counted, shown and
// reaped. Gateways and clients are instances too, of their own role, and so are browsers that no
// server is above of.
type instance struct {
	role    Role // RoleServer, RoleGateway, RoleClient or RoleHelper
	root    int32
	main    int32   // the process that does the work; the root while only launchers are left
	members []int32 // the root first, parents before children

	name     string // as shown
	identity string // what copies of it have in common
	rec      *Recognition

	service *scan.Service // the job of a service manager that it is; nil for none
	owner   Owner
	above   *instance   // the client, gateway or server that owns it; nil when nobody is known
	owned   []*instance // the servers that it owns itself, ascending by their root's PID

	verdict Verdict
	because string
}

// table is a recognised process table, grouped into instances, on which the rules work.
type table struct {
	*Recognised
	Options
	now       time.Time
	instances []*instance // ascending by their root's PID
	of        []*instance // by node
	copies    map[string][]*instance
	services  map[int32]*scan.Service // by the node of their main process
	looked    bool                    // somebody looked at the stdin of processes
}

func newTable(r *Recognised, o Options) *table {
	t := &table{Recognised: r, Options: o, now: r.snap.Taken, of: make([]*instance, len(r.forest.procs))}
	t.copies, t.services = map[string][]*instance{}, map[int32]*scan.Service{}
	for i, s := range r.snap.Host.Services {
		if at := r.forest.at(s.MainPID); at != none && s.MainPID > 0 {
			t.services[at] = &r.snap.Host.Services[i]
		}
	}
	t.looked = slices.ContainsFunc(r.forest.procs, func(p *scan.Process) bool { return p.Stdin != nil || slices.Contains(p.Unreadable, "stdin") })
	r.forest.walk(t.place)
	for _, in := range t.instances {
		t.name(in)
		in.service = t.service(in)
		t.copies[in.identity] = append(t.copies[in.identity], in)
	}
	slices.SortFunc(t.instances, func(a, b *instance) int { return int(a.root - b.root) })
	for _, in := range t.instances {
		in.owner = t.owner(in)
		in.above = t.ownedBy(in)
		if in.above != nil && in.role == RoleServer {
			in.above.owned = append(in.above.owned, in)
		}
	}
	t.demote()
	t.findWorkers()
	return t
}

// place puts one process into an instance, or begins one with it. Its parent is placed already.
func (t *table) place(node int32) {
	var over *instance
	var overRec *Recognition
	if up := t.forest.parent[node]; up != none {
		over, overRec = t.of[up], t.recs[up]
	}
	rec := t.recs[node]
	if rec == nil {
		// What a server started itself is a helper; what a client or gateway started is not.
		if over != nil && (over.role == RoleServer || over.role == RoleHelper) && overRec.role() != RoleLauncher && t.forest.procs[node].State != "Z" {
			t.join(over, node)
		}
		return
	}
	if rec.By == byDescent && !onWire(t.forest.procs[node]) {
		t.recs[node] = nil // the closer look has shown that it does not speak over stdin
		return
	}
	if over != nil && t.joins(over, t.forest.parent[node], rec) {
		t.join(over, node)
		switch {
		case rec.Role == RoleLauncher || rec.Role == RoleHelper:
		case over.rec.Role == RoleLauncher || overRec.role() == RoleLauncher && sameProgram(overRec.Command, rec.Command):
			over.rec, over.main, over.role = rec, node, rec.Role
		case over.role == RoleGateway && rec.Role == RoleGateway:
			over.rec, over.main = rec, node // the inner layer is the one that has the children
		}
		return
	}
	in := &instance{role: rec.Role, root: node, main: node, rec: rec}
	if rec.Role == RoleLauncher {
		in.role = RoleServer
		if rec.Target != "" {
			in.role = rec.Target
		}
	}
	t.join(in, node)
	t.instances = append(t.instances, in)
}

// demote takes back that a program is a client when it was only called one for its children, and
// all of these have lost their stdin: it may as well have adopted them (prctl(2),
// PR_SET_CHILD_SUBREAPER).
func (t *table) demote() {
	for _, in := range t.instances {
		if in.role != RoleClient || in.rec.By != byRelation || len(in.owned) == 0 {
			continue
		}
		if slices.ContainsFunc(in.owned, func(s *instance) bool { w, _ := t.wire(s); return w != dead }) {
			continue
		}
		in.role = ""
		for _, s := range in.owned {
			s.owner.Kind, s.above = OwnerUnknown, nil
		}
		in.owned = nil
	}
}

// findWorkers makes that process of each client the main one which has the most servers: a desktop
// application is many processes, and one of them is the client.
func (t *table) findWorkers() {
	has := map[int32]int{}
	for _, in := range t.instances {
		if in.above == nil || in.above.role != RoleClient {
			continue
		}
		at := t.forest.at(in.owner.PID)
		has[at]++
		if best := in.above.main; has[at] > has[best] {
			in.above.main = at
		}
	}
}

func (t *table) join(in *instance, node int32) {
	in.members = append(in.members, node)
	t.of[node] = in
}

// joins decides whether a process belongs to the instance of its parent.
func (t *table) joins(over *instance, up int32, child *Recognition) bool {
	switch parent := t.recs[up]; {
	case parent == nil:
		return false // below a stranger that a server started
	case parent.Role == RoleLauncher && t.adopter(up): // tini -s: not all of its children are its own
		return sameProgram(parent.Command, child.Command)
	case parent.Role == RoleLauncher:
		return true // whatever a launcher started is what it was started for
	case child.Role == RoleHelper:
		return over.role == RoleServer || over.role == RoleHelper
	case over.role == RoleHelper:
		return false // who was started from inside a helper, an agent or its server, is somebody
	case over.role == RoleClient, over.role == RoleGateway:
		if t.proc(up).PID == 1 && t.recs[up].Command.Identity() != child.Command.Identity() {
			return false // the script that became the first process of a container had started another
		}
		return child.Role == over.role && child.Name == over.rec.Name // a program in two layers
	}
	// A server below a server is a worker of its own kind, or a server that it uses as a client.
	return sameProgram(t.recs[up].Command, child.Command)
}

// role is the role of a process that may be nobody.
func (rec *Recognition) role() Role {
	if rec == nil {
		return ""
	}
	return rec.Role
}

func (t *table) name(in *instance) {
	in.name = in.rec.Name
	in.identity = in.rec.Command.Identity()
	// The launcher often names the package, the worker only its script: `npm exec
	// @azure-devops/mcp` over `node .../dist/index.js`. Copies may have lost either, so the
	// identity is always that of the main process.
	if in.name == "" {
		in.name = in.rec.Command.Program
	}
	const longest = 60 // a name stands in titles and columns, and anybody may give one
	if len(in.name) > longest {
		in.name = strings.ToValidUTF8(in.name[:longest], "") + "..."
	}
}

// ownedBy returns the instance that in's owner is.
func (t *table) ownedBy(in *instance) *instance {
	if in.owner.Kind != OwnerClient && in.owner.Kind != OwnerGateway {
		return nil
	}
	if at := t.forest.at(in.owner.PID); at != none {
		return t.of[at]
	}
	return nil
}

// service returns the job of a service manager that in is: one of its processes is the one that
// the manager watches. Being in a unit's cgroup is not enough, since orphans inherit it.
func (t *table) service(in *instance) *scan.Service {
	for _, m := range in.members {
		if s := t.services[m]; s != nil {
			return s
		}
	}
	return nil
}

// with returns the instances of a role, ascending by their root's PID.
func (t *table) with(role Role) []*instance {
	var out []*instance
	for _, in := range t.instances {
		if in.role == role {
			out = append(out, in)
		}
	}
	return out
}

func (t *table) proc(node int32) *scan.Process { return t.forest.procs[node] }

func (t *table) rootProc(in *instance) *scan.Process { return t.forest.procs[in.root] }

func (t *table) mainProc(in *instance) *scan.Process { return t.forest.procs[in.main] }

// age is how long an instance's root has lived; false when that is not known.
func (t *table) age(in *instance) (time.Duration, bool) {
	started := t.rootProc(in).Started
	if started.IsZero() || t.now.IsZero() {
		return 0, false
	}
	return max(0, t.now.Sub(started)), true
}

func (t *table) pids(in *instance) []int {
	out := make([]int, len(in.members))
	for i, m := range in.members {
		out[i] = t.forest.procs[m].PID
	}
	slices.Sort(out)
	return out
}

func (t *table) rss(in *instance) (sum int64) {
	for _, m := range in.members {
		sum += t.forest.procs[m].RSS()
	}
	return sum
}

func (t *table) swap(in *instance) (sum int64) {
	for _, m := range in.members {
		sum += t.forest.procs[m].Swap()
	}
	return sum
}

// listen returns the sockets on which any process of the instance accepts connections, also a worker
// that nobody knows, but without those of known helpers: a browser's debugging port serves its
// server, not clients.
func (t *table) listen(in *instance) []string {
	var out []string
	for _, m := range in.members {
		if t.recs[m].role() != RoleHelper || in.role == RoleHelper {
			out = append(out, t.forest.procs[m].Listen...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// inbound counts the connections to the instance's sockets; false when nobody looked. One to each known
// helper is left out, since it is the server's own: it drives its browser through the debugging port.
func (t *table) inbound(in *instance) (sum int, known bool) {
	for _, m := range in.members {
		if c := t.forest.procs[m].InboundConnections; c != nil {
			n := *c
			if t.recs[m].role() == RoleHelper && in.role != RoleHelper {
				n = max(0, n-1)
			}
			sum, known = sum+n, true
		}
	}
	return sum, known
}

// silence is how long that connection to the instance's sockets has received nothing which has been
// silent for the longest time; false when that is not known of all connections.
func (t *table) silence(in *instance) (longest time.Duration, known bool) {
	known = true
	for _, m := range in.members {
		p := t.forest.procs[m]
		if p.InboundConnections == nil || *p.InboundConnections == 0 {
			continue
		}
		if p.InboundSilenceSeconds == nil {
			return 0, false
		}
		longest = max(longest, time.Duration(*p.InboundSilenceSeconds)*time.Second)
	}
	return longest, known
}

// byStart orders instances by age, the oldest first. PIDs say nothing about age once they have
// wrapped around.
func (t *table) byStart(ins []*instance) {
	slices.SortStableFunc(ins, func(a, b *instance) int {
		if c := t.rootProc(a).Started.Compare(t.rootProc(b).Started); c != 0 {
			return c
		}
		return int(a.root - b.root)
	})
}
