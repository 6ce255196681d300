package rules

import (
	"fmt"
	"maps"
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

func findRunaways(j *judgement) []Finding {
	var out []Finding
	for _, parent := range j.Instances {
		if parent.Role != process.RoleClient && parent.Role != process.RoleGateway {
			continue
		}
		all := j.ownedServers(parent)
		if parent.Role == process.RoleGateway {
			// Young servers may be answering requests: see spawn-per-request.
			all = slices.DeleteFunc(all, func(in *process.Instance) bool { age, ok := in.Age(); return ok && age < catalog.SessionAge })
		}
		n := kinds(all)
		if open, counted := parent.Inbound(); parent.Role == process.RoleGateway && counted {
			for identity := range n {
				n[identity] -= open // so many are in use
			}
		}
		var copies []*process.Instance
		worst := ""
		for _, identity := range slices.Sorted(maps.Keys(n)) {
			if n[identity] < manyCopies {
				continue
			}
			if worst == "" || n[identity] > n[worst] {
				worst = identity
			}
			for _, in := range all {
				if in.Identity == identity {
					copies = append(copies, in)
				}
			}
		}
		if worst == "" || len(j.oldEnough([]*process.Instance{parent})) == 0 {
			continue
		}
		out = append(out, j.runaway(parent, copies, n[worst]))
	}
	return out
}

func (j *judgement) runaway(parent *process.Instance, copies []*process.Instance, most int) Finding {
	j.SortByStart(copies)
	latest := map[string]*process.Instance{}
	for _, in := range copies {
		latest[in.Identity] = in
	}
	c := claim{
		severity: Warning, confidence: process.Likely, subjects: []*process.Instance{parent}, mainOnly: true, others: copies, parent: parent,
		key: fmt.Sprint(parent.Root().ID()),
	}
	var bytes int64
	for _, in := range copies {
		bytes += in.RSS()
		if latest[in.Identity] != in {
			c.onRequest = append(c.onRequest, in)
			j.decide(in, Suspect, fmt.Sprintf("%s: one of %d copies that %s (pid %d) keeps", j.rule.ID, most, parent.Name, parent.Main().PID))
		}
	}
	c.onRequest = j.oldEnough(c.onRequest)
	total := j.Snapshot.Host.MemoryTotalBytes
	if total > 0 && float64(bytes) >= memoryShare*float64(total) {
		c.severity = Error
	}
	c.title = fmt.Sprintf("%s (pid %d) holds %s of %s, %s RSS", parent.Name, parent.Main().PID, format.Count(len(copies), "instance"), nameAll(copies), format.Bytes(bytes))
	c.evidence = append(c.evidence, j.agesOf(copies)...)
	c.evidence = append(c.evidence, "all have the same running parent; none is an orphan")
	if total > 0 && bytes > 0 {
		c.evidence = append(c.evidence, fmt.Sprintf("together they hold %.0f %% of the machine's memory (RSS, which counts shared pages more than once)", 100*float64(bytes)/float64(total)))
	}
	c.remedy = Remedy{
		Summary: fmt.Sprintf("restart %s, which terminates them all; then update it, and report that it keeps a server per session", parent.Name),
		Steps:   []string{"remove the server from the configuration if you do not need it in every session"},
	}
	if len(c.onRequest) > 0 {
		c.remedy.Commands = append(c.remedy.Commands, j.reapLine(c.onRequest, true))
	}
	return j.finding(c)
}

func nameAll(ins []*process.Instance) string {
	names := map[string]bool{}
	for _, in := range ins {
		names[in.Name] = true
	}
	return format.List(slices.Sorted(maps.Keys(names)), 3)
}
