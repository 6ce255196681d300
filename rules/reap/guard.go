package reap

import (
	"fmt"
	"slices"

	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

// guard keeps the laws of reaping: whatever a rule gave up, these processes are never signalled.
type guard struct {
	*process.Table
	consent Consent
	doomed  map[*process.Instance]*candidate // what a rule gave up something of
	kept    map[*process.Instance]string     // why one of these is kept; "" when it is not

	// inside are the instances that who is to act, or an ancestor of his, is a part of, with the PID
	// that it is: an agent may run mcpdoctor from inside a client.
	inside map[*process.Instance]int

	// blind says why it is not known who that is; then everybody is kept.
	blind string
}

func newGuard(t *process.Table, c Consent) *guard {
	g := &guard{
		Table: t, consent: c, doomed: map[*process.Instance]*candidate{}, kept: map[*process.Instance]string{},
		inside: map[*process.Instance]int{},
	}
	g.consent.OlderThan = max(0, c.OlderThan)
	if c.Self == 0 {
		return g
	}
	at := t.Forest.Node(c.Self)
	if at == process.None {
		g.blind = "mcpdoctor does not find itself among the processes, so that it cannot tell what it belongs to"
		return g
	}
	for ; at != process.None; at = t.Forest.Parent[at] {
		if in := t.InstanceOf[at]; in != nil {
			g.inside[in] = t.Process(at).PID
		}
		if g.cut(at) {
			g.blind = fmt.Sprintf("who started pid %d cannot be seen, so that mcpdoctor cannot tell what it belongs to itself", t.Process(at).PID)
		}
	}
	return g
}

// cut tells that a process has somebody above it who is not in the table (hidepid) or cannot be made
// out. On Windows a parent that is not there has ended, as there is nobody who adopts.
func (g *guard) cut(node int32) bool {
	switch g.Forest.ParentStates[node] {
	case process.ParentUnknown, process.ParentCyclic:
		return true
	case process.ParentMissing, process.ParentReused:
		return g.Snapshot.Host.OS != "windows"
	}
	return false
}

// keepsInstance says why an instance is kept as a whole; "" when it is not. Only its helpers may be
// kept without it: to end a part of what starts and serves would make an orphan of the rest, or
// make the rest start it again.
func (g *guard) keepsInstance(s *candidate) string {
	if reason, ok := g.kept[s.in]; ok {
		return reason
	}
	reason := g.keepsAbove(s.in)
	if reason == "" {
		reason = g.keepsRole(s.in)
	}
	if reason == "" {
		reason = g.keepsMember(s)
	}
	g.kept[s.in] = reason
	return reason
}

// keepsAbove says what speaks for an instance because of who it belongs to.
func (g *guard) keepsAbove(in *process.Instance) string {
	if g.blind != "" {
		return g.blind
	}
	if pid, ok := g.inside[in]; ok {
		return fmt.Sprintf("mcpdoctor was started from inside it (below pid %d)", pid)
	}
	if in.Owner.Kind == process.OwnerService {
		return in.Owner.String() + " keeps it"
	}
	// Who is kept needs what is below him, and would start it again.
	for up := g.Forest.Parent[in.RootNode]; up != process.None; up = g.Forest.Parent[up] {
		if g.maybeJob(up) {
			return fmt.Sprintf("a service manager may keep pid %d above it and could not be asked", g.Process(up).PID)
		}
		over := g.doomed[g.InstanceOf[up]]
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

// keepsRole says what speaks for an instance because of what it is.
func (g *guard) keepsRole(in *process.Instance) string {
	switch in.Role {
	case process.RoleServer, process.RoleGateway, process.RoleHelper:
	case process.RoleClient:
		if !g.unattended(in) {
			return "it is a client, which somebody may be using"
		}
		return ""
	default:
		return "it is nobody that mcpdoctor knows"
	}
	for _, m := range in.Members {
		if g.Recognitions[m].RoleOrNone() == process.RoleClient {
			return fmt.Sprintf("pid %d in it is a client, which somebody may be using", g.Process(m).PID)
		}
	}
	return ""
}

// unattended tells that nobody sits in front of a client: it is one for running without a person, and
// it is known that none of its processes has a terminal.
func (g *guard) unattended(in *process.Instance) bool {
	return in.NonInteractive() && !slices.ContainsFunc(in.Members, func(m int32) bool { return g.Process(m).TTY != "-" })
}

// keepsMember says what speaks for one of the processes that an instance cannot do without.
func (g *guard) keepsMember(s *candidate) string {
	for _, m := range s.in.Members {
		if !g.chain(s.in, m) {
			continue
		}
		reason := g.keeps(m)
		switch {
		case reason != "":
		case !slices.Contains(s.nodes, m):
			reason = "it was not given up"
		default:
			reason = g.talkedTo(s.in, m)
		}
		if reason != "" {
			return fmt.Sprintf("pid %d: %s", g.Process(m).PID, reason)
		}
	}
	return ""
}

// talkedTo says who can still talk to a process of an instance at whose own stdin nobody is: two
// servers may lie below one launcher, each on a wire of its own.
func (g *guard) talkedTo(in *process.Instance, node int32) string {
	if w, _ := in.OuterStdin(); w <= process.StdinOpen || process.StdinOf(g.Process(node)) != process.StdinOpen {
		return ""
	}
	holders := g.Process(node).Stdin.Holders
	if holders == nil {
		return "its stdin is open, and nobody looked who holds it"
	}
	for _, pid := range holders {
		at := g.Forest.Node(pid)
		if at == process.None || g.InstanceOf[at] == nil || g.InstanceOf[at] != in && g.doomed[g.InstanceOf[at]] == nil {
			return fmt.Sprintf("its stdin is held by pid %d", pid)
		}
	}
	return ""
}

// onlyYoung tells that an instance would be ended if it were older.
func (g *guard) onlyYoung(s *candidate) bool {
	old := *g
	old.consent.OlderThan, old.kept = 0, map[*process.Instance]string{}
	return old.keepsInstance(s) == ""
}

// keepsHelper says why a helper is left alone when its instance is ended; "" when it is not.
func (g *guard) keepsHelper(s *candidate, node int32) string {
	switch {
	case !slices.Contains(s.nodes, node):
		return "the server started it, and it is not known to be a part of it"
	case process.Terminal(g.Process(node)):
		return "somebody may be typing into it"
	}
	return g.keeps(node)
}

// keeps says why one process may never be signalled; "" when it may.
func (g *guard) keeps(node int32) string {
	p := g.Process(node)
	switch {
	case p.PID <= 1:
		return "it is the first process"
	case g.kernel(p):
		return "it is a thread of the kernel, or what it runs cannot be read"
	case p.Start == 0:
		return "its start cannot be read, so that nothing tells it from another process with its PID"
	case p.Started.IsZero():
		return "its age cannot be read"
	case g.maybeJob(node):
		return "a service manager may keep it and could not be asked"
	case g.Now.Sub(p.Started) < g.consent.OlderThan:
		return fmt.Sprintf("it is %s old, which is younger than %s", format.Age(max(0, g.Now.Sub(p.Started))), format.Age(g.consent.OlderThan))
	}
	return g.foreign(p)
}

// maybeJob tells that a process may be the job of a service manager, which did not say.
func (g *guard) maybeJob(node int32) bool {
	return slices.Contains(g.Process(node).Unreadable, "service")
}

// kernel tells that a process is a thread of the kernel, or cannot be told from one: it has no
// command line (proc_pid_cmdline(5)).
func (g *guard) kernel(p *scan.Process) bool { return len(p.Args) == 0 && p.Cmdline == "" }

// foreign says whose a process is that is not ours to end; "" when it is ours. On a table that was
// saved it is that of who looked.
func (g *guard) foreign(p *scan.Process) string {
	if g.consent.AllUsers && g.root() {
		return ""
	}
	me := &scan.Process{UID: g.Snapshot.Host.UID}
	switch {
	case g.consent.Self != 0:
		me = g.Process(g.Forest.Node(g.consent.Self))
	case me.UID == nil:
		return "" // and nobody will act
	}
	switch {
	case p.UID != nil && me.UID != nil:
		if *p.UID == *me.UID {
			return ""
		}
	case p.UID != nil || me.UID != nil || p.User == "" || me.User == "":
		return "it cannot be seen whose it is"
	case p.User == me.User: // Windows, which has no numbers
		return ""
	}
	if p.User == "" {
		return fmt.Sprintf("it belongs to the user %d", *p.UID)
	}
	return "it belongs to the user " + p.User
}

// root tells that the one who looks is root.
func (g *guard) root() bool { return g.Snapshot.Host.UID != nil && *g.Snapshot.Host.UID == 0 }

// chain tells that a process is part of what an instance cannot do without: the launchers and the
// processes that serve. What is no part of it are the helpers; of a browser without a server its
// own processes below the first.
func (g *guard) chain(in *process.Instance, node int32) bool {
	if in.Role == process.RoleHelper {
		return node == in.MainNode
	}
	rec := g.Recognitions[node]
	return rec != nil && rec.Role != process.RoleHelper
}
