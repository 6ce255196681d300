// Package reap decides which processes are terminated, and in what order. [New] makes a [Plan] from a report and
// the user's consent and enforces the laws of reaping, whatever a rule selected. [Plan.Confirm] keeps what two
// looks agree on, [Plan.Record] notes what became of it, and [Plan.Verify] checks that with a last look. The package
// signals nothing: that is scan/terminate.
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

// Schema is the version of a plan's JSON form, Kind its name.
const (
	Schema = 1
	Kind   = "mcpdoctor.reap"
)

// Consent is what the user agreed to.
type Consent struct {
	OlderThan time.Duration // what is younger or of unknown age is kept
	Rules     []string      // only what these rules selected, including on request; empty: all rules, nothing on request
	Self      int           // the PID of mcpdoctor: it and its ancestors are kept; 0 if nothing will be signalled
	AllUsers  bool          // root may terminate other users' processes
}

// Plan is what will be terminated, and afterwards what became of it. Text, JSON and log are written from it. Strings
// that came from a process are raw.
type Plan struct {
	Schema int        `json:"schema"`
	Kind   string     `json:"kind"`
	Tool   rules.Tool `json:"tool"` // filled in by the command
	Taken  time.Time  `json:"taken"`
	Host   string     `json:"host,omitempty"` // the machine's name, empty if unknown

	OlderThanSeconds int64    `json:"older_than_seconds"`
	Rules            []string `json:"rules,omitempty"` // those of the consent
	Acted            bool     `json:"acted"`           // false for a plan that was only shown

	Instances []PlannedInstance `json:"instances"` // in the order of the findings that selected them
	Kept      []Kept            `json:"kept"`      // what a rule selected but a law keeps
	Summary   Summary           `json:"summary"`
	OnRequest []Request         `json:"on_request,omitempty"` // unless rules were named
	Problems  []string          `json:"problems"`             // sentences about what could not be seen

	seen   *process.Recognised // the table the plan was made from
	report *rules.Report
	self   int
}

// Request counts the instances that one rule selects on request only.
type Request struct {
	Rule      string `json:"rule"`
	Instances int    `json:"instances"`
}

// PlannedInstance is one instance to be terminated, and what became of it.
type PlannedInstance struct {
	Server  string       `json:"server"`
	Role    process.Role `json:"role"` // server, gateway, client or helper
	RootPID int          `json:"root_pid"`

	// Finding is the first that selected it; the next four fields are copied from it.
	Finding    string             `json:"finding"`
	Rule       string             `json:"rule"`
	Confidence process.Confidence `json:"confidence"`
	Title      string             `json:"title"`
	Evidence   []string           `json:"evidence"`

	Started    time.Time `json:"started"`
	AgeSeconds int64     `json:"age_seconds"`
	RSSBytes   int64     `json:"rss_bytes"`           // counts shared pages in each process
	PSSBytes   int64     `json:"pss_bytes,omitempty"` // what is released; absent unless known for every process

	Outcome   terminate.Outcome `json:"outcome"` // [Planned] at first, then the worst of its processes
	Reason    string            `json:"reason,omitempty"`
	Processes []Target          `json:"processes"`      // in the order in which they are terminated
	Left      []Kept            `json:"left,omitempty"` // helpers that are not terminated with it
}

// Target is one process to be terminated, and what became of it.
type Target struct {
	rules.Row
	Outcome terminate.Outcome `json:"outcome"`
	Reason  string            `json:"reason,omitempty"`

	id    scan.ID
	stage stage
	pss   *int64 // nil if unknown
}

// stage is when a process is terminated, within its instance.
type stage int

// The server goes first. Launchers mostly exit by themselves after it (a signal to `npm exec` reaches only its `sh`,
// and leaves the server an orphan). What the server started goes last: a browser, a language server.
const (
	serving stage = iota
	launching
	helping
)

// The outcomes that come from no signal.
const (
	Planned terminate.Outcome = "planned" // nothing was done yet
	Skipped terminate.Outcome = "spared"  // a second look found a reason to keep it
)

// Kept is what a rule selected and is not terminated.
type Kept struct {
	Server string `json:"server"`
	PIDs   []int  `json:"pids"`
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
	Young  bool   `json:"young,omitempty"` // only its age keeps it: a later run may terminate it
}

// Summary counts instances by outcome. RSSBytes and PSSBytes are those of the terminated processes, or, before, of the
// planned ones; PSSBytes is absent unless known for all.
type Summary struct {
	Instances   int   `json:"instances"` // all that were planned
	Processes   int   `json:"processes"`
	Ended       int   `json:"ended"`       // all processes exited: ended, killed or gone
	Skipped     int   `json:"spared"`      // kept after the second look
	Refused     int   `json:"refused"`     // a process could not be signalled
	Survived    int   `json:"survived"`    // a process was killed and is still running
	Interrupted int   `json:"interrupted"` // still running when mcpdoctor was interrupted
	RSSBytes    int64 `json:"rss_bytes"`
	PSSBytes    int64 `json:"pss_bytes,omitempty"`
}

// New plans what to terminate, from a report on this table. It trusts no rule: the laws of reaping are checked for
// every process.
func New(r *process.Recognised, rep *rules.Report, c Consent) *Plan {
	p := &Plan{
		Schema: Schema, Kind: Kind, Tool: rep.Tool, Taken: rep.Taken, Host: rep.Host.Name,
		OlderThanSeconds: int64(c.OlderThan.Seconds()), Rules: slices.Clone(c.Rules),
		Instances: []PlannedInstance{}, Kept: []Kept{}, Problems: append([]string{}, rep.Problems...),
		seen: r, report: rep, self: c.Self,
	}
	g := newGuard(process.NewTable(r), c)
	for _, one := range g.candidates(rep) {
		g.decide(p, one)
	}
	p.OnRequest = g.requests(rep)
	p.summarise()
	return p
}

// candidate is what the rules selected of one instance.
type candidate struct {
	finding *rules.Finding    // the first that selected it
	in      *process.Instance // nil for a process outside of all instances
	nodes   []int32
}

// candidates groups what the rules selected by instance.
func (g *guard) candidates(rep *rules.Report) []*candidate {
	var out []*candidate
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
				continue // the report is on another table
			}
			in := g.InstanceOf[at]
			c := g.selected[in]
			if c == nil {
				c = &candidate{finding: f, in: in}
				out = append(out, c)
				if in != nil {
					g.selected[in] = c
				}
			}
			c.nodes = append(c.nodes, at)
		}
	}
	return out
}

// requests counts what the rules select on request only, if none was named.
func (g *guard) requests(rep *rules.Report) []Request {
	if len(g.consent.Rules) > 0 {
		return nil
	}
	byRule := map[string]map[*process.Instance]bool{}
	for _, f := range rep.Findings {
		for _, pid := range f.Reap.OnRequest {
			at := g.Forest.Node(pid)
			if at == process.None || g.InstanceOf[at] == nil || g.selected[g.InstanceOf[at]] != nil {
				continue
			}
			if byRule[f.Rule] == nil {
				byRule[f.Rule] = map[*process.Instance]bool{}
			}
			byRule[f.Rule][g.InstanceOf[at]] = true
		}
	}
	var out []Request
	for _, rule := range slices.Sorted(maps.Keys(byRule)) {
		out = append(out, Request{Rule: rule, Instances: len(byRule[rule])})
	}
	return out
}

// decide adds a candidate to what the plan terminates or keeps.
func (g *guard) decide(p *Plan, c *candidate) {
	kept := Kept{Rule: c.finding.Rule}
	for _, n := range c.nodes {
		kept.PIDs = append(kept.PIDs, g.Process(n).PID)
	}
	slices.Sort(kept.PIDs)
	kept.PIDs = slices.Compact(kept.PIDs) // two findings may select the same
	if c.in == nil {
		kept.Reason = "it belongs to no recognised server"
		p.Kept = append(p.Kept, kept)
		return
	}
	kept.Server = c.in.Name
	if kept.Reason = g.keepsInstance(c); kept.Reason != "" {
		kept.Young = g.onlyYoung(c)
		p.Kept = append(p.Kept, kept)
		return
	}
	d := PlannedInstance{
		Server: c.in.Name, Role: c.in.Role, RootPID: c.in.Root().PID, Started: c.in.Root().Started,
		Finding: c.finding.ID, Rule: c.finding.Rule, Confidence: c.finding.Confidence, Title: c.finding.Title,
		Evidence: slices.Clone(c.finding.Evidence), Outcome: Planned, Processes: []Target{},
	}
	if age, ok := c.in.Age(); ok {
		d.AgeSeconds = int64(age.Seconds())
	}
	g.order(c, &d)
	d.RSSBytes, d.PSSBytes = memory(d.Processes)
	p.Instances = append(p.Instances, d)
}

// order fills in an instance's processes in the order in which they are terminated: by stage, and within a stage the
// deepest first. Helpers that are kept go to d.Left.
func (g *guard) order(c *candidate, d *PlannedInstance) {
	for _, n := range slices.Backward(c.in.Members) { // members are in the order of their depth
		p := g.Process(n)
		t := Target{Row: rules.NewRow(c.in, n), Outcome: Planned, id: p.ID(), pss: p.PSSBytes}
		switch {
		case !g.essential(c.in, n):
			t.stage = helping
			if reason := g.keepsHelper(c, n); reason != "" {
				d.Left = append(d.Left, Kept{Server: c.in.Name, PIDs: []int{p.PID}, Rule: c.finding.Rule, Reason: reason})
				continue
			}
		case g.Recognitions[n].RoleOrNone() == process.RoleLauncher:
			t.stage = launching
		}
		d.Processes = append(d.Processes, t)
	}
	slices.SortStableFunc(d.Processes, func(a, b Target) int { return int(a.stage - b.stage) })
}

// Groups returns the instances that are still planned, for [terminate.Terminate]: none unless [Consent.Self] was set.
func (p *Plan) Groups() []terminate.Group {
	var out []terminate.Group
	for _, d := range p.Instances {
		if p.self == 0 || d.Outcome != Planned {
			continue
		}
		var g terminate.Group
		for i, t := range d.Processes {
			if i == 0 || t.stage != d.Processes[i-1].stage {
				g.Stages = append(g.Stages, nil)
			}
			last := len(g.Stages) - 1
			g.Stages[last] = append(g.Stages[last], t.id)
		}
		out = append(out, g)
	}
	return out
}

// PIDs returns the processes that are still planned, ascending.
func (p *Plan) PIDs() []int {
	var out []int
	for _, d := range p.Instances {
		if d.Outcome == Planned {
			out = append(out, pidsOf(d.Processes)...)
		}
	}
	slices.Sort(out)
	return out
}

// pidsOf returns the PIDs of processes, ascending.
func pidsOf(processes []Target) []int {
	var out []int
	for _, t := range processes {
		out = append(out, t.PID)
	}
	slices.Sort(out)
	return out
}
