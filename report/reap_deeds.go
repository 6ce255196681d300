package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"mcpdoctor/rules"
	"mcpdoctor/rules/format"
	"mcpdoctor/rules/reap"
	"mcpdoctor/scan/terminate"
)

// Deeds writes for people what a reap did: a line for each instance, one total, and what was kept.
// Each line says all by itself, since cron mails them and people search for them. It writes nothing
// at all when the plan had no instances: cron is to be quiet then.
func Deeds(w io.Writer, p *reap.Plan, o Options) error {
	if len(p.Instances) == 0 {
		return nil
	}
	out := printer{w: w, o: o, s: newStyles(w, o.Color)}
	p = clean(p)
	var over []reap.PlannedInstance
	for _, d := range p.Instances {
		out.deed(d)
		if d.Outcome.Exited() {
			over = append(over, d)
		}
	}
	for _, l := range out.wrap(total(p), 0) {
		out.line(out.s.bold.Render(l))
	}
	for _, words := range causes(p) {
		out.hanging(words)
	}
	for _, words := range out.leftWords(over) {
		out.hanging("left " + words)
	}
	for _, words := range out.keptWords(p) {
		out.hanging("kept " + words)
	}
	for _, s := range p.Problems {
		out.hanging("note: " + s)
	}
	return out.err
}

// causes says once of each finding what made its instances leak. What orphans have lost says nothing
// that their lines do not say.
func causes(p *reap.Plan) []string {
	var out []string
	for _, group := range byFinding(p.Instances) {
		d := group[0]
		if d.Rule == "orphan" || !slices.ContainsFunc(group, func(d reap.PlannedInstance) bool {
			return d.Outcome == terminate.Ended || d.Outcome == terminate.Killed
		}) {
			continue
		}
		out = append(out, "cause: "+d.Title+"; what to change: mcpdoctor explain "+d.Rule)
	}
	return out
}

// hanging writes a line, and on a terminal goes on below it a little to the right.
func (p *printer) hanging(text string) {
	for i, l := range p.wrap(text, 2) {
		p.line([]string{"", "  "}[min(i, 1)] + l)
	}
}

// deed says what became of one instance. All of its PIDs are named.
func (p *printer) deed(d reap.PlannedInstance) {
	word, why := p.fate(d)
	who := named(d.Server, pidList(pidsOf(d), 0))
	if !d.Started.IsZero() {
		who += ", " + seconds(d.AgeSeconds) + " old"
	}
	p.hanging(word + " " + who + memory(d.RSSBytes) + ": " + d.Rule + ", " + why)
}

// fate is the word for what became of an instance, and what is to be said behind the rule.
func (p *printer) fate(d reap.PlannedInstance) (word, why string) {
	title := "which this version does not know"
	if rule := rules.Lookup(d.Rule); rule != nil {
		title = rule.Title
	}
	switch d.Outcome {
	case terminate.Ended:
		return p.s.good.Render("ended"), title
	case terminate.Killed:
		return p.s.good.Render("killed"), title + "; " + deaf(d)
	case terminate.Gone:
		return p.s.good.Render("gone"), "it had ended before it was asked to"
	case reap.Skipped:
		return p.s.info.Render("spared"), d.Reason
	case reap.Planned:
		return p.s.err.Render("still there:"), "nothing was done yet"
	case terminate.Unasked, terminate.Unsettled:
		return p.s.err.Render("still there (interrupted):"), each(d)
	}
	return p.s.err.Render(fmt.Sprintf("still there (%s):", d.Outcome)), each(d)
}

// deaf says who had to be killed.
func deaf(d reap.PlannedInstance) string {
	var pids []int
	for _, s := range d.Processes {
		if s.Outcome == terminate.Killed {
			pids = append(pids, s.PID)
		}
	}
	if len(pids) == len(d.Processes) {
		return "it did not end when it was asked to"
	}
	return "pid " + pidList(pids, 0) + " did not end when asked to"
}

// each says what became of the processes of an instance of which something is left: first of those
// that are there, together of who has the same reason.
func each(d reap.PlannedInstance) string {
	reason := func(s reap.Target) string {
		if s.Outcome.Exited() {
			return ""
		}
		return cmp.Or(s.Reason, string(s.Outcome))
	}
	groups := grouped(d.Processes, reason)
	if len(groups) == 1 {
		return reason(d.Processes[0])
	}
	var out []string
	var over string
	for _, same := range groups {
		pids := "pid " + pidList(pidsOf(reap.PlannedInstance{Processes: same}), 0)
		if why := reason(same[0]); why != "" {
			out = append(out, pids+": "+why)
		} else {
			over = "; " + pids + " ended"
		}
	}
	return strings.Join(out, "; ") + over
}

// total is what was done, in one line: how much has ended and what came back, and what else became of
// the plan.
func total(plan *reap.Plan) string {
	n := map[terminate.Outcome]int{}
	processes := 0
	for _, d := range plan.Instances {
		n[d.Outcome]++
		for _, s := range d.Processes {
			if s.Outcome == terminate.Ended || s.Outcome == terminate.Killed {
				processes++
			}
		}
	}
	return sentences(
		endedWords(plan.Summary, n[terminate.Ended]+n[terminate.Killed], n[terminate.Killed], processes),
		counts("", count{n[terminate.Gone], "gone already"}, count{n[reap.Skipped], "spared"}),
		counts("Still there: ", count{n[terminate.Refused], "refused"}, count{n[terminate.Survived], "survived"},
			count{n[terminate.Unasked] + n[terminate.Unsettled], "interrupted"}, count{n[reap.Planned], "not begun"}),
	)
}

func endedWords(s reap.Summary, instances, byForce, processes int) string {
	if processes == 0 {
		return "Nothing was ended"
	}
	who := format.Count(instances, "instance")
	if instances == 0 {
		who = "No instance as a whole"
	}
	words := fmt.Sprintf("%s ended (%s", who, format.Count(processes, "process"))
	if s.PSSBytes > 0 {
		words += "); " + format.Bytes(s.PSSBytes) + " came back (PSS)"
	} else {
		words += memory(s.RSSBytes) + ")"
	}
	if byForce > 0 {
		words += fmt.Sprintf("; %d had to be killed", byForce)
	}
	return words
}

// count is so many instances of which the same is to be said.
type count struct {
	n     int
	words string
}

// counts joins those that are more than none: "1 refused, 2 survived".
func counts(label string, of ...count) string {
	var out []string
	for _, c := range of {
		if c.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", c.n, c.words))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return label + strings.Join(out, ", ")
}

// sentences joins what is not empty.
func sentences(of ...string) string {
	var out []string
	for _, s := range of {
		if s != "" {
			out = append(out, s+".")
		}
	}
	return strings.Join(out, " ")
}
