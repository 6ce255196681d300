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
	ID:       "duplicate-sessions",
	Order:    40,
	Title:    "the same server runs once per open session",
	Severity: Info,
	Reap:     "on request: sessions that an application keeps without a terminal, never the newest",
	Why: "Every session or window of a client starts a full set of servers. Each is in use, or could be, but together they may cost more than they are worth. " +
		"An application that keeps the sessions of closed tabs makes it worse.",
	Evidence: []string{
		"the same server below four or more running sessions of one client program",
		"what the copies cost beyond the first",
	},
	Wrong: []string{
		"all sessions are in use: then it is a cost, not a leak",
	},
	Remedy: []string{
		"close the sessions you do not need; quitting the application closes all",
		"run the server once over Streamable HTTP, and configure its URL for every session",
		"terminate a session as a whole, by its client's process: a client starts single servers again",
	},
	check: findDuplicates,
})

const (
	// manySessions is the number of sessions worth reporting. Two or three are regular work.
	manySessions = 4

	// costly is the memory of redundant copies from which they are a warning: about fifteen Node servers.
	costly = 1 << 30
)

func findDuplicates(j *judgement) []Finding {
	byClient := map[string][]*process.Instance{}
	for _, c := range j.WithRole(process.RoleClient) {
		if len(j.ownedServers(c)) > 0 {
			byClient[c.Name] = append(byClient[c.Name], c)
		}
	}
	var out []Finding
	for _, name := range slices.Sorted(maps.Keys(byClient)) {
		if sessions := byClient[name]; len(sessions) >= manySessions {
			if f, ok := j.duplicates(name, sessions); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

func (j *judgement) duplicates(client string, sessions []*process.Instance) (Finding, bool) {
	j.SortByStart(sessions)
	holders := map[string]map[*process.Instance]bool{} // by identity: the sessions that run it
	var all []*process.Instance
	for _, s := range sessions {
		for _, in := range j.ownedServers(s) {
			if holders[in.Identity] == nil {
				holders[in.Identity] = map[*process.Instance]bool{}
			}
			holders[in.Identity][s] = true
			all = append(all, in)
		}
	}
	subjects := j.oldEnough(slices.DeleteFunc(all, func(in *process.Instance) bool { return len(holders[in.Identity]) < manySessions }))
	if len(subjects) == 0 {
		return Finding{}, false
	}
	var redundant int64
	first := map[string]bool{}
	for _, in := range subjects {
		if first[in.Identity] {
			redundant += in.RSS()
		}
		first[in.Identity] = true
	}
	c := claim{severity: Info, confidence: process.Likely, subjects: subjects, key: client + "\x00" + strings.Join(slices.Sorted(maps.Keys(first)), "\x00")}
	if redundant >= costly {
		c.severity = Warning
	}
	kept := 0
	for i, s := range sessions {
		switch newest := i == len(sessions)-1; {
		case newest || !j.insideApplication(s):
			kept++
		default:
			c.onRequest = append(c.onRequest, s)
			c.onRequest = append(c.onRequest, j.ownedServers(s)...)
		}
	}
	c.onRequest = j.oldEnough(c.onRequest)
	names := map[string]bool{}
	for _, in := range subjects {
		names[in.Name] = true
	}
	each := "the same server"
	if len(first) > 1 {
		each = fmt.Sprintf("the same %d servers", len(first))
	}
	c.title = fmt.Sprintf("%s: %d sessions run %s each: %s, %s RSS beyond one set", client, len(sessions), each, format.Count(len(subjects), "instance"), format.Bytes(redundant))
	c.evidence = append(c.evidence, "each runs once per session: "+format.List(slices.Sorted(maps.Keys(names)), 6))
	c.evidence = append(c.evidence, j.agesOf(sessions)...)
	if app := j.applicationOf(sessions[0]); app != nil {
		c.evidence = append(c.evidence, fmt.Sprintf("the sessions belong to %s (pid %d), which is running", app.Name, app.Main().PID))
	}
	c.remedy = Remedy{
		Summary: "close the sessions you do not need, or run these servers once over Streamable HTTP for all sessions",
		Steps:   []string{"terminate a session as a whole, not its servers one by one: its client would start them again"},
	}
	if len(c.onRequest) > 0 {
		c.remedy.Commands = append(c.remedy.Commands, j.reapLine(c.onRequest, true))
	}
	return j.finding(c), true
}

// applicationOf returns the desktop application that runs a command-line session as its child; nil when
// there is none.
func (j *judgement) applicationOf(session *process.Instance) *process.Instance {
	if session.OwnedBy != nil && session.OwnedBy.Role == process.RoleClient {
		return session.OwnedBy
	}
	return nil
}

// insideApplication reports whether a session belongs to an application and has no terminal of its own.
func (j *judgement) insideApplication(session *process.Instance) bool {
	if j.applicationOf(session) == nil {
		return false
	}
	tty := session.Main().TTY
	return tty == "" || tty == "-"
}
