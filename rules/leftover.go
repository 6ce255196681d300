package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
)

var _ = register(Rule{
	ID:       "leftover-helper",
	Order:    60,
	Title:    "a browser or other helper is still running after its MCP server exited",
	Severity: Error,
	Reap:     "safe when its profile or command line proves which server started it; else on request",
	Why: "A server may start programs of its own: a browser, a language server. They often lead a session of their own, so a signal to the server's " +
		"process group does not reach them, and they outlive a server that is killed. One browser is a dozen processes and close to 1 GB.",
	Evidence: []string{
		"an automation browser: a temporary profile of playwright, puppeteer or chrome-devtools-mcp, or their switches",
		"no MCP server above it: it was adopted, or its parent has exited",
		"no connection to its debugging port",
	},
	Wrong: []string{
		"a browser that a script of your own started and will connect to again: it has a debugging port, and needs confirmation",
		"crash handlers of a browser always have PID 1 as their parent: they are never judged by themselves",
	},
	Remedy: []string{
		RemedyHelper,
		"end the client with SIGTERM before SIGKILL, so that servers can close their browsers",
		"run playwright-mcp with --isolated, and update it: recent browsers exit with the pipe to their server",
		"terminate the browser's main process: its renderers follow",
	},
	check: findLeftovers,
})

// remedyHelper is a remedy of diagnose.Stdio too.
const RemedyHelper = "server: at the end of stdin and on SIGTERM, terminate what it has started; a helper whose stdin is a pipe from the server notices its exit"

func findLeftovers(j *judgement) []Finding {
	groups := map[string][]*process.Instance{}
	lonely, below := j.lonely(), j.startedByHelpers()
	for _, in := range j.WithRole(process.RoleHelper) {
		if in.Owner.Kind != process.OwnerNobody || in.Service != nil || process.Daemon(in.Recognition.Command) {
			continue
		}
		w, _ := in.Stdin()
		inbound, _ := in.Inbound()
		if w == process.StdinOpen || inbound > 0 {
			continue
		}
		doubt := ""
		if hasPort(in.Listen()) {
			doubt = "it listens on a debugging port, to which a script may connect again"
		} else if in.Unreadable("listen") {
			doubt = "its debugging port is unreadable"
		} else if in.Recognition.Confidence == process.Possible {
			doubt = "its command line does not prove that an MCP server started it"
		} else if s := lonely[drivenBy(in)]; s != nil {
			doubt = fmt.Sprintf("%s (pid %d) is in use and has no browser of its own: this may be its browser", s.Name, s.Main().PID)
		} else if byHand(in) {
			doubt = "it has no automation flags: a person may be using it with a server's profile"
		} else if s := below[in]; s != nil {
			doubt = fmt.Sprintf("it has started %s (pid %d), which may be working", s.Name, s.Main().PID)
		} else if w == process.StdinUnreadable {
			doubt = "its stdin is unreadable, so its driver cannot be seen"
		} else if j.Snapshot.Host.Services == nil && w < process.StdinMaybeClosed {
			doubt = "a supervisor may keep it: none could be asked"
		}
		key := in.Name + "\x00" + doubt
		groups[key] = append(groups[key], in)
	}
	var out []Finding
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		group := j.claim(groups[key])
		if len(group) == 0 {
			continue
		}
		j.SortByStart(group)
		_, doubt, _ := strings.Cut(key, "\x00")
		out = append(out, j.leftovers(key, group, doubt))
	}
	return out
}

// drivers are the libraries that drive browsers, as they stand in names of servers and of profile folders.
var drivers = []string{"playwright", "puppeteer", "devtools"}

// drivenBy returns the driver whose profile folder a browser has; "" for none.
func drivenBy(browser *process.Instance) string {
	dir := process.Profile(browser.Recognition.Command)
	for _, d := range drivers {
		if strings.Contains(dir, d) {
			return d
		}
	}
	return ""
}

// byHand reports whether a browser was started without automation, as a person does to log in with a server's
// profile.
func byHand(in *process.Instance) bool {
	return in.Name == "browser" && !slices.ContainsFunc(in.Recognition.Command.Args, func(arg string) bool {
		return slices.ContainsFunc(automationSwitches, func(s string) bool { return strings.HasPrefix(arg, s) })
	})
}

// automationSwitches are the flags of Playwright, Puppeteer and the DevTools server.
var automationSwitches = []string{"--remote-debugging-p", "--enable-automation", "--headless", "-headless", "-juggler", "--inspector-pipe", "--type="}

// startedByHelpers returns, for each helper, a client or server that it has started.
func (j *judgement) startedByHelpers() map[*process.Instance]*process.Instance {
	out := map[*process.Instance]*process.Instance{}
	for _, in := range j.Instances {
		if up := j.Forest.Parent[in.RootNode]; up != process.None && j.InstanceOf[up] != nil && j.InstanceOf[up].Role == process.RoleHelper && j.decisions[in] == nil {
			out[j.InstanceOf[up]] = in
		}
	}
	return out
}

// lonely returns, for each driver, a running server that has no browser of its own.
func (j *judgement) lonely() map[string]*process.Instance {
	out := map[string]*process.Instance{}
	for _, s := range j.WithRole(process.RoleServer) {
		for _, d := range drivers {
			if j.decisions[s] == nil && strings.Contains(s.Name, d) && !slices.ContainsFunc(s.Members, func(m int32) bool { return j.Recognitions[m].RoleOrNone() == process.RoleHelper }) {
				out[d] = s
			}
		}
	}
	return out
}

func hasPort(listen []string) bool {
	for _, l := range listen {
		if strings.HasPrefix(l, "tcp:") {
			return true
		}
	}
	return false
}

func (j *judgement) leftovers(key string, group []*process.Instance, doubt string) Finding {
	c := claim{severity: Error, confidence: process.Likely, key: key, subjects: group}
	processes := 0
	var bytes int64
	for _, in := range group {
		processes += len(in.Members)
		bytes += in.RSS()
	}
	c.title = fmt.Sprintf("%s: %s still running after %s MCP server exited: %s, %s RSS", group[0].Name, format.Count(len(group), "helper"), format.Plural(len(group), "its", "their"), format.Count(processes, "process"), format.Bytes(bytes))
	adopted := map[string]int{}
	for _, in := range group {
		adopted[strings.Replace(j.adoption(in), "no client is above it", "no MCP server is above it", 1)]++
	}
	c.evidence = append(c.evidence, tally(adopted, len(group))...)
	for _, in := range group {
		if mark := process.Profile(in.Recognition.Command); mark != "" {
			c.evidence = append(c.evidence, "its command line shows what started it: "+mark)
			break
		}
	}
	c.evidence = append(c.evidence, j.agesOf(group)...)
	c.evidence = append(c.evidence, j.spinning(group)...)
	c.remedy = Remedy{
		Summary: "terminate the main process of each: the processes below it follow",
		Steps:   []string{"end a client with SIGTERM before SIGKILL, so that its servers can close their browsers", "run playwright-mcp with --isolated, and update it: recent browsers exit with their server"},
	}
	if doubt == "" {
		c.safe = group
	} else {
		c.severity, c.confidence, c.onRequest = Warning, process.Possible, group
		c.evidence = append(c.evidence, "needs confirmation: "+doubt)
	}
	c.remedy.Commands = []string{j.reapLine(group, doubt != "")}
	return j.finding(c)
}
