package rules

import (
	"fmt"
	"slices"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
)

var _ = register(Rule{
	ID:       "runaway-parent",
	Order:    50,
	Title:    "a client or gateway keeps far more servers than it needs",
	Severity: Warning,
	Reap:     "never the parent; its older copies on request",
	Why: "A client that starts a server for each session, thread or subagent and keeps it grows without end, and is itself the leak: " +
		"it replaces the children that you terminate one by one.",
	Evidence: []string{
		"five or more copies of one server directly below one running parent",
		"their ages: one more with every session",
		"their memory, against the memory of the machine",
	},
	Wrong: []string{
		"a client that works in that many sessions at once",
	},
	Remedy: []string{
		"restart the parent, which terminates its servers; then update it, and report that it keeps a server per session",
		"remove the server from the configuration where you do not need it in every session",
	},
	check: findRunaways,
})

const (
	// manyCopies is how many copies of one server are more than a client needs: applications start two, and
	// few people work in more than four threads of one client at a time.
	manyCopies = 5

	// memoryShare is the share of the machine's memory from which the finding is an error.
	memoryShare = 0.2
)

func findRunaways(j *judgement) {
	for _, parent := range j.oldEnough(j.WithRole(process.RoleClient, process.RoleGateway)) {
		all, inUse := j.ownedServers(parent), 0
		if parent.Role == process.RoleGateway {
			inUse, _ = parent.Inbound()
			// Young servers may be answering requests: see spawn-per-request.
			all = slices.DeleteFunc(all, func(in *process.Instance) bool { age, ok := in.Age(); return ok && age < catalog.SessionAge })
		}
		var copies []*process.Instance
		most := 0
		for _, same := range grouped(all, identity) {
			if n := len(same) - inUse; n >= manyCopies {
				copies = append(copies, same...)
				most = max(most, n)
			}
		}
		if most > 0 {
			j.runaway(parent, copies, most)
		}
	}
}

func (j *judgement) runaway(parent *process.Instance, copies []*process.Instance, most int) {
	j.SortByStart(copies)
	latest := map[string]*process.Instance{}
	for _, in := range copies {
		latest[in.Identity] = in
	}
	c := claim{subjects: []*process.Instance{parent}, others: copies, parent: parent, key: fmt.Sprint(parent.Root().ID())}
	for _, in := range copies {
		if latest[in.Identity] != in {
			c.onRequest = append(c.onRequest, in)
			j.decisions[in] = &decision{verdict: Suspect, because: fmt.Sprintf("%s: one of %d copies that %s keeps", j.rule.ID, most, parent)}
		}
	}
	c.onRequest = j.oldEnough(c.onRequest)
	bytes, total := rss(copies), j.Snapshot.Host.MemoryTotalBytes
	c.title = fmt.Sprintf("%s holds %s of %s, %s RSS",
		parent, format.Count(len(copies), "instance"), format.List(distinct(copies, name), 3), format.Bytes(bytes))
	c.evidence = []string{j.agesOf(copies), "all have the same running parent; none is an orphan"}
	if total > 0 && bytes > 0 {
		share := float64(bytes) / float64(total)
		if share >= memoryShare {
			c.severity = Error
		}
		c.evidence = append(c.evidence,
			fmt.Sprintf("together they hold %.0f %% of the machine's memory (RSS, which counts shared pages more than once)", 100*share))
	}
	c.remedy = Remedy{
		Summary: fmt.Sprintf("restart %s, which terminates them all; then update it, and report that it keeps a server per session", parent.Name),
		Steps:   []string{"remove the server from the configuration if you do not need it in every session"},
	}
	j.report(c)
}
