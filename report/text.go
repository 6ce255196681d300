package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"

	"mcpdoctor/rules"
	"mcpdoctor/rules/format"
)

// Options are how a text looks.
type Options struct {
	Width   int    // of the terminal, in cells; 0 for no terminal: nothing is wrapped or cut to fit
	Color   bool   // whether escape codes may be used
	Asked   string // what the findings were limited to ("by rule orphan"); empty for all
	Verbose bool   // every process of a finding, and every server with the reason for its verdict
}

// Text writes a report for people: the worst finding first, each with its evidence, processes and remedy.
func Text(w io.Writer, r *rules.Report, o Options) error {
	p := newPrinter(w, o)
	r = clean(r)
	p.summary(r)
	for _, f := range r.Findings {
		p.finding(f)
	}
	if o.Verbose {
		p.servers(r)
		p.owners("Gateways", r.Gateways)
		p.owners("Clients", r.Clients)
	}
	if n := r.Summary.Unreadable; n > 0 {
		p.line("")
		p.wrapped("note", format.Count(n, "process")+" could not be read completely")
	}
	p.notes(r.Problems)
	return p.err
}

// printer writes lines and keeps the first error.
type printer struct {
	w   io.Writer
	o   Options
	s   styles
	err error
}

func newPrinter(w io.Writer, o Options) *printer {
	return &printer{w: w, o: o, s: newStyles(w, o.Color)}
}

func (p *printer) line(s string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, strings.TrimRight(s, " ")+"\n")
	}
}

func (p *printer) heading(s string) {
	p.line("")
	p.line(p.s.bold.Render(s))
}

// hanging writes a text behind a head, and goes on below it behind an indent.
func (p *printer) hanging(head, indent, text string, style lipgloss.Style) {
	for _, l := range p.wrap(text, len(indent)) {
		p.line(head + style.Render(l))
		head = indent
	}
}

// labels are written in a column of this width.
const labelWidth = 8

func (p *printer) label(s string) string {
	space := strings.Repeat(" ", max(1, labelWidth-len(s)))
	if s == "" {
		return space
	}
	return p.s.dim.Render(s) + space
}

// wrapped writes texts in the column beside a label.
func (p *printer) wrapped(label string, texts ...string) {
	for _, text := range texts {
		p.hanging(p.label(label), p.label(""), text, p.s.plain)
		label = ""
	}
}

// copied writes lines beside a label as they are, so that they can be copied from the terminal.
func (p *printer) copied(label string, lines ...string) {
	for _, l := range lines {
		p.line(p.label(label) + l)
		label = ""
	}
}

func (p *printer) notes(texts []string) {
	for _, text := range texts {
		p.wrapped("note", text)
	}
}

// wrap cuts a text into lines that fit beside so many cells. It breaks at spaces only, so that a path or an option can
// be copied (ansi.Wordwrap also breaks after hyphens). In a pipe nothing is wrapped.
func (p *printer) wrap(text string, used int) []string {
	if p.o.Width == 0 {
		return []string{text}
	}
	const least = 30 // narrower columns are worse to read than lines that run over
	width := max(p.o.Width-used, least)
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case ansi.StringWidth(*last)+1+ansi.StringWidth(word) > width:
			lines = append(lines, word)
		default:
			*last += " " + word
		}
	}
	return lines
}

func (p *printer) summary(r *rules.Report) {
	s := r.Summary
	switch {
	case len(r.Findings) > 0:
		p.line(p.headline(r))
	case r.Parentless:
		p.line(p.s.warn.Render("Leaks cannot be detected.") + " The input has no parent PIDs.")
	case p.o.Asked != "":
		p.line("Nothing was found " + p.o.Asked + ". There may be other findings.")
	case s.Servers+s.Gateways == 0:
		p.line(p.s.good.Render("No leaks.") + " No MCP servers were found.")
	default:
		p.line(p.s.good.Render("No leaks.") + " Every MCP server has a running client or service.")
	}
	line := fmt.Sprintf("%s, %s, %s", format.Count(s.Servers, "server"), format.Count(s.Gateways, "gateway"), format.Count(s.Clients, "client"))
	if s.RSSBytes > 0 || s.Servers+s.Gateways == 0 {
		line += "; " + format.Bytes(s.RSSBytes) + " RSS"
	}
	if s.SwapBytes > 0 {
		line += ", " + format.Bytes(s.SwapBytes) + " swap"
	}
	p.line(p.s.dim.Render(line + " (of " + format.Count(s.Processes, "process") + ")"))
}

// headline counts the findings, and says what can be terminated now.
func (p *printer) headline(r *rules.Report) string {
	c := r.Summary.Findings
	var parts []string
	for _, count := range []struct {
		n     int
		noun  string
		style lipgloss.Style
	}{{c.Error, "leak", p.s.err}, {c.Warning, "warning", p.s.warn}, {c.Info, "note", p.s.info}} {
		if count.n > 0 {
			parts = append(parts, count.style.Render(format.Count(count.n, count.noun)))
		}
	}
	n := r.Summary.Reapable
	safe := "Nothing is safe to terminate automatically. Review the findings below."
	if n.Processes > 0 {
		safe = p.s.bold.Render(amount(n.Instances, n.Processes, n.RSSBytes) + format.Plural(n.Instances, " is", " are") + " safe to terminate.")
	}
	return strings.Join(parts, ", ") + ". " + safe
}

// amount is a number of instances with what they hold. RSS is left out when it is not known.
func amount(instances, processes int, rss int64) string {
	return fmt.Sprintf("%s (%s%s)", format.Count(instances, "instance"), format.Count(processes, "process"), memory(rss))
}

func memory(rss int64) string {
	if rss == 0 {
		return ""
	}
	return ", " + format.Bytes(rss) + " RSS"
}

func (p *printer) finding(f rules.Finding) {
	p.line("")
	style := map[rules.Severity]lipgloss.Style{rules.Error: p.s.err, rules.Warning: p.s.warn, rules.Info: p.s.info}[f.Severity]
	label := strings.ToUpper(string(f.Severity))
	p.hanging(style.Render(label)+" ", strings.Repeat(" ", len(label)+1), f.Title, p.s.bold)
	p.wrapped("rule", f.Rule+", "+string(f.Confidence))
	p.wrapped("why", f.Evidence...)
	p.tree(f)
	p.wrapped("fix", append([]string{f.Remedy.Summary}, f.Remedy.Steps...)...)
	p.copied("run", f.Remedy.Commands...)
}

func (p *printer) servers(r *rules.Report) {
	if len(r.Servers) == 0 {
		return
	}
	p.heading("All servers")
	t := table{head: []string{"PID", "AGE", "RSS", "VERDICT", "SERVER", "BECAUSE"}}
	for _, s := range r.Servers {
		t.row(s.RootPID, age(s.AgeSeconds, s.Started), format.Bytes(s.RSSBytes), s.Verdict, s.Server, strings.TrimSuffix(s.Because+"; "+s.Mode, "; "))
	}
	p.table(t)
}

func (p *printer) owners(title string, all []rules.Owning) {
	if len(all) == 0 {
		return
	}
	p.heading(title)
	t := table{head: []string{"PID", "AGE", "RSS", "SERVERS", "NAME"}}
	for _, o := range all {
		name := strings.TrimSpace(o.Name + " " + o.Version + " " + strings.Join(o.Listen, " "))
		t.row(o.PID, age(o.AgeSeconds, o.Started), format.Bytes(o.RSSBytes), o.Servers, strings.TrimSuffix(name+"; "+o.Mode, "; "))
	}
	p.table(t)
}

// age is "-" for a process whose start is not known.
func age(n int64, started time.Time) string {
	if started.IsZero() {
		return "-"
	}
	return seconds(n)
}

func seconds(n int64) string { return format.Age(time.Duration(n) * time.Second) }
