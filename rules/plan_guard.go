package rules

import (
	"fmt"
	"slices"

	"mcpdoctor/scan"
)

// guard keeps the laws of reaping: whatever a rule gave up, these processes are never signalled.
type guard struct {
	*table
	consent Consent
	doomed  map[*instance]bool // a rule gave up something of it

	// self is who is to act, with all its ancestors, and inside are the instances that these are part
	// of: an agent may run mcpdoctor from inside a client.
	self   map[int32]bool
	inside map[*instance]int // with the PID that is part of it

	// blind says why it is not known who that is; then everybody is kept.
	blind string
}

func newGuard(t *table, c Consent) *guard {
	g := &guard{table: t, consent: c, doomed: map[*instance]bool{}, self: map[int32]bool{}, inside: map[*instance]int{}}
	if c.Self == 0 {
		return g
	}
	at := t.forest.at(c.Self)
	if at == none {
		g.blind = "mcpdoctor does not find itself among the processes, so that it cannot tell what it belongs to"
		return g
	}
	for ; at != none; at = t.forest.parent[at] {
		g.self[at] = true
		if in := t.of[at]; in != nil {
			g.inside[in] = t.proc(at).PID
		}
		if l := t.forest.lineage[at]; l == untold || l == untangled {
			g.blind = "mcpdoctor cannot tell what it belongs to itself"
		}
	}
	return g
}

// keepsInstance says why an instance is kept as a whole; "" when it is not. Only its helpers may be
// kept without it: to end a part of what starts and serves would make an orphan of the rest, or
// make the rest start it again.
func (g *guard) keepsInstance(s *given) string {
	in := s.in
	if g.blind != "" {
		return g.blind
	}
	if pid, ok := g.inside[in]; ok {
		return fmt.Sprintf("mcpdoctor was started from inside it (below pid %d)", pid)
	}
	for up := g.forest.parent[in.root]; up != none; up = g.forest.parent[up] {
		over := g.of[up]
		if pid, ok := g.inside[over]; ok && g.doomed[over] {
			return fmt.Sprintf("it belongs to %s (pid %d), from inside which mcpdoctor was started", over.name, pid)
		}
	}
	switch {
	case in.service != nil:
		return fmt.Sprintf("%s keeps it (%s)", in.service.Manager, in.service.Name)
	case in.owner.Kind == OwnerService:
		return in.owner.says() + " keeps it"
	case in.role == RoleClient && !g.headless(in):
		return "it is a client, which somebody may be using"
	}
	for _, m := range in.members {
		if !g.chain(in, m) || g.proc(m).State == "Z" {
			continue
		}
		reason := g.keeps(m)
		if reason == "" && !slices.Contains(s.nodes, m) {
			reason = "it was not given up"
		}
		if reason != "" {
			return fmt.Sprintf("pid %d: %s", g.proc(m).PID, reason)
		}
	}
	return ""
}

// onlyYoung tells that an instance would be ended if it were older.
func (g *guard) onlyYoung(s *given) bool {
	old := *g
	old.consent.OlderThan = 0
	return old.keepsInstance(s) == ""
}

// keepsHelper says why a helper is left alone when its instance is ended; "" when it is not.
func (g *guard) keepsHelper(s *given, node int32) string {
	if !slices.Contains(s.nodes, node) {
		return "the server started it, and it is not known to be a part of it"
	}
	return g.keeps(node)
}

// keeps says why one process may never be signalled; "" when it may.
func (g *guard) keeps(node int32) string {
	p := g.proc(node)
	switch {
	case p.PID <= 1:
		return "it is the first process"
	case g.kernel(p):
		return "it is a thread of the kernel, or what it runs cannot be read"
	case p.Start == 0:
		return "its start cannot be read, so that nothing tells it from another process with its PID"
	case p.Started.IsZero():
		return "its age cannot be read"
	case g.now.Sub(p.Started) < g.consent.OlderThan:
		return fmt.Sprintf("it is %s old, which is younger than %s", Age(max(0, g.now.Sub(p.Started))), Age(g.consent.OlderThan))
	case g.services[node] != nil:
		return fmt.Sprintf("%s keeps it (%s)", g.services[node].Manager, g.services[node].Name)
	case g.self[node]:
		return "it is mcpdoctor itself, or what started it"
	}
	return g.foreign(p)
}

// kernel tells that a process is a thread of the kernel, or cannot be told from one: it has no
// command line (proc_pid_cmdline(5)).
func (g *guard) kernel(p *scan.Process) bool { return len(p.Args) == 0 && p.Cmdline == "" }

// foreign says whose a process is that is not ours to end; "" when it is ours.
func (g *guard) foreign(p *scan.Process) string {
	if g.consent.AllUsers && g.root() || g.consent.Self == 0 {
		return ""
	}
	me := g.proc(g.forest.at(g.consent.Self))
	switch {
	case p.UID != nil && me.UID != nil:
		if *p.UID == *me.UID {
			return ""
		}
	case p.UID == nil && me.UID == nil && p.User != "" && p.User == me.User: // Windows
		return ""
	}
	if p.User == "" {
		return "it cannot be seen whose it is"
	}
	return "it belongs to the user " + p.User
}

// root tells that the one who looks is root.
func (g *guard) root() bool { return g.snap.Host.UID != nil && *g.snap.Host.UID == 0 }

// chain tells that a process is part of what an instance cannot do without: the launchers and the
// processes that serve. What is no part of it are the helpers; of a browser without a server its
// own processes below the first.
func (g *guard) chain(in *instance, node int32) bool {
	if in.role == RoleHelper {
		return node == in.main
	}
	rec := g.recs[node]
	return rec != nil && rec.Role != RoleHelper
}
