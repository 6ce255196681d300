package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"mcpdoctor/rules/reap"
)

// Plan writes for people what a reap would end: how much comes back, then each finding with its
// evidence and its instances, then what is kept all the same and why. Of nothing it says what was
// looked for.
func Plan(w io.Writer, p *reap.Plan, o Options) error {
	out := printer{w: w, o: o, s: newStyles(w, o.Color)}
	p = clean(p)
	out.planSummary(p)
	for _, group := range byFinding(p.Instances) {
		out.planned(group)
	}
	out.notes(p)
	return out.err
}

// planSummary says how much is to be ended and what comes back. Of nothing it says what was asked,
// so that nobody takes it for a clean bill of health.
func (p *printer) planSummary(plan *reap.Plan) {
	s := plan.Summary
	if s.Instances == 0 {
		p.line(p.s.good.Render("Nothing is to be ended.") + " " + nothing(plan))
		return
	}
	line := amount(s.Instances, s.Processes, s.RSSBytes) + " of " + format.Count(len(byFinding(plan.Instances)), "leak") + " would be ended"
	if s.PSSBytes > 0 {
		line += "; " + comesBack(s.PSSBytes)
	}
	p.line(p.s.bold.Render(line + "."))
}

func amount(instances, processes int, rss int64) string {
	return fmt.Sprintf("%s (%s%s)", format.Count(instances, "instance"), format.Count(processes, "process"), memory(rss))
}

// memory is how much a text adds about RSS: nothing when it is not known of anybody.
func memory(rss int64) string {
	if rss == 0 {
		return ""
	}
	return ", " + format.Bytes(rss) + " RSS"
}

func comesBack(pss int64) string { return format.Bytes(pss) + " come back (PSS)" }

// nothing says what was looked for and not found.
func nothing(plan *reap.Plan) string {
	var age string
	if plan.OlderThanSeconds > 0 {
		age = " and is at least " + seconds(plan.OlderThanSeconds) + " old"
	}
	if len(plan.Kept) > 0 {
		return "What was found is kept, for these reasons:"
	}
	if len(plan.Rules) == 0 {
		return "No leak was found that is safe to end" + age + "."
	}
	by := "the rule "
	if len(plan.Rules) > 1 {
		by = "the rules "
	}
	return "Nothing that may be ended" + age + " was found by " + by + strings.Join(plan.Rules, ", ") + "."
}

func seconds(n int64) string { return format.Age(time.Duration(n) * time.Second) }

// byFinding groups instances by the finding that gave them up, in the order of the first of each.
func byFinding(all []reap.PlannedInstance) [][]reap.PlannedInstance {
	return grouped(all, func(d reap.PlannedInstance) string { return d.Finding })
}

// grouped puts those together that have the same key, in the order of the first of each.
func grouped[T any](all []T, key func(T) string) [][]T {
	var out [][]T
	at := map[string]int{}
	for _, one := range all {
		k := key(one)
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k], out = i, append(out, nil)
		}
		out[i] = append(out[i], one)
	}
	return out
}

// planned writes the instances of one finding.
func (p *printer) planned(group []reap.PlannedInstance) {
	p.line("")
	for _, l := range p.wrap(group[0].Title, 0) {
		p.line(p.s.bold.Render(l))
	}
	p.wrapped("rule", fmt.Sprintf("%s, %s", group[0].Rule, group[0].Confidence))
	for i, e := range group[0].Evidence {
		p.wrapped(first(i, "why"), e)
	}
	if len(group) > 1 { // of one, the table has the sum
		processes, rss := 0, int64(0)
		for _, d := range group {
			processes += len(d.Processes)
			rss += d.RSSBytes
		}
		p.wrapped("ends", amount(len(group), processes, rss)+":")
	}
	p.doomed(group)
	for i, words := range p.leftWords(group) {
		p.wrapped(first(i, "stays"), words)
	}
}

// doomed writes a line for each instance, and below it one for each of its processes in the order in
// which they are asked to end, unless there are too many instances for that.
func (p *printer) doomed(group []reap.PlannedInstance) {
	lines := 0
	for _, d := range group {
		lines += 1 + parts(d)
	}
	brief := len(group) > 1 && lines > treeRows && !p.o.Verbose
	t := table{head: []string{"PID", "AGE", "RSS", "SERVER", "COMMAND"}}
	for _, d := range group {
		t.row(pidList(pidsOf(d), fewPIDs), age(d.AgeSeconds, d.Started), format.Bytes(d.RSSBytes), d.Server, worker(d).Command)
		if brief {
			continue
		}
		for i, s := range d.Processes[:parts(d)] {
			branch := "├─ "
			if i == len(d.Processes)-1 {
				branch = "└─ "
			}
			t.row(strconv.Itoa(s.PID), rowAge(s.Row), rowSize(s.Row), branch+s.Role, strings.TrimSpace(s.Command))
		}
	}
	p.shorten(&t)
	p.table(t)
}

// parts is how many lines of processes an instance has below its own: none when it is only one.
func parts(d reap.PlannedInstance) int {
	if len(d.Processes) == 1 {
		return 0
	}
	return len(d.Processes)
}

// notes writes what is kept, what is ended on request only, and what could not be seen.
func (p *printer) notes(plan *reap.Plan) {
	kept := p.keptWords(plan)
	if len(kept)+len(plan.OnRequest)+len(plan.Problems) > 0 && len(plan.Instances) > 0 {
		p.line("")
	}
	for _, words := range kept {
		p.wrapped("kept", words)
	}
	for _, q := range plan.OnRequest {
		p.wrapped("kept", fmt.Sprintf("%s, %s: in doubt, as mcpdoctor scan says; mcpdoctor reap --rule %s would end %s", format.Count(q.Instances, "instance"), q.Rule, q.Rule, them(q.Instances)))
	}
	for _, s := range plan.Problems {
		p.wrapped("note", s)
	}
}

func them(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// keptWords says who is kept and why: each by itself when all are asked for, otherwise together who
// is kept for the same reason.
func (p *printer) keptWords(plan *reap.Plan) []string {
	why := func(k reap.Kept) string { return k.Rule + ": " + sharedReason(k, plan.OlderThanSeconds) }
	groups := grouped(plan.Kept, why)
	var out []string
	for _, group := range groups {
		if len(group) == 1 || p.o.Verbose {
			for _, k := range group {
				out = append(out, named(k.Server, pidList(k.PIDs, p.most()))+", "+k.Rule+": "+ownReason(k))
			}
			continue
		}
		var who []string
		for _, same := range grouped(group, func(k reap.Kept) string { return k.Server }) {
			words := named(same[0].Server, pidList(pidsOfKept(same), p.most()))
			if len(same) > 1 {
				words = fmt.Sprintf("%d instances of %s", len(same), words)
			}
			who = append(who, words)
		}
		out = append(out, strings.Join(who, ", ")+", "+why(group[0]))
	}
	return out
}

// leftWords says what of the instances is not ended with them, and why.
func (p *printer) leftWords(instances []reap.PlannedInstance) []string {
	var left []reap.Kept
	for _, d := range instances {
		left = append(left, d.Left...)
	}
	var out []string
	for _, same := range grouped(left, func(k reap.Kept) string { return k.Server + "\x00" + k.Reason }) {
		out = append(out, fmt.Sprintf("pid %s of %s: %s", pidList(pidsOfKept(same), p.most()), same[0].Server, same[0].Reason))
	}
	return out
}

// sharedReason is why something is kept, without what is only true of this one.
func sharedReason(k reap.Kept, olderThan int64) string {
	if k.Young {
		return "younger than " + seconds(olderThan)
	}
	_, reason := aboutPID(k)
	return reason
}

// ownReason is why something is kept. A PID is named in it only when it is one of several.
func ownReason(k reap.Kept) string {
	if pid, reason := aboutPID(k); pid != 0 && len(k.PIDs) == 1 {
		return reason
	}
	return k.Reason
}

// aboutPID cuts a reason that is about one process ("pid 12: it is ...") at the colon. The PID is 0
// when it is about all.
func aboutPID(k reap.Kept) (pid int, reason string) {
	for _, pid := range k.PIDs {
		if rest, ok := strings.CutPrefix(k.Reason, fmt.Sprintf("pid %d: ", pid)); ok {
			return pid, rest
		}
	}
	return 0, k.Reason
}

// named is an instance as a sentence has it: "mcp-echo (pid 11896, 11895)".
func named(server, pids string) string {
	if server == "" {
		return "pid " + pids
	}
	return server + " (pid " + pids + ")"
}

// fewPIDs is how many PIDs are named in one place unless all are asked for.
const fewPIDs = 4

// most is how many PIDs are to be named in one place; 0 for all.
func (p *printer) most() int {
	if p.o.Verbose {
		return 0
	}
	return fewPIDs
}

// pidList joins PIDs. Of a long list only so many are named; all when most is 0.
func pidList(pids []int, most int) string {
	more := ""
	if over := len(pids) - most; most > 0 && over > 1 { // "and 1 more" is no shorter than the one
		pids, more = pids[:most], fmt.Sprintf(" and %d more", over)
	}
	words := make([]string, len(pids))
	for i, pid := range pids {
		words[i] = strconv.Itoa(pid)
	}
	return strings.Join(words, ", ") + more
}

// pidsOf returns the PIDs of an instance in the order in which they are asked to end.
func pidsOf(d reap.PlannedInstance) []int {
	out := make([]int, len(d.Processes))
	for i, s := range d.Processes {
		out[i] = s.PID
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

// worker returns the process of an instance that does the work: the topmost of its role, below the
// launchers.
func worker(d reap.PlannedInstance) reap.Target {
	var out reap.Target
	for i, s := range d.Processes {
		if i == 0 || s.Role == string(d.Role) && (d.Role != process.RoleHelper || s.PID == d.RootPID) {
			out = s
		}
	}
	return out
}
