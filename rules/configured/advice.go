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

// Advice is a change of the configuration that prevents leaks. It is not a finding: nothing has leaked.
type Advice struct {
	Topic    string         `json:"topic"`    // gateway, shared, wrapper or sse
	Severity rules.Severity `json:"severity"` // always info
	Title    string         `json:"title"`
	Why      string         `json:"why"`
	Remedy   string         `json:"remedy"`

	Items []AdviceItem `json:"items"` // the servers that it concerns
}

// AdviceItem is one server that an advice concerns.
type AdviceItem struct {
	Server  string   `json:"server"`         // its name, the first of several
	Clients []string `json:"clients"`        // that have it configured
	Note    string   `json:"note,omitempty"` // about this server alone

	// Commands are to be typed, and Entry replaces the configured command. Both may be empty.
	Commands []string `json:"commands"`
	Entry    *Entry   `json:"entry,omitempty"`
}

// Entry is a command as configuration files have it.
type Entry struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// topic is one kind of advice. It returns nil for a server that it does not concern.
type topic struct {
	Advice
	advise func(*group) *AdviceItem
}

// topics are the general advice. What prevents most comes first.
var topics = []topic{
	{Advice{
		Topic:  "shared",
		Title:  "several clients have the same server configured",
		Why:    "each session of each client starts a copy; a server that speaks HTTP runs once for all of them",
		Remedy: "start it once with its HTTP transport, or behind a gateway, and configure its URL in each client",
	}, adviseShared},
	{Advice{
		Topic:  "wrapper",
		Title:  "servers are started through a wrapper",
		Why:    "clients terminate the wrapper, which can leave the server running; each copy of the wrapper also holds memory",
		Remedy: "install the program and start it directly: by its own command, or as node with the path of its script below `npm root --global`",
	}, func(g *group) *AdviceItem { return AdviseWrapper(g.command, g.servers[0], g.running) }},
	{Advice{
		Topic: "sse",
		Title: "servers are reached over SSE",
		Why: "this transport is deprecated: its sessions are lost when the server is redeployed, and clients wait for them; " +
			"Streamable HTTP has replaced it",
		Remedy: "configure the URL for Streamable HTTP if the server has one; many have both",
	}, adviseSSE},
}

// group is one server with all entries that configure it.
type group struct {
	command command.Command
	servers []*config.Server
	running []*process.Instance
}

// advise returns the advice about the entries that are not disabled.
func (a *Attribution) advise(running [][]*process.Instance) []Advice {
	groups := a.groups(running)
	var out []Advice
	for _, t := range append(gatewayTopics(), topics...) {
		advice := t.Advice
		advice.Severity = rules.Info
		for _, g := range groups {
			item := t.advise(g)
			if item == nil {
				continue
			}
			item.Server, item.Clients = g.servers[0].Name, g.clients()
			if item.Commands == nil {
				item.Commands = []string{}
			}
			advice.Items = append(advice.Items, *item)
		}
		if len(advice.Items) > 0 {
			out = append(out, advice)
		}
	}
	return out
}

// groups returns the entries that are not disabled, grouped by what they start, in their order.
func (a *Attribution) groups(running [][]*process.Instance) []*group {
	var out []*group
	byKey := map[string]*group{}
	for i, e := range a.entries {
		if e.server.Disabled {
			continue
		}
		// With its launcher: what is true of npx is not true of node.
		key := strings.Join(e.command.Launchers, " ") + "\x00" + e.command.Identity()
		switch {
		case e.name == "":
			key = fmt.Sprint(i)
		case e.command.Program == "":
			key = strings.Join(append([]string{e.server.Command}, e.server.Args...), "\x00")
		case e.local:
			key += "\x00" + e.folder
		}
		g := byKey[key]
		if g == nil {
			g = &group{command: e.command}
			byKey[key] = g
			out = append(out, g)
		}
		g.servers = append(g.servers, e.server)
		g.running = append(g.running, running[i]...)
	}
	return out
}

func (g *group) clients() []string {
	var out []string
	for _, s := range g.servers {
		if !slices.Contains(out, s.Client) {
			out = append(out, s.Client)
		}
	}
	return out
}

// gatewayTopics are what the catalog advises about gateways.
func gatewayTopics() []topic {
	var out []topic
	for _, gateway := range catalog.AllGateways() {
		a := gateway.Advice
		if a == nil {
			continue
		}
		out = append(out, topic{Advice{Topic: "gateway", Title: a.Title, Why: a.Why, Remedy: a.Remedy}, func(g *group) *AdviceItem {
			if process.GatewayOf(g.command) != gateway {
				return nil
			}
			c := g.command
			if note := a.Note(catalog.Run{Args: c.Args, Version: c.Version}); note != "" {
				return &AdviceItem{Note: note}
			}
			return nil
		}})
	}
	return out
}

func adviseShared(g *group) *AdviceItem {
	if len(g.clients()) < 2 {
		return nil
	}
	item := &AdviceItem{}
	copies := map[*process.Instance]bool{}
	for _, in := range g.running {
		copies[in] = true
	}
	if len(copies) > 1 {
		item.Note = fmt.Sprintf("%d copies are running", len(copies))
	}
	line := shellLine(g.servers[0])
	if line != "" && command.Canonical(g.command.Program) != catalog.Supergateway.Name {
		item.Commands = []string{fmt.Sprintf(catalog.ServeHTTP, command.QuoteLine(line))}
	}
	return item
}

// shellLine returns a configured command as a line of shell. It returns "" if the command has variables of
// its client, or values that could not be redacted in a line: those with spaces and those of variables.
func shellLine(s *config.Server) string {
	words := append([]string{s.Command}, s.Args...)
	for i, w := range words {
		if strings.ContainsAny(w, "$%{} \t\n") || i > 0 && (words[i-1] == "-e" || words[i-1] == "--env") && strings.Contains(w, "=") {
			return ""
		}
	}
	return command.QuoteLine(words...)
}

func adviseSSE(g *group) *AdviceItem {
	s := g.servers[0]
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

// installer is how the package is installed that a launcher fetches and stays in front of.
type installer struct {
	command   string
	separator string // between package and version
}

var (
	npm        = installer{"npm install --global ", "@"}
	uv         = installer{"uv tool install ", "=="}
	pipx       = installer{"pipx install ", "=="}
	installers = map[string]installer{"npx": npm, "bunx": npm, "pnpm dlx": npm, "yarn dlx": npm, "uvx": uv, "pipx run": pipx}
)

// fetches reports whether the launcher fetches a package.
func fetches(launcher string) bool { return installers[launcher] != installer{} }

// AdviseWrapper says how to start a server without its wrapper, nil if it has none. Launchers that become
// what they start (env, nohup, exec) and those of containers are not wrappers.
func AdviseWrapper(c command.Command, server *config.Server, running []*process.Instance) *AdviceItem {
	for _, launcher := range c.Launchers {
		switch {
		case fetches(launcher):
			return adviseInstall(c, server, running, installers[launcher])
		case launcher == "uv run":
			return adviseVenv(c, server)
		case isShell(launcher):
			if len(c.Launchers) == 1 { // else what the shell starts is the heavier wrapper
				return adviseShell(c, server)
			}
		case process.Container(launcher):
			return nil
		}
	}
	return nil
}

func adviseInstall(c command.Command, server *config.Server, running []*process.Instance, with installer) *AdviceItem {
	if strings.Contains(c.Program, "$") {
		return nil
	}
	name := c.Program
	if c.From != "" {
		name = c.From
		if from, ok := (command.Command{Args: server.Args}).Flag("--from"); ok {
			name = from // with its version
		}
	} else if c.Version != "" && c.Version != "latest" {
		name += with.separator + c.Version
	}
	item := &AdviceItem{Commands: []string{with.command + command.QuoteLine(name)}}
	binary := c.Program
	if with == npm {
		binary = npmBinary(running)
	}
	if binary != "" {
		item.Entry = &Entry{Command: binary, Args: c.Args}
	}
	return item
}

// npmBinary returns the command of an npm package, which only a running copy shows.
func npmBinary(running []*process.Instance) string {
	for _, in := range running {
		if _, name, ok := strings.Cut(command.CleanPath(in.Recognition.Command.Path), "/node_modules/.bin/"); ok {
			return name
		}
	}
	return ""
}

func adviseVenv(c command.Command, server *config.Server) *AdviceItem {
	folder := cmp.Or(uvDirectory(&c, server.Args), server.CWD)
	item := &AdviceItem{Note: "start the script with the project's own interpreter, .venv/bin/python"}
	if command.IsAbsolute(folder) && c.Kind == command.KindScript && c.Path != "" {
		item.Commands = []string{"uv sync --directory " + command.QuoteLine(folder)}
		python := path.Join(command.CleanPath(folder), ".venv/bin/python")
		item.Entry = &Entry{Command: python, Args: append([]string{absolute(c.Path, folder)}, c.Args...)}
	}
	return item
}

var builtins = catalog.List("builtins")

// adviseShell is for a shell that runs a line. A shell that runs a script is needed: the script may not be
// executable, or not name its interpreter. Neither cmd nor PowerShell can replace itself by exec.
func adviseShell(c command.Command, server *config.Server) *AdviceItem {
	text, ok := command.ShellLine(append([]string{server.Command}, server.Args...)...)
	if !ok || c.Launchers[0] != "sh" || strings.HasPrefix(strings.TrimSpace(text), "exec ") {
		return nil
	}
	words, plain := command.SplitLine(text)
	switch {
	case len(server.Args) != 2 || server.Args[0] != "-c" || !plain: // a login shell sets the environment
		return &AdviceItem{Note: "put exec before the last command of the line, so that the program replaces the shell"}
	case builtins(words[0]):
		return nil
	}
	return &AdviceItem{Note: "no shell is needed", Entry: &Entry{Command: words[0], Args: words[1:]}}
}
