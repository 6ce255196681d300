package rules

import (
	"fmt"
	"maps"
	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"slices"
	"strings"
)

var _ = register(Rule{
	ID:       "leftover-helper",
	Order:    60,
	Title:    "a browser or other helper stayed after its MCP server was gone",
	Severity: Error,
	Reap:     "safe when its profile or command line proves whose it was; else on request",
	Why: "A server may start programs of its own: a browser, a language server. They are often leaders of their own session, so that no signal to the server's " +
		"process group reaches them, and stay when the server is killed. One browser is a dozen processes and close to 1 GB.",
	Evidence: []string{
		"an automation browser: a temporary profile of playwright, puppeteer or chrome-devtools-mcp, or their switches",
		"no MCP server above it: its parent adopted it, or is gone",
		"nobody is connected to its debugging port",
	},
	Wrong: []string{
		"a browser that a script of your own started in the background and wants to connect to again: then it has a debugging port, and is given up only on request",
		"crash handlers of a browser have PID 1 as their parent all their life: they are never judged by themselves",
	},
	Remedy: []string{
		RemedyHelper,
		"end the client with SIGTERM before SIGKILL, so that servers can close their browsers",
		"run playwright-mcp with --isolated, and update it: recent versions follow a pipe and end with it",
		"end the browser's main process: its renderers follow",
	},
	check: findLeftovers,
})

// remedyHelper is also what a server is told that [diagnose.Stdio] saw leave a helper behind.
const RemedyHelper = "server: before it ends, at the end of stdin and at SIGTERM, end what it has started; a helper whose stdin is a pipe from the server can see its end"

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
			doubt = "it listens on a debugging port, to which somebody may connect again"
		} else if in.Unreadable("listen") {
			doubt = "whether it listens on a debugging port could not be seen"
		} else if in.Recognition.Confidence == process.Possible {
			doubt = "its command line does not prove that an MCP server started it"
		} else if s := lonely[drivenBy(in)]; s != nil {
			doubt = fmt.Sprintf("%s (pid %d) is in use and has no browser of its own, so that this may be its", s.Name, s.Main().PID)
		} else if byHand(in) {
			doubt = "it has no switch of a debugger or of automation, so that a person may use it, with the profile of a server"
		} else if s := below[in]; s != nil {
			doubt = fmt.Sprintf("it has started %s (pid %d), which may be at work", s.Name, s.Main().PID)
		} else if w == process.StdinUnreadable {
			doubt = "who drives it could not be seen"
		} else if j.Snapshot.Host.Services == nil && w < process.StdinMaybeClosed {
			doubt = "no service manager could be asked whether it keeps this process"
		}
		key := in.Name + "\x00" + doubt
		groups[key] = append(groups[key], in)
	}
	var out []Finding
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		group := j.take(groups[key])
		if len(group) == 0 {
			continue
		}
		j.SortByStart(group)
		_, doubt, _ := strings.Cut(key, "\x00")
		out = append(out, j.leftovers(key, group, doubt))
	}
	return out
}

// drivers are what browsers are driven by, as the names of servers and of profile folders have it.
var drivers = []string{"playwright", "puppeteer", "devtools"}

// drivenBy names the driver whose profile folder a browser has; "" for none.
func drivenBy(browser *process.Instance) string {
	dir := process.Profile(browser.Recognition.Command)
	for _, d := range drivers {
		if strings.Contains(dir, d) {
			return d
		}
	}
	return ""
}

// byHand tells that a browser was started as a person does: to log in with the profile that a server keeps.
func byHand(in *process.Instance) bool {
	return in.Name == "browser" && !slices.ContainsFunc(in.Recognition.Command.Args, func(arg string) bool {
		return slices.ContainsFunc(automationSwitches, func(s string) bool { return strings.HasPrefix(arg, s) })
	})
}

// automationSwitches are those with which Playwright, Puppeteer and the DevTools server start browsers.
var automationSwitches = []string{"--remote-debugging-p", "--enable-automation", "--headless", "-headless", "-juggler", "--inspector-pipe", "--type="}

// startedByHelpers finds, for each helper, a client or server that it has started.
func (j *judgement) startedByHelpers() map[*process.Instance]*process.Instance {
	out := map[*process.Instance]*process.Instance{}
	for _, in := range j.Instances {
		if up := j.Forest.Parent[in.RootNode]; up != process.None && j.InstanceOf[up] != nil && j.InstanceOf[up].Role == process.RoleHelper && j.decisions[in] == nil {
			out[j.InstanceOf[up]] = in
		}
	}
	return out
}

// lonely finds, for each driver, a living server that has no browser of its own.
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
	c.title = fmt.Sprintf("%s: %s stayed after %s MCP server was gone: %s, %s RSS", group[0].Name, format.Count(len(group), "helper"), format.Plural(len(group), "its", "their"), format.Count(processes, "process"), format.Bytes(bytes))
	adopted := map[string]int{}
	for _, in := range group {
		adopted[strings.Replace(j.adoption(in), "no client is above it", "no MCP server is above it", 1)]++
	}
	c.evidence = append(c.evidence, tally(adopted, len(group))...)
	for _, in := range group {
		if mark := process.Profile(in.Recognition.Command); mark != "" {
			c.evidence = append(c.evidence, "its command line tells whose it was: "+mark)
			break
		}
	}
	c.evidence = append(c.evidence, j.agesOf(group)...)
	c.evidence = append(c.evidence, j.spinning(group)...)
	c.remedy = Remedy{
		Summary: "end the main process of each: what is below it follows",
		Steps:   []string{"end a client with SIGTERM before SIGKILL, so that its servers can close what they started", "run playwright-mcp with --isolated, and update it: recent versions end with their server"},
	}
	if doubt == "" {
		c.safe = group
	} else {
		c.severity, c.confidence, c.onRequest = Warning, process.Possible, group
		c.evidence = append(c.evidence, "not ended unasked: "+doubt)
	}
	c.remedy.Commands = []string{j.reapLine(group, doubt != "")}
	c.remedy.Commands = append(c.remedy.Commands, "mcpdoctor explain leftover-helper")
	return j.finding(c)
}
