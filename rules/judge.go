package rules

import (
	"slices"
	"time"

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
	out := j.out
	for _, rule := range registry {
		if !rule.Probe {
			j.rule = rule
			rule.check(j)
		}
	}
	slices.SortStableFunc(out.Findings, WorseFirst)
	out.Parentless = j.parentless()
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

// judgement is a table while the rules work on it, with what they have found.
type judgement struct {
	*process.Table
	Options
	out       *Report
	decisions map[*process.Instance]*decision // of the instances that a rule has claimed
	rule      *Rule                           // the one that is checked now
}

func newJudgement(r *process.Recognised, o Options) *judgement {
	return &judgement{
		Table: process.NewTable(r), Options: o, decisions: map[*process.Instance]*decision{},
		out: &Report{
			Schema: ReportSchema, Kind: ReportKind, Taken: r.Snapshot.Taken, Host: r.Snapshot.Host,
			Findings: []Finding{}, Servers: []Server{}, Clients: []Owning{}, Gateways: []Owning{},
			Problems: append([]string{}, r.Snapshot.Problems...),
		},
	}
}

// claim marks the instances as explained by the current rule, so that later rules leave them alone, and
// returns those that are at least as old as OlderThan.
func (j *judgement) claim(ins []*process.Instance) []*process.Instance {
	for _, in := range ins {
		if j.decisions[in] == nil && in.Role != process.RoleClient {
			j.decisions[in] = &decision{Suspect, j.rule.ID + ": " + j.rule.Title, j.rule}
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
