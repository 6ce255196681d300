package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"mcpdoctor/rules/diagnose"
	"mcpdoctor/rules/format"
)

// EndpointJSON writes the diagnosis of an endpoint as one JSON value.
func EndpointJSON(w io.Writer, r *diagnose.EndpointReport) error { return writeJSON(w, clean(r)) }

// EndpointText writes it for people: the result, the checks, what they mean, and what to change.
func EndpointText(w io.Writer, r *diagnose.EndpointReport, o Options) error {
	p := newPrinter(w, o)
	r = clean(r)
	var rows []diagnose.Row
	for _, v := range r.Verdicts {
		rows = append(rows, v.Row)
	}
	p.tally(rows)
	where := r.URL
	if name := strings.TrimSpace(r.Server.Name + " " + r.Server.Version); name != "" {
		where += ", server " + name
	}
	if q := r.Process; q != nil {
		where += fmt.Sprintf("; pid %d is %s", q.PID, q.Name)
		if q.Mode != "" {
			where += " (" + q.Mode + ")"
		}
	}
	p.dimmed(where)
	p.line("")
	p.verdicts(rows)
	p.line("")
	p.wrapped("restart", r.Restart)
	p.wrapped("growth", r.Growth)
	if r.Left != "" {
		p.wrapped("left", r.Left)
	}
	p.notes(r.Problems)
	for _, f := range r.Findings {
		p.finding(f)
	}
	if o.Verbose {
		p.heading("All questions, " + format.Count(r.Requests, "request"))
		t := table{head: []string{"MS", "SENT", "ANSWER"}, own: true}
		for _, x := range r.Exchanges {
			t.row(x.DurationMS, x.Sent, x.Answer.Words())
		}
		p.table(t)
	}
	return p.err
}

func (p *printer) dimmed(s string) {
	for _, l := range p.wrap(s, 0) {
		p.line(p.s.dim.Render(l))
	}
}

// tally writes how many checks failed and how many are inconclusive.
func (p *printer) tally(rows []diagnose.Row) {
	count := map[diagnose.Verdict]int{}
	for _, r := range rows {
		count[r.Verdict]++
	}
	inconclusive := ""
	if n := count[diagnose.Unsure]; n > 0 {
		inconclusive = fmt.Sprintf("; %d inconclusive", n)
	}
	switch failed := count[diagnose.Failed]; {
	case failed > 0:
		p.line(p.s.err.Render(fmt.Sprintf("%d of %s failed", failed, format.Count(len(rows), "check"))) + inconclusive + ".")
	case inconclusive != "":
		p.line(p.s.good.Render("No check failed") + inconclusive + ".")
	default:
		p.line(p.s.good.Render("All checks passed."))
	}
}

// verdicts writes the table of the checks. The answers are its last column, and are wrapped rather than cut.
func (p *printer) verdicts(rows []diagnose.Row) {
	style := map[diagnose.Verdict]lipgloss.Style{diagnose.OK: p.s.good, diagnose.Failed: p.s.err, diagnose.Unsure: p.s.warn, diagnose.Note: p.s.info}
	check, verdict := len("CHECK"), len("VERDICT")
	for _, r := range rows {
		check, verdict = max(check, len(r.Question)), max(verdict, len(r.Verdict))
	}
	p.line(p.s.dim.Render(fmt.Sprintf("  %-*s  %-*s  ANSWER", check, "CHECK", verdict, "VERDICT")))
	for _, r := range rows {
		question, mark := r.Question, style[r.Verdict].Render(string(r.Verdict))+strings.Repeat(" ", verdict-len(r.Verdict))
		for _, l := range p.wrap(r.Answer, check+verdict+6) {
			p.line(fmt.Sprintf("  %-*s  %s  %s", check, question, mark, l))
			question, mark = "", strings.Repeat(" ", verdict)
		}
	}
}
