package diagnose

import (
	"cmp"
	"fmt"
	"slices"

	"mcpdoctor/rules"
	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/facts"
)

// findings adds what is wrong, each under the rule that explains it and with that rule's remedies.
func (j *endpointJudge) findings() {
	j.out.Restart, j.out.Growth = j.restart(), j.growth()
	if j.piling != "" {
		j.out.Findings = append(j.out.Findings, j.spawned())
	}
	if j.e.Transport == facts.LegacySSE {
		j.out.Findings = append(j.out.Findings, j.sse())
	} else if f, ok := j.retained(); ok {
		j.out.Findings = append(j.out.Findings, f)
	}
	slices.SortStableFunc(j.out.Findings, rules.WorseFirst)
}

// restart says what a restart of the server means for its clients.
func (j *endpointJudge) restart() string {
	legacy := j.e.Transport == facts.LegacySSE
	refused := j.e.Retention.Refused
	unknown, asked := j.answers[facts.AskUnknown]
	switch {
	case j.stranded != "":
		return "strands its clients: " + j.stranded
	case j.looks[facts.Settled].Gone:
		return "not known: the server exited during the probe"
	case refused != nil && refused.Status == 0 && !refused.Ours:
		return "not known: the server stopped answering during the probe"
	case j.verdicts[TopicClosed] == Unsure, j.verdicts[TopicStale] == Unsure, j.verdicts[TopicUnknown] == Unsure:
		return "not known: the answers to an old session prove nothing"
	case legacy:
		return "ends all sessions with their streams: clients are refused, and have to open a new stream and initialize again"
	case !asked:
		return "not known: the probe did not get that far"
	case !j.e.Session && j.unserved():
		return "not known: tools/list is refused"
	case j.e.Session && unknown.Result:
		return "survivable: it serves sessions that it does not know"
	case j.e.Session:
		return "survivable: clients with an old session are refused, and initialize again"
	}
	return "survivable: no request depends on an earlier one"
}

// growth says whether processes or memory pile up while the server runs.
func (j *endpointJudge) growth() string {
	switch {
	case j.piling != "":
		return "unbounded: " + j.piling
	case j.growing != "":
		return "unbounded: " + j.growing
	case j.e.Retention.Refused != nil && j.verdicts[TopicLimit] == Note:
		return fmt.Sprintf("bounded: it refuses more than about %d sessions", j.e.Retention.Served)
	case j.kept > 0:
		return "not known: it keeps dropped sessions for at least " + format.Age(j.kept)
	case j.verdicts[TopicMemory] == OK && j.verdicts[TopicProcesses] == OK:
		return "none: neither processes nor memory were left behind"
	case j.verdicts[TopicProcesses] == OK:
		return "no processes were left behind; memory was not judged"
	}
	return "not known"
}

// spawned is the leak of a process for each request or session.
func (j *endpointJudge) spawned() rules.Finding {
	const rule = "spawn-per-request"
	f := j.finding(rule, rules.Error)
	each := "request"
	if j.e.Session {
		each = "session"
	}
	listener := j.out.Process
	f.Title = fmt.Sprintf("%s (pid %d, port %s) keeps one process per %s: %s", listener.Name, listener.PID, j.e.Process.Port, each, j.piling)
	f.ParentPID = listener.PID
	for _, l := range j.e.Retention.Looks {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s below it, %s RSS of its own",
			lookWords[l.When], format.Count(l.Processes, "process"), format.Bytes(l.RSSBytes)))
	}
	for i := range j.e.Process.Left {
		p := &j.e.Process.Left[i]
		f.PIDs = append(f.PIDs, p.PID)
		f.Processes = append(f.Processes, rules.ProcessRow(p, j.out.Taken))
		f.RSSBytes += p.RSS()
		if p.PPID == f.ParentPID {
			f.Instances++
		}
	}
	f.Remedy = remedy(rule, rules.RemedyDirect)
	if r := j.gateway.Remedies.Spawn; r != "" {
		f.Remedy = remedy(rule, r, rules.RemedyDirect)
	}
	f.Remedy.Commands = append([]string{"mcpdoctor scan --rule " + rule}, f.Remedy.Commands...)
	return f
}

var lookWords = map[facts.When]string{
	facts.AtStart: "before the first request", facts.AtSessions: "after the questions", facts.AtOnce: "right after the last session",
	facts.Settled: "after the settling time", facts.Cleared: "after the sessions were deleted",
}

// sse is the deprecated transport.
func (j *endpointJudge) sse() rules.Finding {
	f := j.finding("sse-transport", rules.Warning)
	f.Title = "it speaks HTTP+SSE, which is deprecated: a session ends with its connection, and with every restart"
	for _, row := range j.out.Verdicts {
		if row.Topic != TopicTransport && row.Verdict == Failed {
			f.Severity = rules.Error
			f.Evidence = append(f.Evidence, row.Question+": "+row.Answer)
		}
	}
	stream := j.answers[facts.AskStream]
	f.Evidence = append(f.Evidence, fmt.Sprintf("GET returns %d and a stream that begins with an endpoint event", stream.Status))
	remedies := []string{rules.RemedyStreamableHTTP}
	if f.Severity == rules.Error {
		remedies = append(remedies, rules.RemedyRefuseDead)
	}
	if r := j.gateway.Remedies.SSE; r != "" {
		remedies = []string{r}
	}
	f.Remedy = remedy("sse-transport", remedies...)
	return f
}

// retained is what sessions cost: those that are kept, those that clients cannot end, and those that a restart loses.
func (j *endpointJudge) retained() (f rules.Finding, found bool) {
	f = j.finding("session-retention", rules.Info)
	var steps []string
	add := func(s rules.Severity, title, evidence, step string) {
		if s.Rank() > f.Severity.Rank() || f.Title == "" {
			f.Severity, f.Title = s, title
		}
		f.Evidence = append(f.Evidence, evidence)
		if !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	for _, row := range j.out.Verdicts {
		b, ok := broken[row.Topic]
		if row.Verdict == Failed && ok && (row.Topic != TopicProcesses || j.looks[facts.Settled].Gone) {
			add(rules.Error, b.title, row.Question+": "+row.Answer, b.remedy)
		}
	}
	if j.growing != "" {
		f.Confidence = process.Likely
		if j.kept > 0 {
			add(rules.Warning, "its memory grows with every dropped session",
				j.growing+", unless it ends idle sessions later", rules.RemedyNoSessions)
		} else {
			add(rules.Error, "its memory grows with every request", j.growing, rules.RemedyNoSessions)
		}
	}
	if j.stranded != "" {
		add(rules.Error, "a restart strands its clients: "+j.stranded, j.stranded, cmp.Or(j.gateway.Remedies.UnknownSession, rules.Remedy404))
	}
	if j.verdicts[TopicDelete] == Failed {
		add(rules.Warning, "clients cannot end their sessions", "DELETE does not end a session", rules.RemedyIdleTimeout)
	}
	if j.kept > 0 && !j.run.Has("--sessionTimeout") {
		add(rules.Info, "it keeps dropped sessions for at least "+format.Age(j.kept),
			"a dropped session still answered after "+format.Age(j.kept), cmp.Or(j.gateway.Remedies.IdleSession, rules.RemedyIdleTimeout))
	}
	if f.Title == "" {
		return f, false
	}
	if j.kept > 0 || j.growing != "" || j.stranded != "" {
		steps = append(steps, j.frameworks()...)
	}
	f.Remedy = remedy(f.Rule, steps...)
	return f, true
}

// broken are the checks whose failure means that the endpoint does not serve what it has to.
var broken = map[Topic]struct{ title, remedy string }{
	TopicTransport: {"it refuses initialize, and does not serve revision 2026-07-28 either", rules.RemedyDiscover},
	TopicWithout:   {"tools/list without a session is neither served nor refused correctly", rules.RemedyWithout},
	TopicWith:      {"it does not serve its own session", rules.RemedyOneMemory},
	TopicLimit:     {"it stops serving while sessions are opened and dropped", rules.RemedyLog},
	TopicProcesses: {"the server exited while sessions were opened and dropped", rules.RemedyLog},
}

// frameworks returns the remedies for the frameworks that the server may use: none for a gateway, all when its
// runtime is not known.
func (j *endpointJudge) frameworks() []string {
	compiled := j.e.Process.Found && !j.forwarder() && j.runtime == ""
	switch {
	case j.gateway.Name != "", compiled:
		return nil
	case j.runtime == "python":
		return []string{rules.RemedyFastMCP}
	case j.runtime == "node", j.runtime == "bun", j.runtime == "deno":
		return []string{rules.RemedyTypeScript, rules.RemedyMastra}
	}
	return []string{rules.RemedyTypeScript, rules.RemedyMastra, rules.RemedyFastMCP}
}

// finding returns a finding about this endpoint without its words.
func (j *endpointJudge) finding(rule string, s rules.Severity) rules.Finding {
	return rules.Finding{
		ID: rule + "-" + rules.Hash(j.e.URL), Rule: rule, Severity: s, Confidence: process.Certain, Evidence: []string{},
		PIDs: []int{}, Processes: []rules.Row{}, Reap: rules.Reap{Safe: []int{}, OnRequest: []int{}},
	}
}

// remedy returns some of a rule's remedies as one.
func remedy(rule string, of ...string) rules.Remedy {
	return rules.Remedy{Summary: of[0], Steps: append([]string{}, of[1:]...), Commands: []string{"mcpdoctor explain " + rule}}
}

// leftovers adds what the probe itself left behind: sessions that could not be deleted, and processes.
func (j *endpointJudge) leftovers() {
	n := j.e.Retention.Undeleted
	if r := j.answers[facts.AskDelete]; r.Status/100 == 2 && j.verdicts[TopicDelete] == Failed { // it only claims to delete them
		n += j.e.Retention.Deleted + 1
	}
	if n > 0 {
		j.out.Problems = append(j.out.Problems, fmt.Sprintf("%s of the probe could not be deleted, and %s until the server ends %s",
			format.Count(n, "session"), format.Plural(n, "stays", "stay"), format.Plural(n, "it", "them")))
	}
	left := j.e.Process.Left
	if len(left) == 0 || j.forwarder() {
		return
	}
	var roots []int
	for _, p := range left {
		if !slices.ContainsFunc(left, func(q scan.Process) bool { return q.PID == p.PPID }) {
			roots = append(roots, p.PID)
		}
	}
	more := ""
	if len(roots) < len(left) {
		more = ", with descendants"
	}
	j.out.Left = fmt.Sprintf("%s started below pid %d during the probe and %s still running: pid %s%s. "+
		"Those of the probe exit with the server; mcpdoctor scan judges them",
		format.Count(len(left), "process"), j.out.Process.PID, format.Plural(len(left), "is", "are"), format.PIDs(roots, 6), more)
}
