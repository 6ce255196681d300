package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

// selectedPIDs returns what the findings of the named rules select, safe and on request; of all rules if none is
// named.
func selectedPIDs(r *process.Recognised, named []string) map[int]bool {
	out := map[int]bool{}
	for _, f := range rules.Judge(r, rules.Options{}).Findings {
		if len(named) > 0 && !slices.Contains(named, f.Rule) {
			continue
		}
		for _, pid := range slices.Concat(f.Reap.Safe, f.Reap.OnRequest) {
			out[pid] = true
		}
	}
	return out
}

// whyWrong returns why p must not be signalled at this moment; "" if it may.
func (s *simulation) whyWrong(p *task, older time.Duration, named []string, given map[int]bool) string {
	age := s.present - p.born
	switch {
	case s.cancelled.Load():
		return "mcpdoctor was interrupted before"
	case p.pid == 1:
		return "it is PID 1"
	case s.jobs[p]:
		return "it is supervised"
	case p.uid != s.observer.uid && !(s.observer.uid == 0 && s.allUsers):
		return fmt.Sprintf("it belongs to user %d", p.uid)
	case p.tty != "-" && p.stdin.kind == scan.StdinTTY && len(p.purposes) > 0 && p.purposes[0].what == "a person uses it":
		return "it is a client at a terminal"
	case age < older:
		return fmt.Sprintf("it is %v old", age)
	case !given[p.pid]:
		return "no rule of the consent selected it"
	}
	for up := s.self; up != nil; up = up.parent {
		if up == p {
			return "it is mcpdoctor, or an ancestor of it"
		}
	}
	if len(named) > 0 {
		return "" // the user has named the rule that selected it
	}
	return p.needed()
}

// provable reports whether a unit is leaked and reap can see everything that proves it. It judges by the facts of the
// machine: which ends are open, and which process adopted it.
func (s *simulation) provable(u *unit, older time.Duration, named []string, all bool) bool {
	top := u.tasks[0]
	for top.exited {
		i := slices.IndexFunc(u.tasks, func(p *task) bool { return !p.exited })
		if i < 0 {
			return false
		}
		top = u.tasks[i]
	}
	for _, p := range u.tasks {
		if p.exited {
			continue
		}
		if p.needed() != "" || len(p.unreadable) > 0 || len(p.listens) > 0 || p.unkillable || p.signalErr != nil || p.stdin.fd > 3 ||
			s.present-p.born < max(older, 20*time.Second) {
			return false
		}
		if p.uid != s.observer.uid && !(s.observer.uid == 0 && all) {
			return false
		}
	}
	for up := s.self; up != nil; up = up.parent {
		if slices.Contains(u.tasks, up) {
			return false
		}
	}
	if u.main.exited || s.observer.hidepid && s.observer.uid != 0 || strings.Contains(commandWords(u.main.args), "/home/dev/mcp/") {
		return false // hidepid hides mcpdoctor's own ancestors; that program has no telling name
	}
	ruleNamed := func(rule string) bool { return len(named) == 0 || slices.Contains(named, rule) }
	switch u.kind {
	case orphan:
		w := u.main.stdin.pipe
		reader := u.main.stdout.pipe != nil && len(u.main.stdout.pipe.readers) > 0
		adopter := top.parent == s.init && !s.host.Container || top.parent.subreaper && top.parent.args[0] != "/opt/agents/keeper"
		return w != nil && !w.hasWriter() && !w.unread && !reader && adopter && ruleNamed("orphan") && s.observer.servicesAnswer
	case child:
		g := top.parent
		idle := s.present - top.born
		return g.version == "3.4.3" && !g.exited && len(g.connections) == 0 && idle > 30*time.Second && u.main.stdin.pipe.hasWriter() &&
			slices.Contains(g.args, "--outputTransport") && !slices.Contains(g.args, "--stateful") &&
			ruleNamed("spawn-per-request") && s.newest(g) != top && len(g.children) > 2
	}
	if u.kind == browser {
		w := u.main.stdin.pipe
		adopter := u.main.parent == s.init && !s.host.Container || u.main.parent.subreaper && u.main.parent.args[0] != "/opt/agents/keeper"
		return w != nil && !w.hasWriter() && adopter && !s.undecided(u.main) && ruleNamed("leftover-helper") && s.observer.servicesAnswer
	}
	return false
}

func (s *simulation) newest(g *task) *task {
	var out *task
	for _, c := range g.children {
		if out == nil || c.born >= out.born {
			out = c
		}
	}
	return out
}
