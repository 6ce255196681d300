package report

import (
	"fmt"
	"io"
	"strings"

	"mcpdoctor/rules/configured"
	"mcpdoctor/rules/format"
	"mcpdoctor/scan/config"
)

// ConfigJSON writes a configuration as one JSON value, to the contract that [configured.Report] is.
func ConfigJSON(w io.Writer, c *configured.Report) error { return writeJSON(w, pass(configGate, c)) }

// ConfigText writes a configuration for people: what is configured, by client and file, how much of it is running, and
// advice. Verbose adds every file that was looked for.
func ConfigText(w io.Writer, c *configured.Report, o Options) error {
	p := newPrinter(w, o)
	c = pass(configGate, c)
	p.configSummary(c)
	for rest := c.Servers; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Client == rest[0].Client && rest[n].File == rest[0].File && rest[n].Project == rest[0].Project {
			n++
		}
		p.configFile(rest[:n])
		rest = rest[n:]
	}
	for _, a := range c.Advice {
		p.advice(a)
	}
	if o.Verbose {
		p.places(c.Places)
	}
	if len(c.Problems) > 0 {
		p.line("")
		p.notes(c.Problems)
	}
	return p.err
}

func (p *printer) configSummary(c *configured.Report) {
	if len(c.Servers) == 0 {
		p.line("No MCP servers are configured. -v lists every file that was looked for.")
		return
	}
	clients := map[string]bool{}
	running := map[int]bool{} // by PID, since one may be an instance of several entries
	for _, s := range c.Servers {
		clients[s.Client] = true
		for _, pid := range s.PIDs {
			running[pid] = true
		}
	}
	p.line(p.s.bold.Render(fmt.Sprintf("%s in %s; %s running.",
		format.Count(len(c.Servers), "configured server"), format.Count(len(clients), "client"), format.Count(len(running), "instance"))))
}

// configFile writes the servers of one file.
func (p *printer) configFile(servers []configured.Server) {
	s := servers[0]
	p.line("")
	head := p.s.bold.Render(s.Client) + "  " + s.File
	if s.Project != "" && !strings.HasPrefix(s.File, s.Project) { // else the path says it already
		head += "  for " + s.Project
	}
	p.line(head)
	t := table{head: []string{"NAME", "RUNS", "RSS", "STARTED AS"}}
	for _, s := range servers {
		runs, rss := "-", "-"
		if s.Instances > 0 {
			runs, rss = fmt.Sprint(s.Instances), format.Bytes(s.RSSBytes)
		}
		if s.Disabled {
			runs = strings.TrimPrefix(runs+" off", "- ")
		}
		t.row(s.Name, runs, rss, startedAs(s))
	}
	p.table(t)
}

// startedAs is the command or URL of a server.
func startedAs(s configured.Server) string {
	if s.URL != "" {
		return s.URL + " (" + string(s.Transport) + ")"
	}
	return commandOf(s.Command, s.Args)
}

// commandOf joins a command, with quotes around words that have spaces.
func commandOf(command string, args []string) string {
	words := append([]string{command}, args...)
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t'\"") {
			words[i] = "'" + w + "'"
		}
	}
	return strings.Join(words, " ")
}

// fewItems is how many servers of one advice are shown without -v.
const fewItems = 4

func (p *printer) advice(a configured.Advice) {
	p.line("")
	p.line(p.s.info.Render(strings.ToUpper(string(a.Severity))) + " " + p.s.bold.Render(a.Title))
	p.wrapped("why", a.Why)
	p.wrapped("fix", a.Remedy)
	for i, item := range a.Items {
		if i == fewItems && len(a.Items) > fewItems+1 && !p.o.Verbose {
			p.wrapped("", fmt.Sprintf("... %d more, -v shows them", len(a.Items)-i))
			break
		}
		words := item.Server + " (" + strings.Join(item.Clients, ", ") + ")"
		if item.Note != "" {
			words += ": " + item.Note
		}
		p.wrapped("at", words)
		p.copied("run", item.Commands...)
		if item.Entry != nil {
			p.copied("start", commandOf(item.Entry.Command, item.Entry.Args))
		}
	}
}

func (p *printer) places(places []config.Place) {
	p.heading("All files")
	t := table{head: []string{"CLIENT", "FOUND", "FILE"}}
	for _, at := range places {
		there := string(at.State)
		switch {
		case at.State == config.Present:
			there = format.Count(at.Servers, "server")
		case at.Line > 0:
			there += fmt.Sprintf(": %s, line %d", at.Reason, at.Line)
		case at.Reason != "":
			there += ": " + at.Reason
		}
		t.row(at.Client, there, at.Path)
	}
	p.table(t)
}
