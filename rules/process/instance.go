package process

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpdoctor/rules/command"
	"mcpdoctor/scan"
)

// instance is one running server with its launchers and helpers: what is counted, shown and
// reaped. Gateways and clients are instances too, of their own role, and so are browsers that no
// server is above of.
type Instance struct {
	Table *Table

	Role     Role // RoleServer, RoleGateway, RoleClient or RoleHelper
	RootNode int32
	MainNode int32   // the process that does the work; the root while only launchers are left
	Members  []int32 // the root first, parents before children

	Name        string // as shown
	Identity    string // what copies of it have in common
	Recognition *Recognition

	Service *scan.Service // the job of a service manager that it is; nil for none
	Owner   Owner
	OwnedBy *Instance   // the client, gateway or server that owns it; nil when nobody is known
	Owned   []*Instance // the servers that it owns itself, ascending by their root's PID
}

// table is a recognised process table, grouped into instances, on which the rules work.
type Table struct {
	*Recognised
	Now        time.Time
	Instances  []*Instance // ascending by their root's PID
	InstanceOf []*Instance // by node
	Copies     map[string][]*Instance
	services   map[int32]*scan.Service // by the node of their main process
	looked     bool                    // somebody looked at the stdin of processes
}

func NewTable(r *Recognised) *Table {
	t := &Table{Recognised: r, Now: r.Snapshot.Taken, InstanceOf: make([]*Instance, len(r.Forest.Processes))}
	t.Copies, t.services = map[string][]*Instance{}, map[int32]*scan.Service{}
	for i, s := range r.Snapshot.Host.Services {
		if at := r.Forest.Node(s.MainPID); at != None && s.MainPID > 0 {
			t.services[at] = &r.Snapshot.Host.Services[i]
		}
	}
	t.looked = slices.ContainsFunc(r.Forest.Processes, func(p *scan.Process) bool { return p.Stdin != nil || slices.Contains(p.Unreadable, "stdin") })
	r.Forest.Walk(t.place)
	for _, in := range t.Instances {
		t.name(in)
		in.Service = t.service(in)
		t.Copies[in.Identity] = append(t.Copies[in.Identity], in)
	}
	slices.SortFunc(t.Instances, func(a, b *Instance) int { return int(a.RootNode - b.RootNode) })
	for _, in := range t.Instances {
		in.Owner = t.owner(in)
		in.OwnedBy = t.ownedBy(in)
		if in.OwnedBy != nil && in.Role == RoleServer {
			in.OwnedBy.Owned = append(in.OwnedBy.Owned, in)
		}
	}
	t.demote()
	t.findWorkers()
	return t
}

// place puts one process into an instance, or begins one with it. Its parent is placed already.
func (t *Table) place(node int32) {
	var over *Instance
	var overRec *Recognition
	if up := t.Forest.Parent[node]; up != None {
		over, overRec = t.InstanceOf[up], t.Recognitions[up]
	}
	rec := t.Recognitions[node]
	if rec == nil {
		// What a server started itself is a helper; what a client or gateway started is not.
		if over != nil && (over.Role == RoleServer || over.Role == RoleHelper) && overRec.RoleOrNone() != RoleLauncher && t.Forest.Processes[node].State != "Z" {
			t.join(over, node)
		}
		return
	}
	if rec.By == byDescent && !OnPipe(t.Forest.Processes[node]) {
		t.Recognitions[node] = nil // the closer look has shown that it does not speak over stdin
		return
	}
	if over != nil && t.joins(over, t.Forest.Parent[node], rec) {
		t.join(over, node)
		switch {
		case rec.Role == RoleLauncher || rec.Role == RoleHelper:
		case over.Recognition.Role == RoleLauncher || overRec.RoleOrNone() == RoleLauncher && command.SameProgram(overRec.Command, rec.Command):
			over.Recognition, over.MainNode, over.Role = rec, node, rec.Role
		case over.Role == RoleGateway && rec.Role == RoleGateway:
			over.Recognition, over.MainNode = rec, node // the inner layer is the one that has the children
		}
		return
	}
	in := &Instance{Table: t, Role: rec.Role, RootNode: node, MainNode: node, Recognition: rec}
	if rec.Role == RoleLauncher {
		in.Role = RoleServer
		if rec.Target != "" {
			in.Role = rec.Target
		}
	}
	t.join(in, node)
	t.Instances = append(t.Instances, in)
}

// demote takes back that a program is a client when it was only called one for its children, and
// all of these have lost their stdin: it may as well have adopted them (prctl(2),
// PR_SET_CHILD_SUBREAPER).
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

// findWorkers makes that process of each client the main one which has the most servers: a desktop
// application is many processes, and one of them is the client.
func (t *Table) findWorkers() {
	has := map[int32]int{}
	for _, in := range t.Instances {
		if in.OwnedBy == nil || in.OwnedBy.Role != RoleClient {
			continue
		}
		at := t.Forest.Node(in.Owner.PID)
		has[at]++
		if best := in.OwnedBy.MainNode; has[at] > has[best] {
			in.OwnedBy.MainNode = at
		}
	}
}

func (t *Table) join(in *Instance, node int32) {
	in.Members = append(in.Members, node)
	t.InstanceOf[node] = in
}

// joins decides whether a process belongs to the instance of its parent.
func (t *Table) joins(over *Instance, up int32, child *Recognition) bool {
	switch parent := t.Recognitions[up]; {
	case parent == nil:
		return false // below a stranger that a server started
	case parent.Role == RoleLauncher && t.IsAdopter(up): // tini -s: not all of its children are its own
		return command.SameProgram(parent.Command, child.Command)
	case parent.Role == RoleLauncher:
		return true // whatever a launcher started is what it was started for
	case child.Role == RoleHelper:
		return over.Role == RoleServer || over.Role == RoleHelper
	case over.Role == RoleHelper:
		return false // who was started from inside a helper, an agent or its server, is somebody
	case over.Role == RoleClient, over.Role == RoleGateway:
		if t.Process(up).PID == 1 && t.Recognitions[up].Command.Identity() != child.Command.Identity() {
			return false // the script that became the first process of a container had started another
		}
		return child.Role == over.Role && child.Name == over.Recognition.Name // a program in two layers
	}
	// A server below a server is a worker of its own kind, or a server that it uses as a client.
	return command.SameProgram(t.Recognitions[up].Command, child.Command)
}

// role is the role of a process that may be nobody.
func (rec *Recognition) RoleOrNone() Role {
	if rec == nil {
		return ""
	}
	return rec.Role
}

func (t *Table) name(in *Instance) {
	in.Name = in.Recognition.Name
	in.Identity = in.Recognition.Command.Identity()
	// The launcher often names the package, the worker only its script: `npm exec
	// @azure-devops/mcp` over `node .../dist/index.js`. Copies may have lost either, so the
	// identity is always that of the main process.
	if in.Name == "" {
		in.Name = in.Recognition.Command.Program
	}
	const longest = 60 // a name stands in titles and columns, and anybody may give one
	if len(in.Name) > longest {
		in.Name = strings.ToValidUTF8(in.Name[:longest], "") + "..."
	}
}

// ownedBy returns the instance that in's owner is.
func (t *Table) ownedBy(in *Instance) *Instance {
	if in.Owner.Kind != OwnerClient && in.Owner.Kind != OwnerGateway {
		return nil
	}
	if at := t.Forest.Node(in.Owner.PID); at != None {
		return t.InstanceOf[at]
	}
	return nil
}

// service returns the job of a service manager that in is: one of its processes is the one that
// the manager watches. Being in a unit's cgroup is not enough, since orphans inherit it.
func (t *Table) service(in *Instance) *scan.Service {
	for _, m := range in.Members {
		if s := t.services[m]; s != nil {
			return s
		}
	}
	return nil
}

// with returns the instances of a role, ascending by their root's PID.
func (t *Table) WithRole(role Role) []*Instance {
	var out []*Instance
	for _, in := range t.Instances {
		if in.Role == role {
			out = append(out, in)
		}
	}
	return out
}

func (t *Table) Process(node int32) *scan.Process { return t.Forest.Processes[node] }

func (in *Instance) Root() *scan.Process { return in.Table.Forest.Processes[in.RootNode] }

func (in *Instance) Main() *scan.Process { return in.Table.Forest.Processes[in.MainNode] }

// age is how long an instance's root has lived; false when that is not known.
func (in *Instance) Age() (time.Duration, bool) {
	started := in.Root().Started
	if started.IsZero() || in.Table.Now.IsZero() {
		return 0, false
	}
	return max(0, in.Table.Now.Sub(started)), true
}

func (in *Instance) PIDs() []int {
	out := make([]int, len(in.Members))
	for i, m := range in.Members {
		out[i] = in.Table.Forest.Processes[m].PID
	}
	slices.Sort(out)
	return out
}

func (in *Instance) RSS() (sum int64) {
	for _, m := range in.Members {
		sum += in.Table.Forest.Processes[m].RSS()
	}
	return sum
}

func (in *Instance) Swap() (sum int64) {
	for _, m := range in.Members {
		sum += in.Table.Forest.Processes[m].Swap()
	}
	return sum
}

// listen returns the sockets on which any process of the instance accepts connections, also a worker
// that nobody knows, but without those of known helpers: a browser's debugging port serves its
// server, not clients.
func (in *Instance) Listen() []string {
	var out []string
	for _, m := range in.Members {
		if in.Table.Recognitions[m].RoleOrNone() != RoleHelper || in.Role == RoleHelper {
			out = append(out, in.Table.Forest.Processes[m].Listen...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// inbound counts the connections to the instance's sockets; false when nobody looked. One to each known
// helper is left out, since it is the server's own: it drives its browser through the debugging port.
func (in *Instance) Inbound() (sum int, known bool) {
	for _, m := range in.Members {
		if c := in.Table.Forest.Processes[m].InboundConnections; c != nil {
			n := *c
			if in.Table.Recognitions[m].RoleOrNone() == RoleHelper && in.Role != RoleHelper {
				n = max(0, n-1)
			}
			sum, known = sum+n, true
		}
	}
	return sum, known
}

// silence is how long that connection to the instance's sockets has received nothing which has been
// silent for the longest time; false when that is not known of all connections.
func (in *Instance) InboundSilence() (longest time.Duration, known bool) {
	known = true
	for _, m := range in.Members {
		p := in.Table.Forest.Processes[m]
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
func (t *Table) SortByStart(ins []*Instance) {
	slices.SortStableFunc(ins, func(a, b *Instance) int {
		if c := a.Root().Started.Compare(b.Root().Started); c != 0 {
			return c
		}
		return int(a.RootNode - b.RootNode)
	})
}

// size is what an instance holds of memory and swap: leaks sit in swap.
func (in *Instance) Size() int64 { return in.RSS() + in.Swap() }

// marked tells that a field of one of the instance's processes could not be read.
func (in *Instance) Unreadable(field string) bool {
	return slices.ContainsFunc(in.Members, func(m int32) bool { return slices.Contains(in.Table.Process(m).Unreadable, field) })
}

// version is the version of the program that an instance runs: that of its installed package when
// somebody looked, else the one that a launcher was told; "" when neither is known.
func (in *Instance) Version() string {
	if v := in.Main().Version; v != "" {
		return v
	}
	for _, m := range in.Members {
		if rec := in.Table.Recognitions[m]; rec != nil && rec.Command.Version != "" && rec.Command.Version[0] >= '0' && rec.Command.Version[0] <= '9' {
			return rec.Command.Version
		}
	}
	return ""
}

// port is the port on which a gateway listens: seen, or told by its flags; else "".
func (in *Instance) Port() string {
	for _, l := range in.Listen() {
		if rest, ok := strings.CutPrefix(l, "tcp:"); ok {
			return rest[strings.LastIndexByte(rest, ':')+1:]
		}
	}
	port, _ := in.Recognition.Command.Flag("--port")
	if _, err := strconv.Atoi(port); err != nil {
		return ""
	}
	return port
}

// launchersOf returns the launchers of an instance that are processes or words of it.
func (in *Instance) Launchers() []string {
	seen := map[string]bool{}
	for _, m := range in.Members {
		if rec := in.Table.Recognitions[m]; rec.RoleOrNone() == RoleLauncher {
			for _, l := range rec.Command.Launchers {
				seen[l] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// outOfReach tells that a process belongs to another user, and that the one who looks is not root.
func (r *Recognised) OtherUser(p *scan.Process) bool {
	me := r.Snapshot.Host.UID
	return me != nil && *me != 0 && p.UID != nil && *p.UID != *me
}

func CommandLine(p *scan.Process) string {
	switch {
	case len(p.Args) > 0:
		return strings.Join(p.Args, " ")
	case p.Cmdline != "":
		return p.Cmdline
	}
	return "[" + p.Name + "]"
}
