package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/rules/reap"
	"mcpdoctor/scan/terminate"
)

// Results writes what a reap did: a line for each instance, one total, and what was kept. Each line is complete by
// itself, since cron mails them and people search for them. A plan without instances gives no output, and so no mail.
func Results(w io.Writer, plan *reap.Plan, o Options) error {
	if len(plan.Instances) == 0 {
		return nil
	}
	p := newPrinter(w, o)
	plan = clean(plan)
	var exited []reap.PlannedInstance
	for _, in := range plan.Instances {
		p.result(in)
		if in.Outcome.Exited() {
			exited = append(exited, in)
		}
	}
	p.hanging("", "", total(plan), p.s.bold)
	for _, group := range []struct {
		label string
		texts []string
	}{{"", causes(plan)}, {"kept ", p.leftWords(exited)}, {"kept ", p.keptWords(plan)}, {"note: ", plan.Problems}} {
		for _, text := range group.texts {
			p.hanging("", "  ", group.label+text, p.s.plain)
		}
	}
	return p.err
}

// causes says what made the instances of each finding leak. The lines of orphans say it already.
func causes(plan *reap.Plan) []string {
	var out []string
	for _, group := range byFinding(plan.Instances) {
		if in := group[0]; in.Rule != "orphan" && slices.ContainsFunc(group, terminated) {
			out = append(out, "cause: "+in.Title+"; to fix it: mcpdoctor explain "+in.Rule)
		}
	}
	return out
}

func terminated(in reap.PlannedInstance) bool {
	return in.Outcome == terminate.Ended || in.Outcome == terminate.Killed
}

// result writes what became of one instance, with all of its PIDs.
func (p *printer) result(in reap.PlannedInstance) {
	outcome, why := p.outcome(in)
	name := named(in.Server, pidList(pidsOf(in.Processes), len(in.Processes)))
	if !in.Started.IsZero() {
		name += ", " + seconds(in.AgeSeconds) + " old"
	}
	p.hanging("", "  ", outcome+" "+name+memory(in.RSSBytes)+": "+in.Rule+", "+why, p.s.plain)
}

// outcome returns the outcome of an instance in words, and the reason.
func (p *printer) outcome(in reap.PlannedInstance) (outcome, why string) {
	title := "a rule that this version does not know"
	if rule := rules.Lookup(in.Rule); rule != nil {
		title = rule.Title
	}
	switch in.Outcome {
	case terminate.Ended:
		return p.s.good.Render("terminated"), title
	case terminate.Killed:
		return p.s.good.Render("killed"), title + "; " + ignoredSIGTERM(in.Processes)
	case terminate.Gone:
		return p.s.good.Render("exited"), "before it was signalled"
	case reap.Skipped:
		return p.s.info.Render("skipped"), in.Reason
	case reap.Planned:
		return p.s.err.Render("still running:"), "nothing was done yet"
	case terminate.NotStarted, terminate.NotFinished:
		return p.s.err.Render("still running (interrupted):"), reasons(in.Processes)
	}
	return p.s.err.Render(fmt.Sprintf("still running (%s):", in.Outcome)), reasons(in.Processes)
}

// ignoredSIGTERM names the processes that had to be killed.
func ignoredSIGTERM(targets []reap.Target) string {
	var pids []int
	for _, t := range targets {
		if t.Outcome == terminate.Killed {
			pids = append(pids, t.PID)
		}
	}
	if len(pids) == len(targets) {
		return "it ignored SIGTERM"
	}
	return "pid " + pidList(pids, len(pids)) + " ignored SIGTERM"
}

// reasons says why processes of an instance are still running, and which exited.
func reasons(targets []reap.Target) string {
	why := func(t reap.Target) string {
		if t.Outcome.Exited() {
			return "exited"
		}
		return cmp.Or(t.Reason, string(t.Outcome))
	}
	groups := grouped(targets, why)
	if len(groups) == 1 {
		return why(targets[0])
	}
	var out []string
	for _, same := range groups {
		out = append(out, "pid "+pidList(pidsOf(same), len(same))+": "+why(same[0]))
	}
	return strings.Join(out, "; ")
}

// total sums up the results in one line.
func total(plan *reap.Plan) string {
	n := map[terminate.Outcome]int{}
	processes := 0
	for _, in := range plan.Instances {
		n[in.Outcome]++
		for _, t := range in.Processes {
			if t.Outcome == terminate.Ended || t.Outcome == terminate.Killed {
				processes++
			}
		}
	}
	line := "Nothing was terminated"
	if s := plan.Summary; processes > 0 {
		line = amount(n[terminate.Ended]+n[terminate.Killed], processes, s.RSSBytes) + " terminated"
		if s.PSSBytes > 0 {
			line += freeing(s.PSSBytes)
		}
	}
	line += counts(", ", count{n[terminate.Killed], "by SIGKILL"})
	line += counts(". ", count{n[terminate.Gone], "had already exited"}, count{n[reap.Skipped], "skipped"})
	line += counts(". Still running: ", count{n[terminate.Refused], "refused"}, count{n[terminate.Survived], "survived"},
		count{n[terminate.NotStarted] + n[terminate.NotFinished], "interrupted"}, count{n[reap.Planned], "not signalled"})
	return line + "."
}

// count is a number of instances with the same outcome.
type count struct {
	n       int
	outcome string
}

// counts joins the outcomes that there are: "1 refused, 2 survived".
func counts(label string, all ...count) string {
	var out []string
	for _, c := range all {
		if c.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", c.n, c.outcome))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return label + strings.Join(out, ", ")
}

// logLine is what became of one instance, complete for a reader who sees no other line.
type logLine struct {
	Time    time.Time         `json:"time"` // when it was written, in UTC
	Host    string            `json:"host,omitempty"`
	Tool    rules.Tool        `json:"tool"`
	Outcome terminate.Outcome `json:"outcome"`
	Reason  string            `json:"reason,omitempty"` // absent if it exited on SIGTERM

	Server     string             `json:"server"`
	Role       process.Role       `json:"role"`
	Rule       string             `json:"rule"`
	Confidence process.Confidence `json:"confidence"`
	Finding    string             `json:"finding"`
	RootPID    int                `json:"root_pid"`
	PIDs       []int              `json:"pids"` // in the order in which they were terminated
	Started    time.Time          `json:"started,omitzero"`
	AgeSeconds int64              `json:"age_seconds"`
	RSSBytes   int64              `json:"rss_bytes"`
	PSSBytes   int64              `json:"pss_bytes,omitempty"` // absent unless known for every process
	Command    string             `json:"command"`             // of the process that did the work

	Processes []logProcess `json:"processes"`
	Left      []reap.Kept  `json:"left,omitempty"`
}

type logProcess struct {
	PID     int               `json:"pid"`
	Outcome terminate.Outcome `json:"outcome"`
	Reason  string            `json:"reason,omitempty"`
}

// PlanLog writes one line of JSON for each instance that has an outcome, and none for one that is only planned. All
// lines are written at once, so that those of two writers to one file do not mix (O_APPEND in open(2)).
func PlanLog(w io.Writer, plan *reap.Plan, now time.Time) error {
	plan = clean(plan)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, in := range plan.Instances {
		if in.Outcome == reap.Planned {
			continue
		}
		l := logLine{
			Time: now.UTC().Truncate(time.Second), Host: plan.Host, Tool: plan.Tool, Outcome: in.Outcome, Reason: in.Reason,
			Server: in.Server, Role: in.Role, Rule: in.Rule, Confidence: in.Confidence, Finding: in.Finding,
			RootPID: in.RootPID, PIDs: pidsOf(in.Processes), Started: in.Started, AgeSeconds: in.AgeSeconds, RSSBytes: in.RSSBytes,
			PSSBytes: in.PSSBytes, Command: worker(in).Command, Processes: []logProcess{}, Left: in.Left,
		}
		for _, t := range in.Processes {
			l.Processes = append(l.Processes, logProcess{t.PID, t.Outcome, t.Reason})
		}
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := w.Write(b.Bytes())
	return err
}
