package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

var _ = register(Rule{
	ID:       "duplicate-sessions",
	Order:    40,
	Title:    "the same server runs once per open session",
	Severity: Info,
	Reap:     "on request: the sessions that an application keeps without a terminal, never the newest",
	Why: "Every session or window of a client starts a full set of servers. Each is in use, or could be; together they may cost more than the work they do. " +
		"An application that keeps the sessions of closed tabs makes it worse.",
	Evidence: []string{
		"the same server below four or more living sessions of one client program",
		"what the copies cost beyond the first",
	},
	Wrong: []string{
		"all sessions are really in use: then it is a cost, not a leak",
	},
	Remedy: []string{
		"close sessions that are not needed; quitting the application closes all",
		"run the server once over Streamable HTTP and let every session connect to it by URL",
		"end a session as a whole, by its client's process, never its servers one by one: the client would start them again",
	},
	check: findDuplicates,
})

const (
	// manySessions is where the number of sessions is worth a word. Two or three are regular work.
	manySessions = 4

	// costly is what redundant copies may hold before they are a warning: a Node server takes about
	// 70 MB, so this is some fifteen of them.
	costly = 1 << 30
)

func findDuplicates(t *judgement) []Finding {
	byClient := map[string][]*instance{}
	for _, c := range t.with(RoleClient) {
		if len(t.ownedServers(c)) > 0 {
			byClient[c.name] = append(byClient[c.name], c)
		}
	}
	var out []Finding
	for _, name := range slices.Sorted(maps.Keys(byClient)) {
		if sessions := byClient[name]; len(sessions) >= manySessions {
			if f, ok := t.duplicates(name, sessions); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

func (t *judgement) duplicates(client string, sessions []*instance) (Finding, bool) {
	t.byStart(sessions)
	holders := map[string]map[*instance]bool{} // by identity: the sessions that run it
	var all []*instance
	for _, s := range sessions {
		for _, in := range t.ownedServers(s) {
			if holders[in.identity] == nil {
				holders[in.identity] = map[*instance]bool{}
			}
			holders[in.identity][s] = true
			all = append(all, in)
		}
	}
	subjects := t.oldEnough(slices.DeleteFunc(all, func(in *instance) bool { return len(holders[in.identity]) < manySessions }))
	if len(subjects) == 0 {
		return Finding{}, false
	}
	var redundant int64
	first := map[string]bool{}
	for _, in := range subjects {
		if first[in.identity] {
			redundant += in.rss()
		}
		first[in.identity] = true
	}
	c := claim{severity: Info, confidence: Likely, subjects: subjects, key: client + "\x00" + strings.Join(slices.Sorted(maps.Keys(first)), "\x00")}
	if redundant >= costly {
		c.severity = Warning
	}
	kept := 0
	for i, s := range sessions {
		switch newest := i == len(sessions)-1; {
		case newest || !t.insideApplication(s):
			kept++
		default:
			c.onRequest = append(c.onRequest, s)
			c.onRequest = append(c.onRequest, t.ownedServers(s)...)
		}
	}
	c.onRequest = t.oldEnough(c.onRequest)
	names := map[string]bool{}
	for _, in := range subjects {
		names[in.name] = true
	}
	each := "the same server"
	if len(first) > 1 {
		each = fmt.Sprintf("the same %d servers", len(first))
	}
	c.title = fmt.Sprintf("%s: %d sessions run %s each: %s, %s RSS beyond one set", client, len(sessions), each, Count(len(subjects), "instance"), Bytes(redundant))
	c.evidence = append(c.evidence, "each runs once per session: "+listed(slices.Sorted(maps.Keys(names)), 6))
	c.evidence = append(c.evidence, t.agesOf(sessions)...)
	if app := t.applicationOf(sessions[0]); app != nil {
		c.evidence = append(c.evidence, fmt.Sprintf("the sessions belong to %s (pid %d), which is running", app.name, app.main().PID))
	}
	c.remedy = Remedy{
		Summary: "close the sessions that nobody needs, or run these servers once over Streamable HTTP for all sessions",
		Steps:   []string{"end a session as a whole, not its servers one by one: its client would start them again"},
	}
	if len(c.onRequest) > 0 {
		c.remedy.Commands = append(c.remedy.Commands, t.reapLine(c.onRequest, true))
	}
	c.remedy.Commands = append(c.remedy.Commands, "mcpdoctor explain duplicate-sessions")
	return t.finding(c), true
}

// applicationOf returns the client that keeps a session as its own child: a desktop application
// over the command-line client that it drives; nil when the session stands by itself.
func (t *judgement) applicationOf(session *instance) *instance {
	if session.above != nil && session.above.role == RoleClient {
		return session.above
	}
	return nil
}

// insideApplication tells that a session has no terminal of its own, where somebody might sit.
func (t *judgement) insideApplication(session *instance) bool {
	if t.applicationOf(session) == nil {
		return false
	}
	tty := session.main().TTY
	return tty == "" || tty == "-"
}
