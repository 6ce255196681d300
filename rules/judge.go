package rules

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"mcpdoctor/scan"
)

// Options are what a judgement may be told besides the table.
type Options struct {
	// Baseline is an earlier look at the same host; nil for none. It makes growth visible.
	Baseline *scan.Snapshot

	// Only are the IDs of the rules whose findings are wanted; all when empty. Every rule is
	// judged all the same, since what one explains another leaves alone.
	Only []string

	// OlderThan leaves out subjects that are younger, or whose age is not known.
	OlderThan time.Duration

	// Settled are processes whose stdin was found dead by an earlier look already, several seconds
	// ago: they are not just shutting down. See [Doubts].
	Settled map[scan.ID]bool
}

// Judge groups the processes into instances, finds their owners and applies every rule.
func Judge(r *Recognised, o Options) *Report {
	t := newJudgement(r, o)
	out := &Report{
		Schema: ReportSchema, Kind: ReportKind, Taken: r.snap.Taken, Host: r.snap.Host,
		Findings: []Finding{}, Servers: []Server{}, Clients: []Owning{}, Gateways: []Owning{},
		Problems: append([]string{}, r.snap.Problems...),
	}
	for _, rule := range registry {
		if rule.Probe {
			continue
		}
		t.rule = rule
		for _, f := range rule.check(t) {
			if len(o.Only) == 0 || slices.Contains(o.Only, rule.ID) {
				out.Findings = append(out.Findings, f)
			}
		}
	}
	slices.SortStableFunc(out.Findings, worseFirst)
	if missing := t.incomparable(); missing != "" {
		out.Problems = append(out.Problems, missing)
	}
	out.Parentless = t.parentless()
	for _, d := range t.decisions {
		if rule := Lookup(d.because); rule != nil { // claimed by a rule whose finding was not asked for
			d.because += ": " + rule.Title
		}
	}
	for _, in := range t.instances {
		switch in.role {
		case RoleServer:
			out.Servers = append(out.Servers, t.server(in))
		case RoleClient:
			out.Clients = append(out.Clients, t.owning(in))
		case RoleGateway:
			out.Gateways = append(out.Gateways, t.owning(in))
		}
	}
	out.Summary = t.summarise(out)
	return out
}

// judgement is a table while the rules work on it, with the verdicts that they have reached.
type judgement struct {
	*table
	Options
	decisions map[*instance]*decision // of the instances that a rule has claimed
	rule      *Rule                   // the one that is checked now
}

func newJudgement(r *Recognised, o Options) *judgement {
	return &judgement{table: newTable(r), Options: o, decisions: map[*instance]*decision{}}
}

func worseFirst(a, b Finding) int {
	return cmp.Or(
		b.Severity.Rank()-a.Severity.Rank(),
		cmp.Compare(b.RSSBytes, a.RSSBytes),
		strings.Compare(a.Rule, b.Rule),
		slices.Compare(a.PIDs, b.PIDs),
	)
}

// claim is what a rule has to say; [table.finding] makes a Finding of it.
type claim struct {
	severity   Severity
	confidence Confidence
	title      string
	evidence   []string
	key        string // what tells this leak from others of the rule, for ever

	subjects []*instance // what the finding is about, in the sense of the rule
	mainOnly bool        // of them only the main process, as for a parent that runs away
	others   []*instance // shown with it, without being subjects
	parent   *instance   // the culprit; nil for none

	safe      []*instance
	onRequest []*instance
	remedy    Remedy
}

// finding turns a claim into a Finding, and gives its subjects their verdict.
func (t *judgement) finding(c claim) Finding {
	f := Finding{
		ID: t.rule.ID + "-" + hash(c.key), Rule: t.rule.ID, Severity: c.severity, Confidence: c.confidence, Title: c.title,
		Evidence: c.evidence, Instances: len(c.subjects), Remedy: c.remedy,
		PIDs: []int{}, Processes: []Row{}, Reap: Reap{Safe: []int{}, OnRequest: []int{}},
	}
	if c.parent != nil {
		f.ParentPID = c.parent.main().PID
	}
	shown := map[*instance]bool{}
	for _, in := range c.subjects {
		if c.mainOnly {
			f.PIDs = append(f.PIDs, in.main().PID)
		} else {
			f.PIDs = append(f.PIDs, in.pids()...)
		}
		shown[in] = true
		if d := t.decisions[in]; d != nil && d.because == t.rule.ID { // claimed by this rule
			d.because += ": " + c.title
			if c.severity == Error && c.confidence != Possible {
				d.verdict = Leaked
			}
		}
	}
	for _, ins := range [][]*instance{c.others, c.safe, c.onRequest} {
		for _, in := range ins {
			shown[in] = true
		}
	}
	if c.parent != nil {
		shown[c.parent] = true
	}
	pss, measured := int64(0), true
	for in := range shown {
		for _, m := range in.members {
			f.Processes = append(f.Processes, newRow(in, m))
			if in == c.parent {
				continue
			}
			f.RSSBytes += t.proc(m).RSS()
			if p := t.proc(m); p.PSSBytes != nil {
				pss += *p.PSSBytes
			} else {
				measured = false
			}
		}
	}
	if measured && pss > 0 {
		f.PSSBytes = pss
		f.Evidence = append(f.Evidence, fmt.Sprintf("their memory without what they share with others (PSS) is %s: so much comes back", Bytes(pss)))
	}
	foreign := 0
	for _, in := range c.safe {
		foreign += t.giveUp(in, &f.Reap, true)
	}
	for _, in := range c.onRequest {
		foreign += t.giveUp(in, &f.Reap, false)
	}
	if foreign > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s %s to another user: only that user, or root, can end %s",
			Count(foreign, "process"), be(foreign, "belongs", "belong"), be(foreign, "it", "them")))
	}
	slices.Sort(f.PIDs)
	slices.Sort(f.Reap.Safe)
	slices.Sort(f.Reap.OnRequest)
	slices.SortFunc(f.Processes, func(a, b Row) int { return a.PID - b.PID })
	return f
}

// giveUp adds the processes of an instance to what may be reaped, and returns how many were kept
// back because they are another user's.
func (t *judgement) giveUp(in *instance, r *Reap, safe bool) (foreign int) {
	for _, m := range in.members {
		p := t.proc(m)
		switch {
		case p.PID <= 1 || p.State == "Z":
		case t.outOfReach(p):
			foreign++
		case safe && (t.recs[m] != nil || t.renders(in, p)):
			r.Safe = append(r.Safe, p.PID)
		default:
			// A process that a server started and that we do not know (a build, a shell of the
			// user's) is not ended unasked, even when its server is.
			r.OnRequest = append(r.OnRequest, p.PID)
		}
	}
	return foreign
}

// renders tells that a process that nobody knows is a browser's own: a part of its program.
func (t *judgement) renders(in *instance, p *scan.Process) bool {
	return in.role == RoleHelper && sameProgram(in.rec.Command, Resolve(p, t.snap.Host.OS))
}

func newRow(in *instance, node int32) Row {
	t := in.table
	p, rec := t.proc(node), t.recs[node]
	row := Row{PID: p.PID, PPID: p.PPID, Started: p.Started, Command: commandLine(p), RSSBytes: p.RSSBytes, Server: in.name}
	if !p.Started.IsZero() {
		age := int64(max(0, t.now.Sub(p.Started)).Seconds())
		row.AgeSeconds = &age
	}
	switch {
	case p.State == "Z":
		row.Role = "zombie"
	case rec != nil:
		row.Role = string(rec.Role)
	case in.role == RoleServer || in.role == RoleHelper:
		row.Role = string(RoleHelper)
	}
	if in.role == RoleClient || in.role == RoleGateway {
		row.Server = ""
	}
	return row
}

// parentless tells that the table does not say who started whom, as that of `ps aux`.
func (t *judgement) parentless() bool {
	untoldOnes := 0
	for _, l := range t.forest.lineage {
		if l == untold {
			untoldOnes++
		}
	}
	return untoldOnes > 0 && untoldOnes*2 >= len(t.forest.lineage)
}

// take marks instances as explained by a rule, so that no later one takes them for something else,
// and returns those that are at least as old as was asked for.
func (t *judgement) take(ins []*instance) []*instance {
	for _, in := range ins {
		if t.decisions[in] == nil && in.role != RoleClient {
			t.decide(in, Suspect, t.rule.ID)
		}
	}
	return t.oldEnough(ins)
}

// oldEnough keeps the instances that are at least as old as was asked for.
func (t *judgement) oldEnough(ins []*instance) []*instance {
	if t.OlderThan <= 0 {
		return ins
	}
	var out []*instance
	for _, in := range ins {
		if age, ok := in.age(); ok && age >= t.OlderThan {
			out = append(out, in)
		}
	}
	return out
}

func (t *judgement) server(in *instance) Server {
	d := t.decision(in)
	s := Server{
		Server: in.name, PIDs: in.pids(), RootPID: in.root().PID, Owner: in.owner,
		RecognisedBy: string(in.rec.Confidence) + ", by " + in.rec.By, Started: in.root().Started,
		RSSBytes: in.rss(), SwapBytes: in.swap(), Listen: in.listen(), Mode: servingMode(*in.rec, in.version()), Verdict: d.verdict, Because: d.because,
	}
	if age, ok := in.age(); ok {
		s.AgeSeconds = int64(age.Seconds())
	}
	return s
}

// decision is the verdict on one instance, and why it is so.
type decision struct {
	verdict Verdict
	because string // the ID of the rule until that has written its finding
}

func (t *judgement) decide(in *instance, v Verdict, because string) {
	t.decisions[in] = &decision{v, because}
}

// decision returns the verdict of the rule that claimed the instance, or explains why none did.
func (t *judgement) decision(in *instance) *decision {
	if d := t.decisions[in]; d != nil {
		return d
	}
	d := new(decision)
	w, holders := in.wire()
	switch in.owner.Kind {
	case OwnerService:
		d.verdict, d.because = Supervised, "kept by "+in.owner.says()
	case OwnerClient, OwnerGateway:
		d.verdict, d.because = InUse, fmt.Sprintf("its %s %s is running", in.owner.Kind, in.owner.says())
		if w == held && slices.Contains(holders, in.owner.PID) {
			d.because = fmt.Sprintf("its %s %s holds its stdin", in.owner.Kind, in.owner.says())
		} else if w == held {
			d.because += " and its stdin is open"
		}
	case OwnerTerminal:
		d.verdict, d.because = InUse, "started by hand from "+in.owner.says()
	case OwnerNobody:
		d.verdict = Unknown
		switch {
		case w == held && len(holders) > 0:
			d.verdict, d.because = InUse, "adopted by "+in.owner.says()+", but pid "+pidList(holders, 3)+" "+be(len(holders), "holds", "hold")+" its stdin"
		case w == held:
			d.because = "adopted by " + in.owner.says() + ", but somebody holds its stdin"
		case len(in.listen()) > 0:
			d.because = "listens on " + listed(in.listen(), 2) + " and runs under " + in.owner.says() + ": a daemon, as it seems"
		case w == unwired:
			d.because = "has no pipe at its stdin and runs under " + in.owner.says() + ": started as a daemon"
		case w == refused:
			d.because = "runs under " + in.owner.says() + "; its stdin could not be read"
		default:
			d.because = "runs under " + in.owner.says() + "; nothing tells whether it is in use"
		}
	default:
		d.verdict, d.because = Unknown, "its parent is not known to be an MCP client"
		if in.owner.PID != 0 && in.owner.Name != "" {
			d.because = "its parent " + in.owner.says() + " is running"
		}
		if w == held {
			d.verdict, d.because = InUse, d.because+", and its stdin is open"
		}
	}
	return d
}

func (t *judgement) owning(in *instance) Owning {
	o := Owning{Name: in.name, PID: in.main().PID, Started: in.root().Started, RSSBytes: in.rss(), Listen: in.listen(), Version: in.version(), Servers: len(in.owned)}
	if in.role == RoleGateway {
		o.Mode = servingMode(*in.rec, o.Version)
	}
	if age, ok := in.age(); ok {
		o.AgeSeconds = int64(age.Seconds())
	}
	return o
}

func (t *judgement) summarise(r *Report) Summary {
	s := Summary{Processes: len(t.forest.procs), Clients: len(r.Clients), Gateways: len(r.Gateways), Servers: len(r.Servers)}
	for _, in := range t.instances {
		if in.role == RoleServer || in.role == RoleGateway {
			s.RSSBytes += in.rss()
			s.SwapBytes += in.swap()
		}
	}
	for _, p := range t.forest.procs {
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
			safe[t.forest.at(pid)] = true
		}
	}
	instances := map[*instance]bool{}
	for node := range safe {
		s.Reapable.Processes++
		s.Reapable.RSSBytes += t.proc(node).RSS()
		instances[t.of[node]] = true
	}
	s.Reapable.Instances = len(instances)
	return s
}

// isField tells a refused field from the marks of a question that stayed open (see scan.Examine).
func isField(unreadable string) bool { return unreadable != "holders" && unreadable != "service" }

// hash shortens a key to eight hexadecimal digits.
func hash(key string) string {
	h := fnv.New32a()
	h.Write([]byte(key)) //nolint:errcheck // a hash never fails
	return fmt.Sprintf("%08x", h.Sum32())
}
