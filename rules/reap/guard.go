package reap

import (
	"fmt"
	"slices"

	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

// guard enforces the laws of reaping. Its methods keepsX return why something is kept, "" if it is not.
type guard struct {
	*process.Table
	consent  Consent
	selected map[*process.Instance]*candidate // what a rule selected any process of
	kept     map[*process.Instance]string     // the results of keepsInstance

	// selfInstances maps each instance that contains mcpdoctor or one of its ancestors to that PID: an agent may
	// run mcpdoctor from inside a client.
	selfInstances map[*process.Instance]int

	// blind is why selfInstances may be incomplete; then everything is kept.
	blind string
}

func newGuard(t *process.Table, c Consent) *guard {
	g := &guard{
		Table: t, consent: c, selected: map[*process.Instance]*candidate{}, kept: map[*process.Instance]string{},
		selfInstances: map[*process.Instance]int{},
	}
	g.consent.OlderThan = max(0, c.OlderThan)
	if c.Self == 0 {
		return g
	}
	at := t.Forest.Node(c.Self)
	if at == process.None {
		g.blind = "mcpdoctor does not find itself among the processes, and may be running inside it"
		return g
	}
	for ; at != process.None; at = t.Forest.Parent[at] {
		pid := t.Process(at).PID
		if in := t.InstanceOf[at]; in != nil {
			g.selfInstances[in] = pid
		}
		if g.parentHidden(at) {
			g.blind = fmt.Sprintf("the parent of pid %d cannot be seen, and mcpdoctor may be running inside it", pid)
		}
	}
	return g
}

// parentHidden reports whether a process has a parent that is not in the table (hidepid) or cannot be determined. On
// Windows a missing parent has exited: nothing adopts its children.
func (g *guard) parentHidden(node int32) bool {
	switch g.Forest.ParentStates[node] {
	case process.ParentUnknown, process.ParentCyclic:
		return true
	case process.ParentMissing, process.ParentReused:
		return g.Snapshot.Host.OS != "windows"
	}
	return false
}

// keepsInstance is about an instance as a whole. Only its helpers may be kept without it: terminating some of the
// launchers and servers would orphan the rest, or make the rest start them again.
func (g *guard) keepsInstance(c *candidate) string {
	if reason, ok := g.kept[c.in]; ok {
		return reason
	}
	reason := g.keepsOwned(c.in)
	if reason == "" {
		reason = g.keepsRole(c.in)
	}
	if reason == "" {
		reason = g.keepsMember(c)
	}
	g.kept[c.in] = reason
	return reason
}

// keepsOwned is about what an instance belongs to.
func (g *guard) keepsOwned(in *process.Instance) string {
	if g.blind != "" {
		return g.blind
	}
	if pid, ok := g.selfInstances[in]; ok {
		return fmt.Sprintf("mcpdoctor is running inside it (below pid %d)", pid)
	}
	if in.Owner.Kind == process.OwnerService {
		return "it is supervised by " + in.Owner.String()
	}
	// What is kept needs the servers below it, and would start them again.
	for up := g.Forest.Parent[in.RootNode]; up != process.None; up = g.Forest.Parent[up] {
		if g.maybeSupervised(up) {
			return fmt.Sprintf("pid %d above it may be supervised: the service manager could not be asked", g.Process(up).PID)
		}
		over := g.selected[g.InstanceOf[up]]
		if over == nil {
			continue
		}
		if reason := g.keepsInstance(over); reason != "" {
			return fmt.Sprintf("it belongs to %s (pid %d), which is kept: %s", over.in.Name, over.in.Main().PID, reason)
		}
		break // and that one has looked further up
	}
	return ""
}

// keepsRole is about what an instance is.
func (g *guard) keepsRole(in *process.Instance) string {
	switch in.Role {
	case process.RoleServer, process.RoleGateway, process.RoleHelper:
	case process.RoleClient:
		if g.mayBeInUse(in) {
			return "it is a client that may be in use"
		}
		return ""
	default:
		return "it is not a recognised MCP process"
	}
	for _, m := range in.Members {
		if g.Recognitions[m].RoleOrNone() == process.RoleClient {
			return fmt.Sprintf("pid %d in it is a client that may be in use", g.Process(m).PID)
		}
	}
	return ""
}

// mayBeInUse reports whether a client is an interactive one, or any of its processes has a terminal or may have one.
func (g *guard) mayBeInUse(in *process.Instance) bool {
	return !in.NonInteractive() || slices.ContainsFunc(in.Members, func(m int32) bool { return g.Process(m).TTY != "-" })
}

// keepsMember is about the launchers and servers of an instance.
func (g *guard) keepsMember(c *candidate) string {
	for _, m := range c.in.Members {
		if !g.essential(c.in, m) {
			continue
		}
		reason := g.keepsProcess(m)
		switch {
		case reason != "":
		case !slices.Contains(c.nodes, m):
			reason = "no rule selected it"
		default:
			reason = g.keepsReachable(c.in, m)
		}
		if reason != "" {
			return fmt.Sprintf("pid %d: %s", g.Process(m).PID, reason)
		}
	}
	return ""
}

// keepsReachable is about a process whose stdin is open although that of its instance is closed: two servers below one
// launcher may have different clients.
func (g *guard) keepsReachable(in *process.Instance, node int32) string {
	if w, _ := in.OuterStdin(); w <= process.StdinOpen || process.StdinOf(g.Process(node)) != process.StdinOpen {
		return ""
	}
	holders := g.Process(node).Stdin.Holders
	if holders == nil {
		return "its stdin is open, and which process holds it is unknown"
	}
	for _, pid := range holders {
		at := g.Forest.Node(pid)
		if at == process.None || g.InstanceOf[at] == nil || g.InstanceOf[at] != in && g.selected[g.InstanceOf[at]] == nil {
			return fmt.Sprintf("its stdin is held by pid %d", pid)
		}
	}
	return ""
}

// onlyYoung reports whether an instance would be terminated if it were older.
func (g *guard) onlyYoung(c *candidate) bool {
	anyAge := *g
	anyAge.consent.OlderThan, anyAge.kept = 0, map[*process.Instance]string{}
	return anyAge.keepsInstance(c) == ""
}

// keepsHelper is about a helper whose instance is terminated.
func (g *guard) keepsHelper(c *candidate, node int32) string {
	switch {
	case !slices.Contains(c.nodes, node):
		return "the server started it, but it is not known to be part of the server"
	case process.Terminal(g.Process(node)):
		return "its stdin is a terminal"
	}
	return g.keepsProcess(node)
}

// keepsProcess is about any process by itself.
func (g *guard) keepsProcess(node int32) string {
	p := g.Process(node)
	switch {
	case p.PID <= 1:
		return "it is the first process"
	case len(p.Args) == 0 && p.Cmdline == "": // proc_pid_cmdline(5)
		return "its command line is unreadable: it may be a kernel thread"
	case p.Start == 0:
		return "start time unreadable: cannot rule out PID reuse"
	case p.Started.IsZero():
		return "its age is unknown"
	case g.maybeSupervised(node):
		return "it may be supervised: the service manager could not be asked"
	case g.Now.Sub(p.Started) < g.consent.OlderThan:
		return fmt.Sprintf("it is %s old, younger than %s", format.Age(max(0, g.Now.Sub(p.Started))), format.Age(g.consent.OlderThan))
	}
	return g.keepsOtherUsers(p)
}

// maybeSupervised reports whether a process may be the job of a service manager that did not answer.
func (g *guard) maybeSupervised(node int32) bool {
	return slices.Contains(g.Process(node).Unreadable, "service")
}

// keepsOtherUsers is about a process's user. On a saved snapshot, the user is the one who took it.
func (g *guard) keepsOtherUsers(p *scan.Process) string {
	if g.consent.AllUsers && g.root() {
		return ""
	}
	me := &scan.Process{UID: g.Snapshot.Host.UID}
	switch {
	case g.consent.Self != 0:
		me = g.Process(g.Forest.Node(g.consent.Self))
	case me.UID == nil:
		return "" // nothing will be signalled
	}
	switch {
	case p.UID != nil && me.UID != nil:
		if *p.UID == *me.UID {
			return ""
		}
	case p.UID != nil || me.UID != nil || p.User == "" || me.User == "":
		return "its user is unknown"
	case p.User == me.User: // Windows, which has no numbers
		return ""
	}
	if p.User == "" {
		return fmt.Sprintf("it belongs to the user %d", *p.UID)
	}
	return "it belongs to the user " + p.User
}

// root reports whether the snapshot was taken by root.
func (g *guard) root() bool { return g.Snapshot.Host.UID != nil && *g.Snapshot.Host.UID == 0 }

// essential reports whether a process is a launcher or server of its instance, not a helper. Of a browser without a
// server, that is the first process.
func (g *guard) essential(in *process.Instance, node int32) bool {
	if in.Role == process.RoleHelper {
		return node == in.MainNode
	}
	rec := g.Recognitions[node]
	return rec != nil && rec.Role != process.RoleHelper
}
