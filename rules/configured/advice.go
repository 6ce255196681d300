package configured

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"mcpdoctor/rules"
	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan/config"
)

// Advice is something about a configuration that prevents leaks when it is changed. It is no
// finding: nothing of it has leaked.
type Advice struct {
	Topic    string         `json:"topic"`    // gateway, shared, wrapper or sse
	Severity rules.Severity `json:"severity"` // always info
	Title    string         `json:"title"`
	Why      string         `json:"why"`
	Remedy   string         `json:"remedy"`

	// Items are the servers that it is about.
	Items []AdviceItem `json:"items"`
}

// AdviceItem is one server that an advice is about, and what is to be said of it alone.
type AdviceItem struct {
	Server  string   `json:"server"`         // its name, the first of several
	Clients []string `json:"clients"`        // who have it configured
	Note    string   `json:"note,omitempty"` // empty when the advice says all

	// Commands are to be typed, and Entry is what to configure instead. Both may be empty: not all
	// that would be needed is known.
	Commands []string `json:"commands"`
	Entry    *Entry   `json:"entry,omitempty"`
}

// Entry is a command as configuration files have it.
type Entry struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// advised is one server with all the entries that configure it.
type advised struct {
	entry   *entry
	servers []*config.Server
	running []*process.Instance
}

// advise goes through what is configured and not disabled. The most dangerous comes first.
func (c *Attribution) advise(running [][]*process.Instance) []Advice {
	groups := c.advisable(running)
	gateway := Advice{
		Topic: "gateway", Title: "supergateway keeps servers that nobody uses",
		Why:    "before version 4 it starts a server for each request and never ends it; with --stateful it keeps one for each session, and without --sessionTimeout for ever",
		Remedy: "name its version, supergateway@4, and give it a --sessionTimeout where it is --stateful",
	}
	shared := Advice{
		Topic: "shared", Title: "the same server is configured in several clients",
		Why:    "each client starts its own, and each of its sessions another; one that serves HTTP is there once for all of them",
		Remedy: "start it once with its HTTP transport, or behind a gateway, and configure its URL in each client",
	}
	wrapper := Advice{
		Topic: "wrapper", Title: "servers are started through a wrapper",
		Why:    "the wrapper is the process that a client ends: what it does not pass on leaves the server behind, and each copy holds its memory as well",
		Remedy: "install the program and start it directly: its own command, which is one process, or node with the path of its script below `npm root --global`",
	}
	for _, g := range groups {
		gateway.add(g, adviseGateway(g.entry.command))
		if clients := g.clients(); len(clients) > 1 {
			shared.add(g, adviseShared(g))
		}
		wrapper.add(g, AdviseWrapper(g.entry.command, g.servers[0], g.running))
	}
	sse := Advice{
		Topic: "sse", Title: "servers are reached over SSE",
		Why:    "this transport is deprecated: its sessions die when the server is deployed anew, and clients wait for them; Streamable HTTP has replaced it",
		Remedy: "configure the URL for Streamable HTTP where there is one; many servers answer at both",
	}
	for i := range c.found.Servers {
		if s := &c.found.Servers[i]; !s.Disabled {
			sse.add(advised{servers: []*config.Server{s}}, adviseSSE(s))
		}
	}
	var out []Advice
	for _, a := range []Advice{gateway, shared, wrapper, sse} {
		if len(a.Items) > 0 {
			a.Severity = rules.Info
			out = append(out, a)
		}
	}
	return out
}

// add says one thing about a server; nil is nothing.
func (a *Advice) add(g advised, item *AdviceItem) {
	if item == nil {
		return
	}
	item.Server, item.Clients = g.servers[0].Name, g.clients()
	if item.Commands == nil {
		item.Commands = []string{}
	}
	a.Items = append(a.Items, *item)
}

// advisable groups the entries that are started and in use by what they start, in their order.
func (c *Attribution) advisable(running [][]*process.Instance) []advised {
	var out []advised
	at := map[string]int{}
	for i := range c.entries {
		e := &c.entries[i]
		s := &c.found.Servers[e.index]
		if s.Disabled {
			continue
		}
		// The launcher belongs to it: what is to be said about npx is not true of node.
		key := strings.Join(e.command.Launchers, " ") + "\x00" + e.command.Identity()
		if e.command.Program == "" {
			key = strings.Join(append([]string{s.Command}, s.Args...), "\x00")
		}
		if e.reach == reachFolder { // server.py of another folder is another server
			key += "\x00" + e.folder
		}
		if _, ok := at[key]; !ok {
			at[key] = len(out)
			out = append(out, advised{entry: e})
		}
		g := &out[at[key]]
		g.servers = append(g.servers, s)
		g.running = append(g.running, running[e.index]...)
	}
	return out
}

// clients names who have it configured, each once.
func (g advised) clients() []string {
	var out []string
	for _, s := range g.servers {
		if !slices.Contains(out, s.Client) {
			out = append(out, s.Client)
		}
	}
	return out
}

// adviseGateway looks at how supergateway is told to treat its servers. Where it is itself a client
// of a URL there is nothing to keep.
func adviseGateway(c command.Command) *AdviceItem {
	if command.Canonical(c.Program) != "supergateway" || len(c.SupergatewayTargets()) == 0 {
		return nil
	}
	_, stateful := c.Flag("--stateful")
	_, timed := c.Flag("--sessionTimeout")
	switch {
	case process.Major(c.Version) >= 4:
		return nil
	case !stateful:
		return &AdviceItem{Note: "--stateful --sessionTimeout 600000 would do as well"}
	case !timed:
		return &AdviceItem{Note: "--sessionTimeout is missing: 600000 is ten minutes"}
	}
	return nil
}

// unique leaves out what runs for several entries alike.
func unique(ins []*process.Instance) []*process.Instance {
	seen := map[*process.Instance]bool{}
	return slices.DeleteFunc(slices.Clone(ins), func(in *process.Instance) bool {
		before := seen[in]
		seen[in] = true
		return before
	})
}

func adviseShared(g advised) *AdviceItem {
	item := &AdviceItem{}
	line := lineOfEntry(g.servers[0])
	if copies := len(unique(g.running)); copies > 1 {
		item.Note = fmt.Sprintf("%d copies run now", copies)
	}
	if line != "" && command.Canonical(g.entry.command.Program) != "supergateway" {
		item.Commands = []string{"npx -y supergateway@4 --stdio " + command.QuoteLine([]string{line}) + " --outputTransport streamableHttp --stateful --sessionTimeout 600000 --port 8000"}
	}
	return item
}

// lineOfEntry is a configured command as a line of shell; "" when a client's variables are in it,
// which a shell does not have, or words that cannot be told to be secret once they are part of a
// line: values with spaces, and those of variables.
func lineOfEntry(s *config.Server) string {
	words := append([]string{s.Command}, s.Args...)
	for i, w := range words {
		if strings.ContainsAny(w, "$%{} \t\n") || i > 0 && (words[i-1] == "-e" || words[i-1] == "--env") && strings.Contains(w, "=") {
			return ""
		}
	}
	return command.QuoteLine(words)
}

func adviseSSE(s *config.Server) *AdviceItem {
	if s.Transport != config.SSE {
		return nil
	}
	item := &AdviceItem{}
	if u, err := url.Parse(s.URL); err == nil && u.User == nil && u.RawQuery == "" {
		if base, ok := strings.CutSuffix(strings.TrimRight(u.Path, "/"), "/sse"); ok {
			u.Path = strings.TrimSuffix(base, "/mcp") + "/mcp"
			item.Note = "perhaps " + u.String()
		}
	}
	return item
}

// installers are the launchers that fetch a package and stay in front of its program, and how to
// install it instead.
var installers = map[string]string{
	"npx": "npm install --global ", "bunx": "npm install --global ", "pnpm dlx": "npm install --global ", "yarn dlx": "npm install --global ",
	"uvx": "uv tool install ", "pipx run": "pipx install ",
}

// adviseWrapper says how a server is started directly. Launchers that become what they start (env,
// nohup, exec) or that a container needs are no wrappers.
func AdviseWrapper(c command.Command, server *config.Server, running []*process.Instance) *AdviceItem {
	for _, launcher := range c.Launchers {
		switch {
		case installers[launcher] != "":
			return adviseInstall(c, server, running, launcher)
		case launcher == "uv run":
			return adviseVenv(c, server)
		case shell(launcher):
			if len(c.Launchers) > 1 {
				continue // what comes behind is the heavier wrapper
			}
			return adviseShell(c, server)
		case process.Container(launcher):
			return nil
		}
	}
	return nil
}

func adviseInstall(c command.Command, server *config.Server, running []*process.Instance, launcher string) *AdviceItem {
	if strings.Contains(c.Program, "$") {
		return nil
	}
	install := c.Program
	if c.From != "" {
		install = c.From
		if from, ok := (command.Command{Args: server.Args}).Flag("--from"); ok {
			install = from // with its version
		}
	}
	if c.Version != "" && c.From == "" && c.Version != "latest" {
		install += map[bool]string{true: "@", false: "=="}[strings.HasPrefix(installers[launcher], "npm")] + c.Version
	}
	item := &AdviceItem{Commands: []string{installers[launcher] + command.QuoteLine([]string{install})}}
	switch command := binaryOf(running); {
	case !strings.HasPrefix(installers[launcher], "npm"):
		item.Entry = &Entry{Command: c.Program, Args: c.Args}
	case command != "":
		item.Entry = &Entry{Command: command, Args: c.Args}
	}
	return item
}

// binaryOf finds the command that a package of npm brings, which may have another name: a running
// copy tells.
func binaryOf(running []*process.Instance) string {
	for _, in := range running {
		if _, name, ok := strings.Cut(command.CleanPath(in.Recognition.Command.Path), "/node_modules/.bin/"); ok {
			return name
		}
	}
	return ""
}

// adviseVenv is for uv run, which keeps the program's own interpreter in the project.
func adviseVenv(c command.Command, server *config.Server) *AdviceItem {
	folder := cmp.Or(directory(c, server.Args), server.CWD)
	item := &AdviceItem{Note: "the project's own interpreter, .venv/bin/python, starts the script"}
	if command.IsAbsolute(folder) && c.Kind == command.KindScript && c.Path != "" {
		item.Commands = []string{"uv sync --directory " + command.QuoteLine([]string{folder})}
		item.Entry = &Entry{Command: path.Join(command.CleanPath(folder), ".venv/bin/python"), Args: append([]string{absolute(c.Path, folder)}, c.Args...)}
	}
	return item
}

// adviseShell is for a shell that is given a line to run. One that runs a script is needed: the
// script may not be executable, nor name its interpreter. When the line does more than to start one
// program, that can still take the shell's place.
func adviseShell(c command.Command, server *config.Server) *AdviceItem {
	row, rest := command.LauncherRow(command.FoldName(server.Command), server.Args)
	if row == nil || !rest.Line || len(rest.Words) == 0 {
		return nil
	}
	text := rest.Words[0]
	if strings.HasPrefix(strings.TrimSpace(text), "exec ") {
		return nil
	}
	if c.Launchers[0] != "sh" { // neither cmd nor PowerShell can step aside
		return nil
	}
	s := command.ShellScanner{Text: text}
	words, _ := s.Command()
	switch {
	// A log-in shell sets the environment; what a shell alone knows cannot be started without one.
	case len(server.Args) != 2 || server.Args[0] != "-c", strings.ContainsAny(text, "&|;<>$`\n*?[]{}~!#()"):
		return &AdviceItem{Note: "write exec before the last command of the line, so that the program takes the shell's place"}
	case len(words) == 0 || command.Assignment(words[0]) || builtins[words[0]]:
		return nil
	}
	return &AdviceItem{Note: "no shell is needed", Entry: &Entry{Command: words[0], Args: words[1:]}}
}

// builtins are commands that a shell has in itself.
var builtins = catalog.Words(". alias bg builtin cd command echo eval exit export false fg jobs let local printf pwd read readonly return set shift source test " +
	"times trap true type ulimit umask unset wait [")
