package rules

import (
	"fmt"
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
	Why: "Every session or window of a client starts a full set of servers. Each is in use, or could be, but together they may " +
		"cost more than they are worth. " +
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

func findDuplicates(j *judgement) {
	clients := slices.DeleteFunc(j.WithRole(process.RoleClient), func(c *process.Instance) bool { return len(j.ownedServers(c)) == 0 })
	for _, sessions := range grouped(clients, name) {
		j.duplicates(sessions)
	}
}

func (j *judgement) duplicates(sessions []*process.Instance) {
	j.SortByStart(sessions)
	var all []*process.Instance
	for _, s := range sessions {
		all = append(all, j.ownedServers(s)...)
	}
	var c claim
	var redundant int64
	var identities []string
	for _, copies := range grouped(all, identity) {
		below := distinct(copies, func(in *process.Instance) string { return fmt.Sprint(in.OwnedBy.Root().PID) })
		if copies = j.oldEnough(copies); len(below) < manySessions || len(copies) == 0 {
			continue
		}
		identities = append(identities, copies[0].Identity)
		c.subjects = append(c.subjects, copies...)
		redundant += rss(copies[1:])
	}
	if len(c.subjects) == 0 {
		return
	}
	if redundant >= costly {
		c.severity = Warning
	}
	for _, s := range sessions[:len(sessions)-1] { // the newest is kept
		if application(s) != nil && !s.HasTerminal() {
			c.onRequest = append(append(c.onRequest, s), j.ownedServers(s)...)
		}
	}
	c.onRequest = j.oldEnough(c.onRequest)
	client, each := sessions[0].Name, "the same server"
	if len(identities) > 1 {
		each = fmt.Sprintf("the same %d servers", len(identities))
	}
	c.key = client + "\x00" + strings.Join(identities, "\x00")
	c.title = fmt.Sprintf("%s: %d sessions run %s each: %s, %s RSS beyond one set",
		client, len(sessions), each, format.Count(len(c.subjects), "instance"), format.Bytes(redundant))
	c.evidence = []string{"each runs once per session: " + format.List(distinct(c.subjects, name), 6), j.agesOf(sessions)}
	if app := application(sessions[0]); app != nil {
		c.evidence = append(c.evidence, fmt.Sprintf("the sessions belong to %s, which is running", app))
	}
	c.remedy = Remedy{
		Summary: "close the sessions you do not need, or run these servers once over Streamable HTTP for all sessions",
		Steps:   []string{"terminate a session as a whole, not its servers one by one: its client would start them again"},
	}
	j.report(c)
}

// application returns the desktop application that runs a command-line session as its child; nil for none.
func application(session *process.Instance) *process.Instance {
	if over := session.OwnedBy; over != nil && over.Role == process.RoleClient {
		return over
	}
	return nil
}
