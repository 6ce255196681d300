package report

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"mcpdoctor/rules/diagnose"
	"mcpdoctor/rules/format"
)

// CheckJSON writes a check as one JSON value, to the contract that [diagnose.StdioReport] is.
func CheckJSON(w io.Writer, c *diagnose.StdioReport) error { return writeJSON(w, clean(c)) }

// CheckText writes a check for people: what it comes to, the server at rest, then each question with
// its answer, and what to change.
func CheckText(w io.Writer, c *diagnose.StdioReport, o Options) error {
	p := newPrinter(w, o)
	c = clean(c)
	p.checkSummary(c)
	p.line("")
	p.layers(c.Server.Layers)
	p.line("")
	t := table{head: []string{"VERDICT", "QUESTION", "ANSWER"}}
	for _, r := range c.Rows {
		t.row(string(r.Verdict), r.Question, r.Answer)
	}
	p.table(t)
	for i, r := range c.Rows {
		switch r.Verdict {
		case diagnose.CheckFailed:
			p.failedRow(r, c.Rows[:i])
		case diagnose.CheckUnknown:
			p.line("")
			p.line(p.s.warn.Render("CANNOT TELL") + " " + p.s.bold.Render(r.Question+"?"))
			p.wrapped("why", r.Answer)
		}
	}
	if len(c.Problems) > 0 {
		p.line("")
	}
	for _, s := range c.Problems {
		p.wrapped("note", s)
	}
	return p.err
}

func (p *printer) checkSummary(c *diagnose.StdioReport) {
	s := c.Server
	name := strings.TrimSpace(s.Name + " " + s.Version)
	if name == "" {
		name = "the server"
	}
	switch {
	case c.Failed > 0:
		p.line(p.s.err.Render(fmt.Sprintf("%d of %d failed.", c.Failed, len(c.Rows))) + " " + p.s.bold.Render(name))
	case c.Unknown > 0:
		p.line(p.s.warn.Render(fmt.Sprintf("%d of %d cannot be told.", c.Unknown, len(c.Rows))) + " " + p.s.bold.Render(name))
	default:
		p.line(p.s.good.Render("All is well.") + " " + p.s.bold.Render(name) + " leaves nothing behind.")
	}
	line := fmt.Sprintf("protocol %s, %s, answers %s after its start", s.Protocol, format.Count(s.Tools, "tool"), between(s.StartupSeconds))
	if s.RSSBytes != nil {
		line += "; at rest " + format.Bytes(*s.RSSBytes) + " RSS"
		if s.PSSBytes != nil {
			line += ", " + format.Bytes(*s.PSSBytes) + " PSS"
		}
		line += " in " + format.Count(len(s.Layers), "process")
	}
	p.line(p.s.dim.Render(line))
}

// between writes the shortest and the longest of a few times: the first start often takes longer.
func between(seconds []float64) string {
	if len(seconds) == 0 {
		return "-"
	}
	least, most := seconds[0], seconds[0]
	for _, s := range seconds {
		least, most = min(least, s), max(most, s)
	}
	const shown = 0.1 // in steps of which they are written
	least, most = max(least, shown), max(most, shown)
	if fmt.Sprintf("%.1f", least) == fmt.Sprintf("%.1f", most) {
		return fmt.Sprintf("%.1f s", most)
	}
	return fmt.Sprintf("%.1f to %.1f s", least, most)
}

// layers writes the processes at rest, each under its parent.
func (p *printer) layers(layers []diagnose.Layer) {
	t := table{head: []string{"PID", "RSS", "PSS", "LAYER", "COMMAND"}}
	depth := map[int]int{}
	for _, l := range layers[:p.shown(len(layers))] {
		d := 0
		if up, ok := depth[l.PPID]; ok {
			d = up + 1
		}
		depth[l.PID] = d
		name := strings.Repeat("   ", max(0, d-1)) + strings.Repeat("└─ ", min(d, 1)) + l.Name
		t.row(fmt.Sprint(l.PID), size(l.RSSBytes), size(l.PSSBytes), name, l.Command)
	}
	p.table(t)
	p.hidden(len(layers))
}

// shown is how many of the processes of a server are written: one more than fit is written too, since
// the line that says so takes as much.
func (p *printer) shown(n int) int {
	const most = 10
	if n <= most+1 {
		return n
	}
	return most
}

// hidden says how many of them are not.
func (p *printer) hidden(n int) {
	if more := n - p.shown(n); more > 0 {
		p.line(p.s.dim.Render(fmt.Sprintf("  and %d more, which --json has", more)))
	}
}

// failedRow writes a question that failed: why, who stayed, and what to change. What was said of an
// earlier one already is not said again.
func (p *printer) failedRow(r diagnose.CheckRow, before []diagnose.CheckRow) {
	p.line("")
	p.line(p.s.err.Render("FAILED") + " " + p.s.bold.Render(r.Question+"?"))
	p.wrapped("why", r.Because[:p.shown(len(r.Because))]...)
	p.hidden(len(r.Because))
	if len(r.Left) > 0 {
		t := table{head: []string{"PID", "CPU", "RSS", "LAYER", "PARENT NOW", "COMMAND"}}
		for _, l := range r.Left[:p.shown(len(r.Left))] {
			cpu := "-"
			if l.CPUPercent != nil {
				cpu = fmt.Sprintf("%.0f %%", *l.CPUPercent)
			}
			parent := l.Parent
			if l.Adopted {
				parent = "adopted: " + parent
			}
			t.row(fmt.Sprint(l.PID), cpu, size(l.RSSBytes), l.Name, parent, l.Command)
		}
		p.table(t)
		p.hidden(len(r.Left))
	}
	if r.Remedy == nil {
		return
	}
	for _, b := range before {
		if b.Verdict == diagnose.CheckFailed && reflect.DeepEqual(b.Remedy, r.Remedy) {
			p.wrapped("fix", "as above")
			return
		}
	}
	p.checkRemedy(r.Remedy)
}

func (p *printer) checkRemedy(r *diagnose.CheckRemedy) {
	p.wrapped("fix", r.Steps...)
	if r.Code != nil {
		p.wrapped("", "code, "+r.Code.Where+":")
		p.line("")
		p.code(*r.Code)
		p.line("")
	}
	for _, c := range r.Commands {
		p.copied("run", c)
	}
	if r.Entry != nil {
		p.copied("start", commandOf(r.Entry.Command, r.Entry.Args))
	}
	if r.Rule != "" {
		p.copied("run", "mcpdoctor explain "+r.Rule)
	}
}
