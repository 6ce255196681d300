package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mcpdoctor/rules"
	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/facts"
)

// findings are what is wrong, each under the rule that explains it, with that rule's own remedies. The
// two sentences about a restart and about growth say the same in short.
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

func (j *endpointJudge) restart() string {
	const untold = "not known: what clients with an old session are told could not be learned"
	settled, _ := j.look(facts.Settled)
	switch {
	case j.stranded != "":
		return "strands its clients: " + j.stranded
	case settled.Gone:
		return "not known: the server ended while it was asked"
	case j.e.Retention.Refused != nil && j.e.Retention.Refused.Status == 0 && !j.e.Retention.Refused.Ours:
		return "not known: the server stopped answering while it was asked"
	case j.e.Transport == facts.LegacySSE && (j.verdict(TopicClosed) == Unsure || j.verdict(TopicStale) == Unsure):
		return untold
	case j.e.Transport == facts.LegacySSE:
		return "costs its clients their sessions, which end with the streams: who POSTs to an old one is refused, and has to know to begin anew"
	}
	unknown, asked := j.answer(facts.AskUnknown)
	switch {
	case !asked:
		return "not known: not all was asked"
	case j.verdict(TopicUnknown) == Unsure:
		return untold
	case !j.e.Session && j.unserved():
		return "not known: it serves no tools/list"
	case j.e.Session && unknown.Result:
		return "survivable: a session that it does not know is served as well"
	case j.e.Session:
		return "survivable: clients whose session is gone are told, and initialize again"
	}
	return "survivable: no request depends on an earlier one"
}

func (j *endpointJudge) growth() string {
	limited := j.e.Retention.Refused != nil && j.verdict(TopicLimit) == Note
	switch {
	case j.piling != "":
		return "it grows: " + j.piling
	case j.growing != "":
		return "it grows: " + j.growing
	case limited:
		return fmt.Sprintf("it does not grow without bound: it refuses sessions beyond some %d", j.e.Retention.Served)
	case j.kept > 0:
		return "not known: it keeps what clients drop for " + format.Age(j.kept) + " at least"
	case j.verdict(TopicMemory) == OK && j.verdict(TopicProcesses) == OK:
		return "it does not grow: neither processes nor memory were left behind"
	case j.verdict(TopicProcesses) == OK:
		return "it leaves no processes behind; its memory was not judged"
	}
	return "not known"
}

// verdict finds the verdict of a row; empty when there is none.
func (j *endpointJudge) verdict(topic Topic) EndpointOutcome {
	for _, v := range j.out.Verdicts {
		if v.Topic == topic {
			return v.Verdict
		}
	}
	return ""
}

// spawned is the leak of a process for each request or session.
func (j *endpointJudge) spawned() rules.Finding {
	f := j.finding("spawn-per-request", rules.Error, process.Certain)
	each := "request"
	if j.e.Session {
		each = "session"
	}
	f.Title = fmt.Sprintf("%s (pid %d, port %s) keeps one process per %s: %s", j.out.Process.Name, j.out.Process.PID, j.e.Process.Port, each, j.piling)
	f.ParentPID = j.out.Process.PID
	for _, l := range j.e.Retention.Looks {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s below it, %s RSS of its own", lookWords[l.When], format.Count(l.Processes, "process"), format.Bytes(l.RSSBytes)))
	}
	for i := range j.e.Process.Left {
		p := &j.e.Process.Left[i]
		f.PIDs = append(f.PIDs, p.PID)
		row := rules.Row{PID: p.PID, PPID: p.PPID, Started: p.Started, Command: process.CommandLine(p), Argv: p.Args, RSSBytes: p.RSSBytes}
		if !p.Started.IsZero() {
			age := int64(max(0, j.out.Taken.Sub(p.Started)).Seconds())
			row.AgeSeconds = &age
		}
		f.Processes = append(f.Processes, row)
		f.RSSBytes += p.RSS()
		if p.PPID == f.ParentPID {
			f.Instances++
		}
	}
	remedies := slices.DeleteFunc(slices.Clone(rules.Lookup("spawn-per-request").Remedy), func(r string) bool {
		name, _, of := strings.Cut(r, ":")
		name, _, _ = strings.Cut(name, " 3")
		return of && !strings.Contains(name, " Streamable HTTP") && name != j.gateway
	})
	f.Remedy = j.remedy("spawn-per-request", remedies...)
	f.Remedy.Commands = append([]string{"mcpdoctor scan --rule " + "spawn-per-request"}, f.Remedy.Commands...)
	return f
}

var lookWords = map[facts.When]string{
	facts.AtStart: "before the first request", facts.AtSessions: "after the questions", facts.AtOnce: "right after the last session",
	facts.Settled: "after the settling time", facts.Cleared: "after the sessions were deleted",
}

// sse is the old transport.
func (j *endpointJudge) sse() rules.Finding {
	f := j.finding("sse-transport", rules.Warning, process.Certain)
	f.Title = "it speaks HTTP+SSE, which is deprecated: its sessions end with the connection, and with every restart"
	for _, v := range j.out.Verdicts {
		if v.Topic != TopicTransport && v.Verdict == Failed {
			f.Severity = rules.Error
			f.Evidence = append(f.Evidence, strings.TrimSuffix(v.Question, "?")+": "+v.Answer)
		}
	}
	stream, _ := j.answer(facts.AskStream)
	f.Evidence = append(f.Evidence, fmt.Sprintf("GET is answered with %d and a stream that begins with an endpoint event", stream.Status))
	remedies := []string{rules.RemedyStreamableHTTP}
	if f.Severity == rules.Error {
		remedies = append(remedies, rules.RemedyRefuseDead)
	}
	if r := j.remedies().SSE; r != "" {
		remedies = []string{r}
	}
	f.Remedy = j.remedy("sse-transport", remedies...)
	return f
}

// retained is what sessions cost: those that are kept, and those that nobody can end or knows to be gone.
func (j *endpointJudge) retained() (rules.Finding, bool) {
	f := j.finding("session-retention", rules.Info, process.Certain)
	add := func(s rules.Severity, title, evidence string, remedy string) {
		if s.Rank() > f.Severity.Rank() || f.Title == "" {
			f.Severity, f.Title = s, title
		}
		f.Evidence = append(f.Evidence, evidence)
		if !slices.Contains(f.Remedy.Steps, remedy) {
			f.Remedy.Steps = append(f.Remedy.Steps, remedy)
		}
	}
	j.broken(add)
	if j.growing != "" {
		f.Confidence = process.Likely
		if j.kept > 0 {
			add(rules.Warning, "its memory grows with every session that is dropped", j.growing+", unless it ends idle sessions later", rules.RemedyNoSessions)
		} else {
			add(rules.Error, "its memory grows with every request", j.growing, rules.RemedyNoSessions)
		}
	}
	if j.stranded != "" {
		add(rules.Error, "a restart strands its clients: "+j.stranded, j.stranded, cmp.Or(j.remedies().UnknownSession, rules.Remedy404))
	}
	if v := j.verdict(TopicDelete); v == Failed {
		add(rules.Warning, "clients cannot end their sessions", "DELETE does not end a session", rules.RemedyIdleTimeout)
	}
	if j.kept > 0 && !j.run.Has("--sessionTimeout") {
		add(rules.Info, "it keeps what clients drop, for "+format.Age(j.kept)+" at least", "a dropped session still answered after "+format.Age(j.kept),
			cmp.Or(j.remedies().IdleSession, rules.RemedyIdleTimeout))
	}
	if f.Title == "" {
		return f, false
	}
	if j.kept > 0 || j.growing != "" || j.stranded != "" {
		f.Remedy.Steps = append(f.Remedy.Steps, j.frameworks()...)
	}
	f.Remedy = j.remedy("session-retention", f.Remedy.Steps...)
	return f, true
}

// remedies are those of the gateway that listens.
func (j *endpointJudge) remedies() catalog.Remedies {
	if j.known == nil {
		return catalog.Remedies{}
	}
	return j.known.Remedies
}

// broken are the rows that failed because the endpoint does not serve what it has to.
func (j *endpointJudge) broken(add func(s rules.Severity, title, evidence, remedy string)) {
	settled, _ := j.look(facts.Settled)
	for _, v := range j.out.Verdicts {
		if v.Verdict != Failed {
			continue
		}
		evidence := v.Question + " " + v.Answer
		switch {
		case v.Topic == TopicProcesses && settled.Gone:
			add(rules.Error, "the server ended while sessions were opened and dropped", evidence, rules.RemedyLog)
		case v.Topic == TopicLimit:
			add(rules.Error, "it stops serving while sessions are opened and dropped", evidence, rules.RemedyLog)
		case v.Topic == TopicWith:
			add(rules.Error, "the session that it hands out is not served", evidence, rules.RemedyOneMemory)
		case v.Topic == TopicWithout:
			add(rules.Error, "tools/list without a session is neither served nor refused as it should be", evidence, rules.RemedyWithout)
		case v.Topic == TopicTransport:
			add(rules.Error, "it refuses initialize, and does not serve revision 2026-07-28 either", evidence, rules.RemedyDiscover)
		}
	}
}

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// frameworks are the remedies of frameworks that the process may be built on: none for a gateway, all
// where its runtime is not seen.
func (j *endpointJudge) frameworks() []string {
	switch runtime := j.runtime; {
	case j.gateway != "":
		return nil
	case runtime == "python":
		return []string{rules.RemedyFastMCP}
	case runtime == "node" || runtime == "bun" || runtime == "deno":
		return []string{rules.RemedyTypeScript, rules.RemedyMastra}
	case j.e.Process.Found && !j.forwarder() && runtime == "":
		return nil // a program of its own
	}
	return []string{rules.RemedyTypeScript, rules.RemedyMastra, rules.RemedyFastMCP}
}

// finding begins a finding of a rule about this endpoint.
func (j *endpointJudge) finding(rule string, s rules.Severity, sure process.Confidence) rules.Finding {
	return rules.Finding{
		ID: rule + "-" + rules.Hash(j.e.URL), Rule: rule, Severity: s, Confidence: sure, Evidence: []string{},
		PIDs: []int{}, Processes: []rules.Row{}, Reap: rules.Reap{Safe: []int{}, OnRequest: []int{}},
		Remedy: rules.Remedy{Steps: []string{}, Commands: []string{}},
	}
}

// remedy makes one of some of a rule's own.
func (j *endpointJudge) remedy(rule string, of ...string) rules.Remedy {
	return rules.Remedy{Summary: of[0], Steps: append([]string{}, of[1:]...), Commands: []string{"mcpdoctor explain " + rule}}
}

// undeleted says how many sessions the probe itself has left behind.
func (j *endpointJudge) undeleted() {
	n := j.e.Retention.Undeleted
	if r, _ := j.answer(facts.AskDelete); r.Status/100 == 2 && j.verdict(TopicDelete) == Failed { // it says that it deletes them
		n += j.e.Retention.Deleted + 1
	}
	if n > 0 {
		j.out.Problems = append(j.out.Problems, fmt.Sprintf("%s that the probe opened could not be deleted, and %s until the server ends %s", format.Count(n, "session"), format.Plural(n, "stays", "stay"), format.Plural(n, "it", "them")))
	}
}

// left says what the probe itself has left behind.
func (j *endpointJudge) left() {
	left := j.e.Process.Left
	if len(left) == 0 || j.forwarder() {
		return
	}
	top := slices.Clone(left)
	inside := map[int]bool{}
	for _, p := range left {
		inside[p.PID] = true
	}
	top = slices.DeleteFunc(top, func(p scan.Process) bool { return inside[p.PPID] })
	var pids []int
	for _, p := range top {
		pids = append(pids, p.PID)
	}
	j.out.Left = fmt.Sprintf("during the probe %s came below pid %d and %s still there: pid %s%s. Those of the probe end with the server; mcpdoctor scan judges them",
		format.Count(len(left), "process"), j.out.Process.PID, format.Plural(len(left), "is", "are"), format.PIDs(pids, 6), pick(len(top) < len(left), ", each with its own", ""))
}
