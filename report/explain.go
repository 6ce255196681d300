package report

import (
	"io"
	"strings"

	"mcpdoctor/rules"
)

// Explain writes all that is known about one rule.
func Explain(w io.Writer, r *rules.Rule, o Options) error {
	p := newPrinter(w, o)
	p.line(p.s.bold.Render(r.ID) + ": " + r.Title)
	p.line("")
	p.hanging("", "", r.Why, p.s.plain)
	p.section("What it looks for", r.Evidence)
	p.section("When it may be wrong", r.Wrong)
	p.section("What you can change", r.Remedy)
	for _, c := range r.Code {
		p.heading("Code for " + runtimeNames[c.Runtime])
		p.hanging("  ", "  ", c.Where, p.s.plain)
		p.line("")
		p.code(c)
	}
	p.line("")
	p.wrapped("level", string(r.Severity)+", unless the evidence says otherwise")
	p.wrapped("reap", r.Reap)
	if r.Probe {
		p.wrapped("found", "by mcpdoctor probe URL, not by scan")
	}
	return p.err
}

func (p *printer) section(title string, items []string) {
	p.heading(title)
	for _, item := range items {
		p.hanging("  - ", "    ", item, p.s.plain)
	}
}

// RuleList writes one line for each rule.
func RuleList(w io.Writer, all []*rules.Rule, o Options) error {
	p := newPrinter(w, o)
	t := table{head: []string{"ID", "LEVEL", "SAYS"}}
	for _, r := range all {
		t.row(r.ID, r.Severity, r.Title)
	}
	p.table(t)
	return p.err
}

var runtimeNames = map[string]string{"node": "Node", "python": "Python", "go": "Go"}

// code writes a snippet as it is, so that it can be copied.
func (p *printer) code(c rules.Snippet) {
	for l := range strings.SplitSeq(strings.TrimSuffix(c.Code, "\n"), "\n") {
		p.line("    " + strings.ReplaceAll(l, "\t", "    "))
	}
}
