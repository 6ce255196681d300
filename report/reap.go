package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"mcpdoctor/rules"
)

// Plan writes for people what a reap is about to end, or would: how much comes back, then each
// finding with its evidence and its instances, then what is kept all the same and why.
func Plan(w io.Writer, p *rules.Plan, o Options) error {
	out := printer{w: w, o: o, s: newStyles(w, o.Color)}
	p = cleanPlan(p)
	out.planSummary(p)
	for _, g := range byFinding(p.Instances) {
		out.planned(g)
	}
	out.planKept(p.Kept)
	out.planProblems(p.Problems)
	return out.err
}

// planSummary says how much is to be ended and what comes back. Of nothing it says what was asked,
// so that nobody takes it for a clean bill of health.
func (p *printer) planSummary(plan *rules.Plan) {
	s := plan.Summary
	if s.Instances == 0 {
		p.line(p.s.good.Render("Nothing is to be ended.") + " " + nothing(plan))
		return
	}
	line := fmt.Sprintf("%s (%s, %s RSS) of %s would be ended.", rules.Count(s.Instances, "instance"), rules.Count(s.Processes, "process"),
		rules.Bytes(s.RSSBytes), rules.Count(len(byFinding(plan.Instances)), "leak"))
	if s.PSSBytes > 0 {
		line += " " + rules.Bytes(s.PSSBytes) + " come back (PSS)."
	}
	p.line(p.s.bold.Render(line))
}

func nothing(plan *rules.Plan) string {
	found := "No leak was found that is safe to end"
	if len(plan.Rules) > 0 {
		found = "Nothing was found by " + rulesNamed(plan.Rules) + " that may be ended"
	}
	if plan.OlderThanSeconds > 0 {
		found += " and is at least " + rules.Age(time.Duration(plan.OlderThanSeconds)*time.Second) + " old"
	}
	return found + "."
}

func rulesNamed(ids []string) string {
	if len(ids) == 1 {
		return "the rule " + ids[0]
	}
	return "the rules " + strings.Join(ids, ", ")
}

// byFinding groups instances by the finding that gave them up, in the order of the first of each.
func byFinding(all []rules.Doomed) [][]rules.Doomed {
	var out [][]rules.Doomed
	at := map[string]int{}
	for _, d := range all {
		i, ok := at[d.Finding]
		if !ok {
			i = len(out)
			at[d.Finding], out = i, append(out, nil)
		}
		out[i] = append(out[i], d)
	}
	return out
}

// planned writes the instances of one finding.
func (p *printer) planned(group []rules.Doomed) {
	d := group[0]
	p.line("")
	for _, l := range p.wrap(d.Title, 0) {
		p.line(p.s.bold.Render(l))
	}
	p.wrapped("rule", fmt.Sprintf("%s, %s", d.Rule, d.Confidence))
	for i, e := range d.Evidence {
		p.wrapped(first(i, "why"), e)
	}
	p.doomed(group)
	for _, d := range group {
		for _, k := range d.Left {
			p.wrapped("left", fmt.Sprintf("%s of %s: %s", pidWords(k.PIDs), k.Server, k.Reason))
		}
	}
}

// doomed writes a line for each instance, and below it one for each of its processes when there is
// room.
func (p *printer) doomed(group []rules.Doomed) {
	t := table{head: []string{"PID", "AGE", "RSS", "SERVER", "ENDS IN THIS ORDER", "COMMAND"}}
	for _, d := range group {
		t.row(fmt.Sprint(d.RootPID), age(d.AgeSeconds, d.Started), rules.Bytes(d.RSSBytes), d.Server, pidList(pidsOf(d)), worker(d).Command)
	}
	p.table(t)
}

// planKept writes what a rule gave up and is kept.
func (p *printer) planKept(kept []rules.Kept) {
	for _, k := range kept {
		p.wrapped("kept", fmt.Sprintf("%s (%s), %s: %s", k.Server, pidWords(k.PIDs), k.Rule, k.Reason))
	}
}

func (p *printer) planProblems(problems []string) {
	for _, s := range problems {
		p.wrapped("note", s)
	}
}

// Deeds writes for people what a reap did: a line for each instance, each of which can be
// understood alone (cron mails them), one total, and what was kept. It writes nothing at all when
// the plan had no instances.
func Deeds(w io.Writer, p *rules.Plan, o Options) error {
	if len(p.Instances) == 0 {
		return nil
	}
	out := printer{w: w, o: o, s: newStyles(w, o.Color)}
	p = cleanPlan(p)
	for _, d := range p.Instances {
		out.line(fmt.Sprintf("%s %s (%s)", d.Outcome, d.Server, pidWords(pidsOf(d))))
	}
	out.planKept(p.Kept)
	out.planProblems(p.Problems)
	return out.err
}

// pidsOf returns the PIDs of an instance in the order in which they are asked to end.
func pidsOf(d rules.Doomed) []int {
	out := make([]int, len(d.Processes))
	for i, s := range d.Processes {
		out[i] = s.PID
	}
	return out
}

func pidList(pids []int) string {
	words := make([]string, len(pids))
	for i, pid := range pids {
		words[i] = strconv.Itoa(pid)
	}
	return strings.Join(words, ", ")
}

func pidWords(pids []int) string { return "pid " + pidList(pids) }

// worker returns the process of an instance that does the work: the topmost of its role, below the
// launchers.
func worker(d rules.Doomed) rules.Sentenced {
	var out rules.Sentenced
	for i, s := range d.Processes {
		if i == 0 || s.Role == string(d.Role) && (d.Role != rules.RoleHelper || s.PID == d.RootPID) {
			out = s
		}
	}
	return out
}
