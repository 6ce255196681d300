package rules

import (
	"fmt"
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
	Why: "A server may start programs of its own: a browser, a language server. They often lead a session of their own, so a " +
		"signal to the server's " +
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
		"terminate the client with SIGTERM before SIGKILL, so that servers can close their browsers",
		"run playwright-mcp with --isolated, and update it: recent browsers exit with the pipe to their server",
		"terminate the browser's main process: its renderers follow",
	},
	check: findLeftovers,
})

// RemedyHelper is a remedy of diagnose.Stdio too.
const RemedyHelper = "server: at the end of stdin and on SIGTERM, terminate what it has started; a helper whose stdin is a " +
	"pipe from the server notices its exit"

func findLeftovers(j *judgement) {
	var found []*process.Instance
	key := map[*process.Instance]string{}
	doubt := map[*process.Instance]string{}
	for _, in := range j.WithRole(process.RoleHelper) {
		w, _ := in.Stdin()
		inbound, _ := in.Inbound()
		if in.Owner.Kind == process.OwnerNobody && !process.Daemon(in.Recognition.Command) && w != process.StdinOpen && inbound == 0 {
			found = append(found, in)
			doubt[in] = j.leftoverDoubt(in, w)
			key[in] = in.Name + "\x00" + doubt[in]
		}
	}
	for _, group := range grouped(j.claim(found), func(in *process.Instance) string { return key[in] }) {
		j.SortByStart(group)
		j.leftovers(group, key[group[0]], doubt[group[0]])
	}
}

// leftoverDoubt returns why a helper without a server may still be used; "" when nothing says so.
func (j *judgement) leftoverDoubt(in *process.Instance, w process.StdinState) string {
	switch server, work := j.lonely(in), j.startedBy(in); {
	case hasPort(in.Listen()):
		return "it listens on a debugging port, to which a script may connect again"
	case in.Unreadable("listen"):
		return "its debugging port is unreadable"
	case in.Recognition.Confidence == process.Possible:
		return "its command line does not prove that an MCP server started it"
	case server != nil:
		return fmt.Sprintf("%s is in use and has no browser of its own: this may be its browser", server)
	case byHand(in):
		return "it has no automation flags: a person may be using it with a server's profile"
	case work != nil:
		return fmt.Sprintf("it has started %s, which may be working", work)
	case w == process.StdinUnreadable:
		return "its stdin is unreadable, so its driver cannot be seen"
	case j.Snapshot.Host.Services == nil && w < process.StdinMaybeClosed:
		return "a supervisor may keep it: none could be asked"
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
var automationSwitches = []string{
	"--remote-debugging-p", "--enable-automation", "--headless", "-headless", "-juggler", "--inspector-pipe", "--type=",
}

// startedBy returns a client or server that a helper has started; nil for none.
func (j *judgement) startedBy(helper *process.Instance) *process.Instance {
	for _, in := range slices.Backward(j.Instances) {
		if j.Over(in) == helper && j.decisions[in] == nil {
			return in
		}
	}
	return nil
}

// lonely returns a running server that has no browser of its own and drives browsers as the profile of this one says;
// nil for none.
func (j *judgement) lonely(browser *process.Instance) *process.Instance {
	profile := process.Profile(browser.Recognition.Command)
	drivers := []string{"playwright", "puppeteer", "devtools"} // as in names of servers and of profile folders
	i := slices.IndexFunc(drivers, func(d string) bool { return strings.Contains(profile, d) })
	if i < 0 {
		return nil
	}
	isHelper := func(m int32) bool { return j.Role(m) == process.RoleHelper }
	for _, s := range slices.Backward(j.WithRole(process.RoleServer)) {
		if j.decisions[s] == nil && strings.Contains(s.Name, drivers[i]) && !slices.ContainsFunc(s.Members, isHelper) {
			return s
		}
	}
	return nil
}

func hasPort(listen []string) bool {
	return slices.ContainsFunc(listen, func(l string) bool { return strings.HasPrefix(l, "tcp:") })
}

func (j *judgement) leftovers(group []*process.Instance, key, doubt string) {
	c := claim{key: key, subjects: group, safe: group, doubt: doubt}
	processes, mark := 0, ""
	for _, in := range group {
		processes += len(in.Members)
		if profile := process.Profile(in.Recognition.Command); mark == "" && profile != "" {
			mark = "its command line shows what started it: " + profile
		}
	}
	c.title = fmt.Sprintf("%s: %s still running after %s MCP server exited: %s, %s RSS", group[0].Name, format.Count(len(group), "helper"),
		format.Plural(len(group), "its", "their"), format.Count(processes, "process"), format.Bytes(rss(group)))
	c.evidence = append(tally(group, func(in *process.Instance) string {
		return strings.Replace(j.adoption(in), "no client is above it", "no MCP server is above it", 1)
	}), mark, j.agesOf(group), j.spinning(group))
	c.remedy = Remedy{
		Summary: "terminate the main process of each: the processes below it follow",
		Steps: []string{
			"terminate a client with SIGTERM before SIGKILL, so that its servers can close their browsers",
			"run playwright-mcp with --isolated, and update it: recent browsers exit with their server",
		},
	}
	if doubt != "" {
		c.severity, c.confidence = Warning, process.Possible
	}
	j.report(c)
}
