package report

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"mcpdoctor/rules/reap"
)

// Plan writes what a reap would terminate: the memory that would be freed, each finding with its evidence and
// instances, and what is kept and why. If nothing would be terminated, it says what was looked for.
func Plan(w io.Writer, plan *reap.Plan, o Options) error {
	p := newPrinter(w, o)
	plan = clean(plan)
	findings := byFinding(plan.Instances)
	p.planSummary(plan, len(findings))
	for _, instances := range findings {
		p.planned(instances)
	}
	kept := p.keptWords(plan)
	for _, q := range plan.OnRequest {
		kept = append(kept, fmt.Sprintf("%s, %s: %s confirmation; add --rule %s to terminate %s", format.Count(q.Instances, "instance"), q.Rule,
			format.Plural(q.Instances, "needs", "need"), q.Rule, format.Plural(q.Instances, "it", "them")))
	}
	if len(kept)+len(plan.Problems) > 0 && len(findings) > 0 {
		p.line("")
	}
	for _, words := range kept {
		p.wrapped("kept", words)
	}
	p.notes(plan.Problems)
	return p.err
}

func (p *printer) planSummary(plan *reap.Plan, leaks int) {
	s := plan.Summary
	if s.Instances == 0 {
		p.line(p.s.good.Render("Nothing to terminate.") + " " + whyNothing(plan))
		return
	}
	line := amount(s.Instances, s.Processes, s.RSSBytes) + " of " + format.Count(leaks, "leak") + " would be terminated"
	if s.PSSBytes > 0 {
		line += freeing(s.PSSBytes)
	}
	p.line(p.s.bold.Render(line + "."))
}

func freeing(pss int64) string { return ", freeing " + format.Bytes(pss) + " (PSS)" }

// whyNothing says what was looked for, so that an empty plan is not mistaken for a machine without leaks.
func whyNothing(plan *reap.Plan) string {
	age := "at least " + seconds(plan.OlderThanSeconds) + " old."
	matching := "No process matching " + strings.Join(plan.Rules, " or ")
	switch asked := plan.OlderThanSeconds > 0; {
	case len(plan.Kept) > 0:
		return "What was found is kept:"
	case len(plan.Rules) > 0 && asked:
		return matching + " is " + age
	case len(plan.Rules) > 0:
		return matching + " was found."
	case asked:
		return "No leak is safe to terminate and " + age
	}
	return "No leak is safe to terminate."
}

// byFinding groups instances by the finding that selected them.
func byFinding(all []reap.PlannedInstance) [][]reap.PlannedInstance {
	return grouped(all, func(in reap.PlannedInstance) string { return in.Finding })
}

// grouped puts together what has the same key, in the order of the first of each.
func grouped[T any](all []T, key func(T) string) [][]T {
	var out [][]T
	index := map[string]int{}
	for _, one := range all {
		k := key(one)
		i, ok := index[k]
		if !ok {
			i = len(out)
			index[k], out = i, append(out, nil)
		}
		out[i] = append(out[i], one)
	}
	return out
}

// planned writes the instances of one finding.
func (p *printer) planned(instances []reap.PlannedInstance) {
	first := instances[0]
	p.line("")
	p.hanging("", "", first.Title, p.s.bold)
	p.wrapped("rule", first.Rule+", "+string(first.Confidence))
	p.wrapped("why", first.Evidence...)
	processes, rss := 0, int64(0)
	for _, in := range instances {
		processes += len(in.Processes)
		rss += in.RSSBytes
	}
	if len(instances) > 1 { // of one, the table has the sum
		p.wrapped("total", amount(len(instances), processes, rss)+":")
	}
	brief := len(instances) > 1 && len(instances)+processes > treeRows && !p.o.Verbose
	t := table{head: []string{"PID", "AGE", "RSS", "SERVER", "COMMAND"}}
	for _, in := range instances {
		t.row(pidList(pidsOf(in.Processes), fewPIDs), age(in.AgeSeconds, in.Started), format.Bytes(in.RSSBytes), in.Server, worker(in).Command)
		if brief || len(in.Processes) == 1 {
			continue
		}
		for i, target := range in.Processes {
			line, _ := branch(i, len(in.Processes))
			t.row(target.PID, rowAge(target.Row), size(target.RSSBytes), line+target.Role, strings.TrimSpace(target.Command))
		}
	}
	p.shorten(&t)
	p.table(t)
	p.wrapped("kept", p.leftWords(instances)...)
}

// keptWords says what is kept and why: together what has the same reason, unless everything was asked for.
func (p *printer) keptWords(plan *reap.Plan) []string {
	why := func(k reap.Kept) string {
		switch {
		case p.o.Verbose:
			return fmt.Sprint(k.PIDs)
		case k.Young:
			return k.Rule + ": younger than " + seconds(plan.OlderThanSeconds)
		}
		return k.Rule + ": " + aboutPID.ReplaceAllString(k.Reason, "")
	}
	var out []string
	for _, group := range grouped(plan.Kept, why) {
		if k := group[0]; len(group) == 1 {
			reason := k.Reason
			if len(k.PIDs) == 1 {
				reason = aboutPID.ReplaceAllString(reason, "")
			}
			out = append(out, named(k.Server, p.pids(k.PIDs))+", "+k.Rule+": "+reason)
			continue
		}
		var names []string
		for _, same := range grouped(group, func(k reap.Kept) string { return k.Server }) {
			name := named(same[0].Server, p.pids(pidsOfKept(same)))
			if len(same) > 1 {
				name = fmt.Sprintf("%d instances of %s", len(same), name)
			}
			names = append(names, name)
		}
		out = append(out, strings.Join(names, ", ")+", "+why(group[0]))
	}
	return out
}

// aboutPID begins a reason that is about one process of an instance.
var aboutPID = regexp.MustCompile(`^pid \d+: `)

// leftWords says which processes of the instances are not terminated with them, and why.
func (p *printer) leftWords(instances []reap.PlannedInstance) []string {
	var left []reap.Kept
	for _, in := range instances {
		left = append(left, in.Left...)
	}
	var out []string
	for _, same := range grouped(left, func(k reap.Kept) string { return k.Server + "\x00" + k.Reason }) {
		out = append(out, fmt.Sprintf("pid %s of %s: %s", p.pids(pidsOfKept(same)), same[0].Server, same[0].Reason))
	}
	return out
}

// named is an instance in a sentence: "mcp-echo (pid 11896, 11895)".
func named(server, pids string) string {
	if server == "" {
		return "pid " + pids
	}
	return server + " (pid " + pids + ")"
}

// fewPIDs is how many PIDs are listed in one place unless all are asked for.
const fewPIDs = 4

func (p *printer) pids(pids []int) string {
	if p.o.Verbose {
		return pidList(pids, len(pids))
	}
	return pidList(pids, fewPIDs)
}

// pidList joins PIDs, at most so many.
func pidList(pids []int, most int) string {
	more := ""
	if over := len(pids) - most; over > 1 { // "and 1 more" is no shorter than the one
		pids, more = pids[:most], fmt.Sprintf(" and %d more", over)
	}
	words := make([]string, len(pids))
	for i, pid := range pids {
		words[i] = strconv.Itoa(pid)
	}
	return strings.Join(words, ", ") + more
}

// pidsOf returns PIDs in the order in which the processes are terminated.
func pidsOf(targets []reap.Target) []int {
	out := make([]int, len(targets))
	for i, t := range targets {
		out[i] = t.PID
	}
	return out
}

func pidsOfKept(kept []reap.Kept) []int {
	var out []int
	for _, k := range kept {
		out = append(out, k.PIDs...)
	}
	return out
}

// worker returns the process of an instance that does the work: the topmost of its role, below the launchers.
func worker(in reap.PlannedInstance) reap.Target {
	var out reap.Target
	for i, t := range in.Processes {
		if i == 0 || t.Role == string(in.Role) && (in.Role != process.RoleHelper || t.PID == in.RootPID) {
			out = t
		}
	}
	return out
}
