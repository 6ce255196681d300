// Package reap decides which processes are terminated, and in what order. [New] makes a [Plan] of a report and
// the user's consent, [Confirm] holds it against a second look, [Verify] against a look afterwards. It is where
// the laws of reaping are kept, whatever a rule gave up. It signals nothing: that is scan/terminate.
package reap

import (
	"maps"
	"slices"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/terminate"
)

// PlanSchema is the version of a plan's JSON form. It changes only when a reader of the present form
// would misunderstand the new one.
const Schema = 1

// PlanKind names the JSON form in its own text.
const Kind = "mcpdoctor.reap"

// Consent is what a reap was told.
type Consent struct {
	// OlderThan keeps what is younger, or of an age that is not known.
	OlderThan time.Duration

	// Rules limits the plan to what these rules gave up, and is the consent to end what they give up
	// on request. Empty means all rules, and nothing that needs a request.
	Rules []string

	// Self is the PID of the process that is to act: it and its ancestors are kept. 0 when nobody
	// will act, as on a table that was saved.
	Self int

	// AllUsers is for root, and allows to end other users' processes.
	AllUsers bool
}

// Plan is who is to be ended, and after the act what became of each. It is a plain value, of which
// text, JSON and log are readers. Strings that came from a process are raw here.
type Plan struct {
	Schema int        `json:"schema"`
	Kind   string     `json:"kind"`
	Tool   rules.Tool `json:"tool"` // filled in by the command
	Taken  time.Time  `json:"taken"`
	Host   string     `json:"host,omitempty"` // the machine's name, empty when unknown

	OlderThanSeconds int64    `json:"older_than_seconds"`
	Rules            []string `json:"rules,omitempty"` // the consent; absent when none was named

	// Acted tells that signals were sent, or would have been had anything been left to do. A plan
	// that was only shown has not acted.
	Acted bool `json:"acted"`

	// Instances are ended together each, in the order of the findings that gave them up.
	Instances []PlannedInstance `json:"instances"`

	// Kept are those that a rule gave up, and that are kept all the same.
	Kept []Kept `json:"kept"`

	Summary Summary `json:"summary"`

	// OnRequest counts, by rule, the instances that are only looked at when the rule is named; absent
	// when there are none, and when rules were named.
	OnRequest []Request `json:"on_request,omitempty"`

	// Problems are sentences about what could not be seen.
	Problems []string `json:"problems"`

	nobody bool // was to carry it out
}

// Request is what one rule gives up on request only.
type Request struct {
	Rule      string `json:"rule"`
	Instances int    `json:"instances"`
}

// Doomed is one instance that is to be ended, and what became of it.
type PlannedInstance struct {
	Server  string       `json:"server"`
	Role    process.Role `json:"role"` // server, gateway, client or helper
	RootPID int          `json:"root_pid"`

	// Why it is to be ended: the first finding that gave it up.
	Finding    string             `json:"finding"`
	Rule       string             `json:"rule"`
	Confidence process.Confidence `json:"confidence"`
	Title      string             `json:"title"`
	Evidence   []string           `json:"evidence"`

	Started    time.Time `json:"started"`
	AgeSeconds int64     `json:"age_seconds"`

	// RSSBytes counts shared pages in each process. PSSBytes counts them once, and is what comes
	// back; absent unless it is known of every process.
	RSSBytes int64 `json:"rss_bytes"`
	PSSBytes int64 `json:"pss_bytes,omitempty"`

	// Outcome is [Planned] before the act, and afterwards the worst of its processes' outcomes.
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`

	// Processes are in the order in which they are asked to end.
	Processes []Target `json:"processes"`

	// Left are those of the instance's processes that are not ended with it.
	Left []Kept `json:"left,omitempty"`
}

// Sentenced is one process that is to be ended, and what became of it.
type Target struct {
	rules.Row
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`

	id    scan.ID
	stage stage
	pss   *int64 // nil when it is not known
}

// stage is the place of a process in the order in which an instance is ended.
type stage int

// First who does the work. Then the launchers above it, which mostly end by themselves when it has (a
// signal to `npm exec` reaches only its `sh`, and makes an orphan of the server). At last what the
// server started: a browser, a language server.
const (
	work stage = iota
	launch
	help
)

// Outcome is what became of a process or an instance: [Planned], [Skipped], or a [terminate.Outcome].
type Outcome string

// The outcomes that come from no signal. For the others see [terminate.Outcome].
const (
	Planned Outcome = "planned" // nothing was done yet
	Skipped Outcome = "spared"  // a second look found that it is not to be ended
)

// Kept is what a rule gave up and is not ended.
type Kept struct {
	Server string `json:"server"`
	PIDs   []int  `json:"pids"`
	Rule   string `json:"rule"`
	Reason string `json:"reason"`

	// Young tells that it is kept for its age only: a later run may end it.
	Young bool `json:"young,omitempty"`
}

// PlanSummary counts instances by what became of them, and what came back.
type Summary struct {
	Instances int `json:"instances"` // all that were planned
	Processes int `json:"processes"`

	Ended       int `json:"ended"`       // instances of which nothing is left: ended, killed or gone
	Skipped     int `json:"spared"`      // kept after the second look
	Refused     int `json:"refused"`     // the system did not let a process be signalled
	Survived    int `json:"survived"`    // a process is there though it was killed
	Interrupted int `json:"interrupted"` // the act was interrupted before they had ended

	// RSSBytes and PSSBytes are those of the processes that have ended, or, before the act, of those
	// that are planned. PSSBytes is absent unless it is known of all.
	RSSBytes int64 `json:"rss_bytes"`
	PSSBytes int64 `json:"pss_bytes,omitempty"`
}

// NewPlan says who is to be ended, out of a report on this very table. It is a pure function, and the
// place where the laws of reaping are kept (who may be signalled at all): it trusts no rule, but
// looks at every process again.
func New(r *process.Recognised, rep *rules.Report, c Consent) *Plan {
	p := &Plan{
		Schema: Schema, Kind: Kind, Tool: rep.Tool, Taken: rep.Taken, Host: rep.Host.Name,
		OlderThanSeconds: int64(c.OlderThan.Seconds()), Rules: slices.Clone(c.Rules),
		Instances: []PlannedInstance{}, Kept: []Kept{}, Problems: append([]string{}, rep.Problems...), nobody: c.Self == 0,
	}
	g := newGuard(process.NewTable(r), c)
	all := g.candidates(rep)
	for _, s := range all {
		if s.in != nil {
			g.doomed[s.in] = s
		}
	}
	for _, s := range all {
		if d, kept := g.decide(s); kept != nil {
			p.Kept = append(p.Kept, *kept)
		} else {
			p.Instances = append(p.Instances, d)
		}
	}
	p.OnRequest = g.requests(rep)
	p.summarise()
	return p
}

// given is what the rules gave up of one instance.
type candidate struct {
	finding *rules.Finding    // the first that gave it up
	in      *process.Instance // nil for a process that belongs to none
	nodes   []int32
}

// sentences groups what the rules gave up by instance.
func (g *guard) candidates(rep *rules.Report) []*candidate {
	var out []*candidate
	of := map[*process.Instance]*candidate{}
	for i := range rep.Findings {
		f := &rep.Findings[i]
		pids := f.Reap.Safe
		if len(g.consent.Rules) > 0 {
			if !slices.Contains(g.consent.Rules, f.Rule) {
				continue
			}
			pids = slices.Concat(pids, f.Reap.OnRequest)
		}
		for _, pid := range pids {
			at := g.Forest.Node(pid)
			if at == process.None {
				continue // the report is of another table
			}
			in := g.InstanceOf[at]
			if in == nil || of[in] == nil {
				of[in] = &candidate{finding: f, in: in}
				out = append(out, of[in])
			}
			of[in].nodes = append(of[in].nodes, at)
		}
	}
	return out
}

// requests counts what the rules give up on request only, for who has named none.
func (g *guard) requests(rep *rules.Report) []Request {
	if len(g.consent.Rules) > 0 {
		return nil
	}
	of := map[string]map[*process.Instance]bool{}
	for _, f := range rep.Findings {
		for _, pid := range f.Reap.OnRequest {
			at := g.Forest.Node(pid)
			if at == process.None || g.InstanceOf[at] == nil || g.doomed[g.InstanceOf[at]] != nil {
				continue
			}
			if of[f.Rule] == nil {
				of[f.Rule] = map[*process.Instance]bool{}
			}
			of[f.Rule][g.InstanceOf[at]] = true
		}
	}
	var out []Request
	for _, rule := range slices.Sorted(maps.Keys(of)) {
		out = append(out, Request{Rule: rule, Instances: len(of[rule])})
	}
	return out
}

// sentence decides on one instance: it is ended with all that it needs, or kept.
func (g *guard) decide(s *candidate) (PlannedInstance, *Kept) {
	kept := &Kept{Rule: s.finding.Rule, PIDs: []int{}}
	for _, n := range s.nodes {
		kept.PIDs = append(kept.PIDs, g.Process(n).PID)
	}
	slices.Sort(kept.PIDs)
	kept.PIDs = slices.Compact(kept.PIDs) // two findings may give up the same
	if s.in == nil {
		kept.Reason = "it belongs to no server that could be recognised"
		return PlannedInstance{}, kept
	}
	kept.Server = s.in.Name
	if kept.Reason = g.keepsInstance(s); kept.Reason != "" {
		kept.Young = g.onlyYoung(s)
		return PlannedInstance{}, kept
	}
	d := PlannedInstance{
		Server: s.in.Name, Role: s.in.Role, RootPID: s.in.Root().PID, Started: s.in.Root().Started,
		Finding: s.finding.ID, Rule: s.finding.Rule, Confidence: s.finding.Confidence, Title: s.finding.Title,
		Evidence: slices.Clone(s.finding.Evidence), Outcome: Planned, Processes: []Target{},
	}
	if age, ok := s.in.Age(); ok {
		d.AgeSeconds = int64(age.Seconds())
	}
	g.order(s, &d)
	d.weigh()
	return d, nil
}

// order puts an instance's processes in the order in which they are asked to end: by stage, and
// within each the deepest first. Helpers that are kept, and why, are put down in d.Left.
func (g *guard) order(s *candidate, d *PlannedInstance) {
	for _, n := range slices.Backward(s.in.Members) { // members are in the order of their depth
		p := g.Process(n)
		one := Target{Row: rules.NewRow(s.in, n), Outcome: Planned, id: p.ID(), pss: p.PSSBytes}
		switch {
		case !g.chain(s.in, n):
			one.stage = help
			if reason := g.keepsHelper(s, n); reason != "" {
				d.Left = append(d.Left, Kept{Server: s.in.Name, PIDs: []int{p.PID}, Rule: s.finding.Rule, Reason: reason})
				continue
			}
		case g.Recognitions[n].RoleOrNone() == process.RoleLauncher:
			one.stage = launch
		}
		d.Processes = append(d.Processes, one)
	}
	slices.SortStableFunc(d.Processes, func(a, b Target) int { return int(a.stage - b.stage) })
}

// group is an instance in the form of [terminate.Terminate].
func (d *PlannedInstance) group() terminate.Group {
	var g terminate.Group
	for i, s := range d.Processes {
		if i == 0 || s.stage != d.Processes[i-1].stage {
			g.Stages = append(g.Stages, nil)
		}
		last := len(g.Stages) - 1
		g.Stages[last] = append(g.Stages[last], s.id)
	}
	return g
}

// Groups are the processes of the instances that are still planned, for [terminate.Terminate]; none of a plan
// that nobody is to carry out.
func (p *Plan) Groups() []terminate.Group {
	var out []terminate.Group
	if p.nobody {
		return nil
	}
	for _, d := range p.Instances {
		if d.Outcome == Planned {
			out = append(out, d.group())
		}
	}
	return out
}

// PIDs are the processes that are still planned, ascending.
func (p *Plan) PIDs() []int {
	var out []int
	for _, d := range p.Instances {
		if d.Outcome == Planned {
			for _, s := range d.Processes {
				out = append(out, s.PID)
			}
		}
	}
	slices.Sort(out)
	return out
}
