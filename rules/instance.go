package rules

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpdoctor/scan"
)

// instance is one running server with its launchers and helpers: what is counted, shown and
// reaped. Gateways and clients are instances too, of their own role, and so are browsers that no
// server is above of.
type instance struct {
	table *table

	role     Role // RoleServer, RoleGateway, RoleClient or RoleHelper
	rootNode int32
	mainNode int32   // the process that does the work; the root while only launchers are left
	members  []int32 // the root first, parents before children

	name     string // as shown
	identity string // what copies of it have in common
	rec      *Recognition

	service *scan.Service // the job of a service manager that it is; nil for none
	owner   Owner
	above   *instance   // the client, gateway or server that owns it; nil when nobody is known
	owned   []*instance // the servers that it owns itself, ascending by their root's PID
}

// table is a recognised process table, grouped into instances, on which the rules work.
type table struct {
	*Recognised
	now       time.Time
	instances []*instance // ascending by their root's PID
	of        []*instance // by node
	copies    map[string][]*instance
	services  map[int32]*scan.Service // by the node of their main process
	looked    bool                    // somebody looked at the stdin of processes
}

func newTable(r *Recognised) *table {
	t := &table{Recognised: r, now: r.snap.Taken, of: make([]*instance, len(r.forest.procs))}
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
	slices.SortFunc(t.instances, func(a, b *instance) int { return int(a.rootNode - b.rootNode) })
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
			over.rec, over.mainNode, over.role = rec, node, rec.Role
		case over.role == RoleGateway && rec.Role == RoleGateway:
			over.rec, over.mainNode = rec, node // the inner layer is the one that has the children
		}
		return
	}
	in := &instance{table: t, role: rec.Role, rootNode: node, mainNode: node, rec: rec}
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
		if slices.ContainsFunc(in.owned, func(s *instance) bool { w, _ := s.wire(); return w != dead }) {
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
		if best := in.above.mainNode; has[at] > has[best] {
			in.above.mainNode = at
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

func (in *instance) root() *scan.Process { return in.table.forest.procs[in.rootNode] }

func (in *instance) main() *scan.Process { return in.table.forest.procs[in.mainNode] }

// age is how long an instance's root has lived; false when that is not known.
func (in *instance) age() (time.Duration, bool) {
	started := in.root().Started
	if started.IsZero() || in.table.now.IsZero() {
		return 0, false
	}
	return max(0, in.table.now.Sub(started)), true
}

func (in *instance) pids() []int {
	out := make([]int, len(in.members))
	for i, m := range in.members {
		out[i] = in.table.forest.procs[m].PID
	}
	slices.Sort(out)
	return out
}

func (in *instance) rss() (sum int64) {
	for _, m := range in.members {
		sum += in.table.forest.procs[m].RSS()
	}
	return sum
}

func (in *instance) swap() (sum int64) {
	for _, m := range in.members {
		sum += in.table.forest.procs[m].Swap()
	}
	return sum
}

// listen returns the sockets on which any process of the instance accepts connections, also a worker
// that nobody knows, but without those of known helpers: a browser's debugging port serves its
// server, not clients.
func (in *instance) listen() []string {
	var out []string
	for _, m := range in.members {
		if in.table.recs[m].role() != RoleHelper || in.role == RoleHelper {
			out = append(out, in.table.forest.procs[m].Listen...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// inbound counts the connections to the instance's sockets; false when nobody looked. One to each known
// helper is left out, since it is the server's own: it drives its browser through the debugging port.
func (in *instance) inbound() (sum int, known bool) {
	for _, m := range in.members {
		if c := in.table.forest.procs[m].InboundConnections; c != nil {
			n := *c
			if in.table.recs[m].role() == RoleHelper && in.role != RoleHelper {
				n = max(0, n-1)
			}
			sum, known = sum+n, true
		}
	}
	return sum, known
}

// silence is how long that connection to the instance's sockets has received nothing which has been
// silent for the longest time; false when that is not known of all connections.
func (in *instance) silence() (longest time.Duration, known bool) {
	known = true
	for _, m := range in.members {
		p := in.table.forest.procs[m]
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
		if c := a.root().Started.Compare(b.root().Started); c != 0 {
			return c
		}
		return int(a.rootNode - b.rootNode)
	})
}

// size is what an instance holds of memory and swap: leaks sit in swap.
func (in *instance) size() int64 { return in.rss() + in.swap() }

// marked tells that a field of one of the instance's processes could not be read.
func (in *instance) marked(field string) bool {
	return slices.ContainsFunc(in.members, func(m int32) bool { return slices.Contains(in.table.proc(m).Unreadable, field) })
}

// version is the version of the program that an instance runs: that of its installed package when
// somebody looked, else the one that a launcher was told; "" when neither is known.
func (in *instance) version() string {
	if v := in.main().Version; v != "" {
		return v
	}
	for _, m := range in.members {
		if rec := in.table.recs[m]; rec != nil && rec.Command.Version != "" && rec.Command.Version[0] >= '0' && rec.Command.Version[0] <= '9' {
			return rec.Command.Version
		}
	}
	return ""
}

// port is the port on which a gateway listens: seen, or told by its flags; else "".
func (in *instance) port() string {
	for _, l := range in.listen() {
		if rest, ok := strings.CutPrefix(l, "tcp:"); ok {
			return rest[strings.LastIndexByte(rest, ':')+1:]
		}
	}
	port, _ := in.rec.Command.Flag("--port")
	if _, err := strconv.Atoi(port); err != nil {
		return ""
	}
	return port
}

// launchersOf returns the launchers of an instance that are processes or words of it.
func (in *instance) launchers() []string {
	seen := map[string]bool{}
	for _, m := range in.members {
		if rec := in.table.recs[m]; rec.role() == RoleLauncher {
			for _, l := range rec.Command.Launchers {
				seen[l] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// outOfReach tells that a process belongs to another user, and that the one who looks is not root.
func (r *Recognised) outOfReach(p *scan.Process) bool {
	me := r.snap.Host.UID
	return me != nil && *me != 0 && p.UID != nil && *p.UID != *me
}

func commandLine(p *scan.Process) string {
	switch {
	case len(p.Args) > 0:
		return strings.Join(p.Args, " ")
	case p.Cmdline != "":
		return p.Cmdline
	}
	return "[" + p.Name + "]"
}
