package rules

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"mcpdoctor/rules/command"
	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

// Options say how a table is judged.
type Options struct {
	// Baseline is an earlier look at the same host; nil for none. It makes growth visible.
	Baseline *scan.Snapshot

	// Only are the IDs of the rules whose findings are returned; all when empty. Every rule runs all the
	// same, since an instance that one rule has claimed is left alone by the others.
	Only []string

	// OlderThan leaves out subjects that are younger, or whose age is unknown.
	OlderThan time.Duration

	// Settled are processes whose stdin was already closed at an earlier look, several seconds ago, so
	// that they are not just shutting down. See [Questions.Settling].
	Settled map[scan.ID]bool
}

// Judge groups the processes into instances, finds their owners and applies every rule.
func Judge(r *process.Recognised, o Options) *Report {
	j := newJudgement(r, o)
	out := &Report{
		Schema: ReportSchema, Kind: ReportKind, Taken: r.Snapshot.Taken, Host: r.Snapshot.Host,
		Findings: []Finding{}, Servers: []Server{}, Clients: []Owning{}, Gateways: []Owning{},
		Problems: append([]string{}, r.Snapshot.Problems...),
	}
	for _, rule := range registry {
		if rule.Probe {
			continue
		}
		j.rule = rule
		for _, f := range rule.check(j) {
			if len(o.Only) == 0 || slices.Contains(o.Only, rule.ID) {
				out.Findings = append(out.Findings, f)
			}
		}
	}
	slices.SortStableFunc(out.Findings, WorseFirst)
	if missing := j.incomparable(); missing != "" {
		out.Problems = append(out.Problems, missing)
	}
	out.Parentless = j.parentless()
	for _, d := range j.decisions {
		if rule := Lookup(d.because); rule != nil { // claimed by a rule whose finding was not asked for
			d.because += ": " + rule.Title
		}
	}
	for _, in := range j.Instances {
		switch in.Role {
		case process.RoleServer:
			out.Servers = append(out.Servers, j.server(in))
		case process.RoleClient:
			out.Clients = append(out.Clients, j.owning(in))
		case process.RoleGateway:
			out.Gateways = append(out.Gateways, j.owning(in))
		}
	}
	out.Summary = j.summarise(out)
	return out
}

// judgement is a table while the rules work on it, with the verdicts that they have reached.
type judgement struct {
	*process.Table
	Options
	decisions map[*process.Instance]*decision // of the instances that a rule has claimed
	rule      *Rule                           // the one that is checked now
}

func newJudgement(r *process.Recognised, o Options) *judgement {
	return &judgement{Table: process.NewTable(r), Options: o, decisions: map[*process.Instance]*decision{}}
}

func WorseFirst(a, b Finding) int {
	return cmp.Or(
		b.Severity.Rank()-a.Severity.Rank(),
		cmp.Compare(b.RSSBytes, a.RSSBytes),
		strings.Compare(a.Rule, b.Rule),
		slices.Compare(a.PIDs, b.PIDs),
	)
}

// claim is what a rule found; [judgement.finding] makes a Finding of it.
type claim struct {
	severity   Severity
	confidence process.Confidence
	title      string
	evidence   []string
	key        string // distinguishes this leak from others of the rule, in every run

	subjects []*process.Instance // what the finding is about
	mainOnly bool                // only their main processes are subjects, as for a runaway parent
	others   []*process.Instance // shown, but no subjects
	parent   *process.Instance   // the culprit; nil for none

	safe      []*process.Instance
	onRequest []*process.Instance
	remedy    Remedy
}

// finding turns a claim into a Finding and sets the verdict of its subjects.
func (j *judgement) finding(c claim) Finding {
	f := Finding{
		ID: j.rule.ID + "-" + Hash(c.key), Rule: j.rule.ID, Severity: c.severity, Confidence: c.confidence, Title: c.title,
		Evidence: c.evidence, Instances: len(c.subjects), Remedy: c.remedy,
		PIDs: []int{}, Processes: []Row{}, Reap: Reap{Safe: []int{}, OnRequest: []int{}},
	}
	if c.parent != nil {
		f.ParentPID = c.parent.Main().PID
	}
	shown := map[*process.Instance]bool{}
	for _, in := range c.subjects {
		if c.mainOnly {
			f.PIDs = append(f.PIDs, in.Main().PID)
		} else {
			f.PIDs = append(f.PIDs, in.PIDs()...)
		}
		shown[in] = true
		if d := j.decisions[in]; d != nil && d.because == j.rule.ID { // claimed by this rule
			d.because += ": " + c.title
			if c.severity == Error && c.confidence != process.Possible {
				d.verdict = Leaked
			}
		}
	}
	for _, ins := range [][]*process.Instance{c.others, c.safe, c.onRequest} {
		for _, in := range ins {
			shown[in] = true
		}
	}
	if c.parent != nil {
		shown[c.parent] = true
	}
	pss, measured := int64(0), true
	for in := range shown {
		for _, m := range in.Members {
			f.Processes = append(f.Processes, NewRow(in, m))
			if in == c.parent {
				continue
			}
			f.RSSBytes += j.Process(m).RSS()
			if p := j.Process(m); p.PSSBytes != nil {
				pss += *p.PSSBytes
			} else {
				measured = false
			}
		}
	}
	if measured && pss > 0 {
		f.PSSBytes = pss
		f.Evidence = append(f.Evidence, fmt.Sprintf("terminating them frees %s (PSS)", format.Bytes(pss)))
	}
	foreign := 0
	for _, in := range c.safe {
		foreign += j.giveUp(in, &f.Reap, true)
	}
	for _, in := range c.onRequest {
		foreign += j.giveUp(in, &f.Reap, false)
	}
	if foreign > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s %s to another user: only that user or root can terminate %s",
			format.Count(foreign, "process"), format.Plural(foreign, "belongs", "belong"), format.Plural(foreign, "it", "them")))
	}
	slices.Sort(f.PIDs)
	slices.Sort(f.Reap.Safe)
	slices.Sort(f.Reap.OnRequest)
	slices.SortFunc(f.Processes, func(a, b Row) int { return a.PID - b.PID })
	return f
}

// giveUp adds the processes of an instance to what may be reaped, and returns how many belong to another
// user and were left out.
func (j *judgement) giveUp(in *process.Instance, r *Reap, safe bool) (foreign int) {
	for _, m := range in.Members {
		p := j.Process(m)
		switch {
		case p.PID <= 1 || p.State == "Z":
		case j.OtherUser(p):
			foreign++
		case safe && (j.Recognitions[m] != nil || j.renders(in, p)):
			r.Safe = append(r.Safe, p.PID)
		default:
			// An unknown process below a server (a build, a shell of the user's) is never safe, even when
			// its server is.
			r.OnRequest = append(r.OnRequest, p.PID)
		}
	}
	return foreign
}

// renders reports whether an unrecognised process is part of a browser: the same program.
func (j *judgement) renders(in *process.Instance, p *scan.Process) bool {
	return in.Role == process.RoleHelper && command.SameProgram(in.Recognition.Command, command.Parse(p, j.Snapshot.Host.OS))
}

// NewRow describes one process of an instance.
func NewRow(in *process.Instance, node int32) Row {
	p, rec := in.Table.Process(node), in.Table.Recognitions[node]
	row := Row{PID: p.PID, PPID: p.PPID, Started: p.Started, Command: process.CommandLine(p), Argv: p.Args, RSSBytes: p.RSSBytes, Server: in.Name}
	if !p.Started.IsZero() {
		age := int64(max(0, in.Table.Now.Sub(p.Started)).Seconds())
		row.AgeSeconds = &age
	}
	switch {
	case p.State == "Z":
		row.Role = "zombie"
	case rec != nil:
		row.Role = string(rec.Role)
	case in.Role == process.RoleServer || in.Role == process.RoleHelper:
		row.Role = string(process.RoleHelper)
	}
	if in.Role == process.RoleClient || in.Role == process.RoleGateway {
		row.Server = ""
	}
	return row
}

// parentless reports whether most rows lack a parent PID, as in the text of `ps aux`.
func (j *judgement) parentless() bool {
	unknown := 0
	for _, l := range j.Forest.ParentStates {
		if l == process.ParentUnknown {
			unknown++
		}
	}
	return unknown > 0 && unknown*2 >= len(j.Forest.ParentStates)
}

// claim marks the instances as explained by the current rule, so that later rules leave them alone, and
// returns those that are at least as old as OlderThan.
func (j *judgement) claim(ins []*process.Instance) []*process.Instance {
	for _, in := range ins {
		if j.decisions[in] == nil && in.Role != process.RoleClient {
			j.decide(in, Suspect, j.rule.ID)
		}
	}
	return j.oldEnough(ins)
}

// oldEnough returns the instances that are at least as old as OlderThan.
func (j *judgement) oldEnough(ins []*process.Instance) []*process.Instance {
	if j.OlderThan <= 0 {
		return ins
	}
	var out []*process.Instance
	for _, in := range ins {
		if age, ok := in.Age(); ok && age >= j.OlderThan {
			out = append(out, in)
		}
	}
	return out
}

func (j *judgement) server(in *process.Instance) Server {
	d := j.decision(in)
	s := Server{
		Server: in.Name, PIDs: in.PIDs(), RootPID: in.Root().PID, Owner: in.Owner,
		RecognisedBy: string(in.Recognition.Confidence) + ", by " + in.Recognition.By, Started: in.Root().Started,
		RSSBytes: in.RSS(), SwapBytes: in.Swap(), Listen: in.Listen(), Mode: process.ServingMode(*in.Recognition, in.Version()), Verdict: d.verdict, Because: d.because,
	}
	if age, ok := in.Age(); ok {
		s.AgeSeconds = int64(age.Seconds())
	}
	return s
}

// decision is the verdict on one instance, and why it is so.
type decision struct {
	verdict Verdict
	because string // the ID of the rule until that has written its finding
}

func (j *judgement) decide(in *process.Instance, v Verdict, because string) {
	j.decisions[in] = &decision{v, because}
}

// decision returns the verdict of the rule that claimed the instance, or why none did.
func (j *judgement) decision(in *process.Instance) *decision {
	if d := j.decisions[in]; d != nil {
		return d
	}
	d := new(decision)
	w, holders := in.Stdin()
	switch in.Owner.Kind {
	case process.OwnerService:
		d.verdict, d.because = Supervised, "kept by "+in.Owner.String()
	case process.OwnerClient, process.OwnerGateway:
		d.verdict, d.because = InUse, fmt.Sprintf("its %s %s is running", in.Owner.Kind, in.Owner.String())
		if w == process.StdinOpen && slices.Contains(holders, in.Owner.PID) {
			d.because = fmt.Sprintf("its %s %s holds its stdin", in.Owner.Kind, in.Owner.String())
		} else if w == process.StdinOpen {
			d.because += " and its stdin is open"
		}
	case process.OwnerTerminal:
		d.verdict, d.because = InUse, "started by hand from "+in.Owner.String()
	case process.OwnerNobody:
		d.verdict = Unknown
		switch {
		case w == process.StdinOpen && len(holders) > 0:
			d.verdict, d.because = InUse, "adopted by "+in.Owner.String()+", but pid "+format.PIDs(holders, 3)+" "+format.Plural(len(holders), "holds", "hold")+" its stdin"
		case w == process.StdinOpen:
			d.because = "adopted by " + in.Owner.String() + ", but its stdin is open"
		case len(in.Listen()) > 0:
			d.because = "listens on " + format.List(in.Listen(), 2) + " and runs under " + in.Owner.String() + ": probably a daemon"
		case w == process.StdinNoPipe:
			d.because = "runs under " + in.Owner.String() + " without a pipe at its stdin: started as a daemon"
		case w == process.StdinUnreadable:
			d.because = "runs under " + in.Owner.String() + "; its stdin is unreadable"
		default:
			d.because = "runs under " + in.Owner.String() + "; whether it is in use cannot be seen"
		}
	default:
		d.verdict, d.because = Unknown, "its parent is no known MCP client"
		if in.Owner.PID != 0 && in.Owner.Name != "" {
			d.because = "its parent " + in.Owner.String() + " is running"
		}
		if w == process.StdinOpen {
			d.verdict, d.because = InUse, d.because+", and its stdin is open"
		}
	}
	return d
}

func (j *judgement) owning(in *process.Instance) Owning {
	o := Owning{Name: in.Name, PID: in.Main().PID, Started: in.Root().Started, RSSBytes: in.RSS(), Listen: in.Listen(), Version: in.Version(), Servers: len(in.Owned)}
	if in.Role == process.RoleGateway {
		o.Mode = process.ServingMode(*in.Recognition, o.Version)
	}
	if age, ok := in.Age(); ok {
		o.AgeSeconds = int64(age.Seconds())
	}
	return o
}

func (j *judgement) summarise(r *Report) Summary {
	s := Summary{Processes: len(j.Forest.Processes), Clients: len(r.Clients), Gateways: len(r.Gateways), Servers: len(r.Servers)}
	for _, in := range j.Instances {
		if in.Role == process.RoleServer || in.Role == process.RoleGateway {
			s.RSSBytes += in.RSS()
			s.SwapBytes += in.Swap()
		}
	}
	for _, p := range j.Forest.Processes {
		if slices.ContainsFunc(p.Unreadable, isField) {
			s.Unreadable++
		}
	}
	safe := map[int32]bool{}
	for _, f := range r.Findings {
		switch f.Severity {
		case Error:
			s.Findings.Error++
		case Warning:
			s.Findings.Warning++
		case Info:
			s.Findings.Info++
		}
		for _, pid := range f.Reap.Safe {
			safe[j.Forest.Node(pid)] = true
		}
	}
	instances := map[*process.Instance]bool{}
	for node := range safe {
		s.Reapable.Processes++
		s.Reapable.RSSBytes += j.Process(node).RSS()
		instances[j.InstanceOf[node]] = true
	}
	s.Reapable.Instances = len(instances)
	return s
}

// isField reports whether an entry of Unreadable is a field, and not a question that stayed open (see
// scan.Examine).
func isField(unreadable string) bool { return unreadable != "holders" && unreadable != "service" }

// Hash shortens a key to eight hexadecimal digits.
func Hash(key string) string {
	h := fnv.New32a()
	h.Write([]byte(key)) //nolint:errcheck // a hash never fails
	return fmt.Sprintf("%08x", h.Sum32())
}
