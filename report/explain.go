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
	for _, l := range p.wrap(r.Why, 0) {
		p.line(l)
	}
	p.section("What it wants to see", r.Evidence)
	p.section("When it may be wrong", r.Wrong)
	p.section("What you can change", r.Remedy)
	for _, c := range r.Code {
		p.line("")
		p.line(p.s.bold.Render("Code for " + runtimeNames[c.Runtime]))
		for _, l := range p.wrap(c.Where, 2) {
			p.line("  " + l)
		}
		p.line("")
		p.code(c)
	}
	p.line("")
	p.wrapped("level", string(r.Severity)+", unless the evidence says otherwise")
	p.wrapped("reap", r.Reap)
	if r.Probe {
		p.wrapped("found", "by mcpdoctor probe URL; scan cannot see it")
	}
	return p.err
}

func (p *printer) section(title string, items []string) {
	p.line("")
	p.line(p.s.bold.Render(title))
	for _, item := range items {
		for i, l := range p.wrap(item, 4) {
			p.line([]string{"  - ", "    "}[min(i, 1)] + l)
		}
	}
}

// RuleList writes one line for each rule.
func RuleList(w io.Writer, all []*rules.Rule, o Options) error {
	p := newPrinter(w, o)
	t := table{head: []string{"ID", "LEVEL", "SAYS"}}
	for _, r := range all {
		t.row(r.ID, string(r.Severity), r.Title)
	}
	p.table(t)
	return p.err
}

// runtimeNames are the runtimes of snippets as people write them.
var runtimeNames = map[string]string{"node": "Node", "python": "Python", "go": "Go"}

// code writes a snippet to be copied, so that no line of it is wrapped.
func (p *printer) code(c rules.Snippet) {
	for l := range strings.SplitSeq(strings.TrimSuffix(c.Code, "\n"), "\n") {
		p.line("    " + strings.ReplaceAll(l, "\t", "    "))
	}
}
