package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"

	"mcpdoctor/rules/diagnose"
	"mcpdoctor/rules/format"
)

// EndpointJSON writes what was asked of an endpoint as one JSON value, to the contract that
// [diagnose.EndpointReport] is.
func EndpointJSON(w io.Writer, r *diagnose.EndpointReport) error {
	return writeJSON(w, clean(r))
}

// EndpointText writes it for people: each question with its verdict and answer, what that means, and
// what to change.
func EndpointText(w io.Writer, r *diagnose.EndpointReport, o Options) error {
	p := newPrinter(w, o)
	r = clean(r)
	p.endpointSummary(r)
	p.line("")
	p.verdicts(r.Verdicts)
	p.line("")
	p.wrapped("restart", r.Restart)
	p.wrapped("growth", r.Growth)
	if r.Left != "" {
		p.wrapped("left", r.Left)
	}
	for _, s := range r.Problems {
		p.wrapped("note", s)
	}
	for _, f := range r.Findings {
		p.finding(f)
	}
	if o.Verbose {
		p.exchanges(r)
	}
	return p.err
}

func (p *printer) endpointSummary(r *diagnose.EndpointReport) {
	failed, unsure := 0, 0
	for _, v := range r.Verdicts {
		switch v.Verdict {
		case diagnose.Failed:
			failed++
		case diagnose.Unsure:
			unsure++
		}
	}
	line := p.s.good.Render("All well.")
	switch {
	case failed > 0:
		line = p.s.err.Render(fmt.Sprintf("%d of %s failed.", failed, format.Count(len(r.Verdicts), "question")))
	case unsure > 0:
		line = p.s.good.Render("Nothing failed.")
	}
	if unsure > 0 {
		line += fmt.Sprintf(" %d cannot be answered.", unsure)
	}
	p.line(line)
	where := r.URL
	if name := strings.TrimSpace(r.Server.Name + " " + r.Server.Version); name != "" {
		where += ", which calls itself " + name
	}
	if q := r.Process; q != nil {
		where += fmt.Sprintf("; pid %d is %s", q.PID, q.Name)
		if q.Mode != "" {
			where += " (" + q.Mode + ")"
		}
	}
	for _, l := range p.wrap(where, 0) {
		p.line(p.s.dim.Render(l))
	}
}

// verdicts writes the table. The answers are its last column, and are wrapped rather than cut.
func (p *printer) verdicts(rows []diagnose.EndpointVerdict) {
	question, verdict := lipgloss.Width("QUESTION"), lipgloss.Width("VERDICT")
	for _, v := range rows {
		question, verdict = max(question, lipgloss.Width(v.Question)), max(verdict, lipgloss.Width(string(v.Verdict)))
	}
	line := func(q, v, a string) string {
		return "  " + pad(q, question) + "  " + pad(v, verdict) + "  " + a
	}
	p.line(p.s.dim.Render(line("QUESTION", "VERDICT", "ANSWER")))
	style := map[diagnose.EndpointOutcome]lipgloss.Style{diagnose.OK: p.s.good, diagnose.Failed: p.s.err, diagnose.Unsure: p.s.warn, diagnose.Note: p.s.info}
	for _, v := range rows {
		for i, l := range p.wrap(v.Answer, question+verdict+6) {
			if i == 0 {
				p.line(line(v.Question, style[v.Verdict].Render(string(v.Verdict)), l))
			} else {
				p.line(line("", "", l))
			}
		}
	}
}

// exchanges writes what was sent and what came back, in order.
func (p *printer) exchanges(r *diagnose.EndpointReport) {
	p.line("")
	p.line(p.s.bold.Render(fmt.Sprintf("All questions, of %s", format.Count(r.Requests, "request"))))
	t := table{head: []string{"MS", "SENT", "ANSWER"}, own: true}
	for _, x := range r.Exchanges {
		t.row(fmt.Sprint(x.DurationMS), x.Sent, x.Answer.Words())
	}
	p.table(t)
}

// pad fills a text, which may be styled, up to so many cells.
func pad(s string, cells int) string {
	return s + strings.Repeat(" ", max(0, cells-lipgloss.Width(s)))
}
