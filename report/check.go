package report

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"mcpdoctor/rules/diagnose"
	"mcpdoctor/rules/format"
)

// CheckJSON writes a check as one JSON value.
func CheckJSON(w io.Writer, c *diagnose.StdioReport) error { return writeJSON(w, clean(c)) }

// CheckText writes a check for people: the result, the processes of the server, the checks, and for each that failed
// the reasons and what to change.
func CheckText(w io.Writer, c *diagnose.StdioReport, o Options) error {
	p := newPrinter(w, o)
	c = clean(c)
	var rows []diagnose.Row
	for _, r := range c.Rows {
		rows = append(rows, r.Row)
	}
	p.tally(rows)
	p.server(c.Server)
	p.line("")
	p.layers(c.Server.Layers)
	p.line("")
	p.verdicts(rows)
	for i, r := range c.Rows {
		if r.Verdict == diagnose.Failed {
			p.failure(r, c.Rows[:i])
		}
	}
	if len(c.Problems) > 0 {
		p.line("")
	}
	p.notes(c.Problems)
	return p.err
}

// server writes what the server is, and what it costs.
func (p *printer) server(s diagnose.StdioServer) {
	line := fmt.Sprintf("protocol %s, %s", s.Protocol, format.Count(s.Tools, "tool"))
	if name := strings.TrimSpace(s.Name + " " + s.Version); name != "" {
		line = name + ": " + line
	}
	if len(s.StartupSeconds) > 0 {
		least, most := fmt.Sprintf("%.1f", max(slices.Min(s.StartupSeconds), 0.1)), fmt.Sprintf("%.1f", max(slices.Max(s.StartupSeconds), 0.1))
		line += ", started in " + least
		if least != most {
			line += " to " + most
		}
		line += " s"
	}
	if s.RSSBytes != nil {
		line += "; idle: " + format.Bytes(*s.RSSBytes) + " RSS"
		if s.PSSBytes != nil {
			line += ", " + format.Bytes(*s.PSSBytes) + " PSS"
		}
		line += " in " + format.Count(len(s.Layers), "process")
	}
	p.dimmed(line)
}

// layers writes the processes of an idle server, each under its parent.
func (p *printer) layers(layers []diagnose.Layer) {
	t := table{head: []string{"PID", "RSS", "PSS", "LAYER", "COMMAND"}}
	depth := map[int]int{} // 1 for the root
	shown := abridged(layers)
	for _, l := range shown {
		name := l.Name
		if d := depth[l.PPID]; d > 0 {
			name = strings.Repeat("   ", d-1) + "└─ " + name
		}
		depth[l.PID] = depth[l.PPID] + 1
		t.row(l.PID, size(l.RSSBytes), size(l.PSSBytes), name, l.Command)
	}
	p.table(t)
	p.more(len(layers) - len(shown))
}

// abridged returns the beginning of a long list. One item more than fits is kept too: the line that says so would
// take its place.
func abridged[T any](items []T) []T {
	const most = 10
	if len(items) <= most+1 {
		return items
	}
	return items[:most]
}

// more says how many items were left out.
func (p *printer) more(n int) {
	if n > 0 {
		p.line(p.s.dim.Render(fmt.Sprintf("  and %d more, see --json", n)))
	}
}

// failure writes why a check failed, what kept running, and what to change unless an earlier check has said that.
func (p *printer) failure(r diagnose.StdioRow, before []diagnose.StdioRow) {
	p.line("")
	p.line(p.s.err.Render("FAILED") + " " + p.s.bold.Render(r.Question))
	because, left := abridged(r.Because), abridged(r.Left)
	p.wrapped("why", because...)
	p.more(len(r.Because) - len(because))
	if len(left) > 0 {
		t := table{head: []string{"PID", "CPU", "RSS", "LAYER", "PARENT NOW", "COMMAND"}}
		for _, l := range left {
			cpu := "-"
			if l.CPUPercent != nil {
				cpu = fmt.Sprintf("%.0f %%", *l.CPUPercent)
			}
			parent := l.Parent
			if l.Adopted {
				parent = "adopted: " + parent
			}
			t.row(l.PID, cpu, size(l.RSSBytes), l.Name, parent, l.Command)
		}
		p.table(t)
		p.more(len(r.Left) - len(left))
	}
	if r.Remedy == nil {
		return
	}
	if slices.ContainsFunc(before, func(b diagnose.StdioRow) bool { return reflect.DeepEqual(b.Remedy, r.Remedy) }) {
		p.wrapped("fix", "as above")
		return
	}
	p.wrapped("fix", r.Remedy.Steps...)
	if code := r.Remedy.Code; code != nil {
		p.wrapped("", "code, "+code.Where+":")
		p.line("")
		p.code(*code)
		p.line("")
	}
	for _, c := range r.Remedy.Commands {
		p.copied("run", c)
	}
	if e := r.Remedy.Entry; e != nil {
		p.copied("start", commandOf(e.Command, e.Args))
	}
	if r.Remedy.Rule != "" {
		p.copied("run", "mcpdoctor explain "+r.Remedy.Rule)
	}
}
