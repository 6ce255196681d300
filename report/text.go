package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"

	"mcpdoctor/rules"
	"mcpdoctor/rules/format"
)

// Options are how a text is to look.
type Options struct {
	Width   int    // of the terminal, in cells; 0 for no terminal: nothing is wrapped or cut to fit
	Color   bool   // whether escape codes may be used
	Asked   string // what the findings were limited to ("by rule orphan"); empty for all
	Verbose bool   // every process of a finding, and every server with the reason why it is kept
}

// Text writes a report for people: what is wrong first, each finding with its evidence, its
// processes and its remedy, and a calm line when nothing is.
func Text(w io.Writer, r *rules.Report, o Options) error {
	p := printer{w: w, o: o, s: newStyles(w, o.Color)}
	r = clean(r)
	p.summary(r)
	for _, f := range r.Findings {
		p.finding(f)
	}
	if o.Verbose {
		p.servers(r)
	}
	p.problems(r)
	return p.err
}

// printer writes lines and keeps the first error, so that no caller has to look at each.
type printer struct {
	w   io.Writer
	o   Options
	s   styles
	err error
}

func (p *printer) line(s string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, strings.TrimRight(s, " ")+"\n")
	}
}

// wrapped writes a text behind a label, and goes on below the text's beginning.
func (p *printer) wrapped(label, text string) {
	const column = 8
	indent := strings.Repeat(" ", column)
	head := p.s.dim.Render(label) + indent[min(len(label), column-1):]
	for i, l := range p.wrap(text, column) {
		if i == 0 {
			p.line(head + l)
		} else {
			p.line(indent + l)
		}
	}
}

// wrap cuts a text into lines that fit beside so many cells, at spaces. Words that are longer stay
// whole, so that a path can still be copied. In a pipe nothing is wrapped.
func (p *printer) wrap(text string, used int) []string {
	if p.o.Width == 0 {
		return []string{text}
	}
	const least = 30 // narrower columns are worse to read than lines that run over
	width := max(p.o.Width-used, least)
	var lines []string
	line, cells := "", 0
	for _, word := range strings.Fields(text) {
		n := lipgloss.Width(word)
		if line != "" && cells+1+n > width {
			lines = append(lines, line)
			line, cells = "", 0
		}
		if line != "" {
			line, cells = line+" ", cells+1
		}
		line, cells = line+word, cells+n
	}
	return append(lines, line)
}

func (p *printer) summary(r *rules.Report) {
	s := r.Summary
	switch {
	case len(r.Findings) > 0:
		p.line(p.headline(r))
	case r.Parentless:
		p.line(p.s.warn.Render("Nothing can be told.") + " The table does not say who started whom, so that a leak looks like a server in use.")
	case p.o.Asked != "":
		p.line("Nothing was found " + p.o.Asked + "; there may be other findings.")
	case s.Servers+s.Gateways == 0:
		p.line(p.s.good.Render("No leaks.") + " No MCP server was recognised.")
	default:
		p.line(p.s.good.Render("No leaks.") + " Every MCP server that was recognised has an owner, or a reason to be there.")
	}
	line := fmt.Sprintf("%s, %s, %s", format.Count(s.Servers, "server"), format.Count(s.Gateways, "gateway"), format.Count(s.Clients, "client"))
	if s.RSSBytes > 0 || s.Servers+s.Gateways == 0 {
		line += "; " + format.Bytes(s.RSSBytes) + " RSS"
	}
	if s.SwapBytes > 0 {
		line += ", " + format.Bytes(s.SwapBytes) + " swap"
	}
	line += fmt.Sprintf(" (of %s)", format.Count(s.Processes, "process"))
	p.line(p.s.dim.Render(line))
}

// headline is what a worried person needs first: how much can be had back, and from how many.
func (p *printer) headline(r *rules.Report) string {
	c := r.Summary.Findings
	var parts []string
	if c.Error > 0 {
		parts = append(parts, p.s.err.Render(format.Count(c.Error, "leak")))
	}
	if c.Warning > 0 {
		parts = append(parts, p.s.warn.Render(format.Count(c.Warning, "warning")))
	}
	if c.Info > 0 {
		parts = append(parts, p.s.info.Render(format.Count(c.Info, "note")))
	}
	line := strings.Join(parts, ", ") + ". "
	if n := r.Summary.Reapable; n.Processes > 0 {
		return line + p.s.bold.Render(fmt.Sprintf("%s (%s, %s RSS) can be ended safely.", format.Count(n.Instances, "instance"), format.Count(n.Processes, "process"), format.Bytes(n.RSSBytes)))
	}
	return line + "Nothing is to be ended without a look at it first."
}

func (p *printer) finding(f rules.Finding) {
	p.line("")
	style := map[rules.Severity]lipgloss.Style{rules.Error: p.s.err, rules.Warning: p.s.warn, rules.Info: p.s.info}[f.Severity]
	label := strings.ToUpper(string(f.Severity))
	for i, l := range p.wrap(f.Title, len(label)+1) {
		if i == 0 {
			p.line(style.Render(label) + " " + p.s.bold.Render(l))
		} else {
			p.line(strings.Repeat(" ", len(label)+1) + p.s.bold.Render(l))
		}
	}
	p.wrapped("rule", fmt.Sprintf("%s, %s", f.Rule, f.Confidence))
	for i, e := range f.Evidence {
		p.wrapped(first(i, "why"), e)
	}
	p.tree(f)
	p.wrapped("fix", f.Remedy.Summary)
	for _, s := range f.Remedy.Steps {
		p.wrapped("", s)
	}
	for i, c := range f.Remedy.Commands {
		p.line(p.s.dim.Render(first(i, "run")) + strings.Repeat(" ", 8-len(first(i, "run"))) + c)
	}
}

func first(i int, label string) string {
	if i == 0 {
		return label
	}
	return ""
}

func (p *printer) servers(r *rules.Report) {
	if len(r.Servers) > 0 {
		p.line("")
		p.line(p.s.bold.Render("All servers"))
		t := table{head: []string{"PID", "AGE", "RSS", "VERDICT", "SERVER", "BECAUSE"}}
		for _, s := range r.Servers {
			t.row(fmt.Sprint(s.RootPID), age(s.AgeSeconds, s.Started), format.Bytes(s.RSSBytes), string(s.Verdict), s.Server, with(s.Because, "; ", s.Mode))
		}
		p.table(t)
	}
	for _, list := range []struct {
		title string
		of    []rules.Owning
	}{{"Gateways", r.Gateways}, {"Clients", r.Clients}} {
		if len(list.of) == 0 {
			continue
		}
		p.line("")
		p.line(p.s.bold.Render(list.title))
		t := table{head: []string{"PID", "AGE", "RSS", "SERVERS", "NAME"}}
		for _, o := range list.of {
			t.row(fmt.Sprint(o.PID), age(o.AgeSeconds, o.Started), format.Bytes(o.RSSBytes), fmt.Sprint(o.Servers), with(strings.TrimSpace(o.Name+" "+o.Version+" "+strings.Join(o.Listen, " ")), "; ", o.Mode))
		}
		p.table(t)
	}
}

// with adds what is known besides.
func with(s, joint, more string) string {
	if more == "" {
		return s
	}
	return s + joint + more
}

func (p *printer) problems(r *rules.Report) {
	if n := r.Summary.Unreadable; n > 0 {
		p.line("")
		p.wrapped("note", fmt.Sprintf("%s could not be seen in full", format.Count(n, "process")))
	}
	for _, s := range r.Problems {
		p.wrapped("note", s)
	}
}

// age returns "-" for a process whose start is not known, as opposed to one just begun.
func age(seconds int64, started time.Time) string {
	if started.IsZero() {
		return "-"
	}
	return format.Age(time.Duration(seconds) * time.Second)
}
