package rules

import (
	"fmt"
	"slices"
	"strings"

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
	slices.SortStableFunc(j.out.Findings, worseFirst)
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
		return "not known: it keeps what clients drop for " + Age(j.kept) + " at least"
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
func (j *endpointJudge) spawned() Finding {
	f := j.finding("spawn-per-request", Error, Certain)
	each := "request"
	if j.e.Session {
		each = "session"
	}
	f.Title = fmt.Sprintf("%s (pid %d, port %s) keeps one process per %s: %s", j.out.Process.Name, j.out.Process.PID, j.e.Process.Port, each, j.piling)
	f.ParentPID = j.out.Process.PID
	for _, l := range j.e.Retention.Looks {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s below it, %s RSS of its own", lookWords[l.When], Count(l.Processes, "process"), Bytes(l.RSSBytes)))
	}
	for i := range j.e.Process.Left {
		p := &j.e.Process.Left[i]
		f.PIDs = append(f.PIDs, p.PID)
		row := Row{PID: p.PID, PPID: p.PPID, Started: p.Started, Command: commandLine(p), RSSBytes: p.RSSBytes}
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
	remedies := slices.DeleteFunc(slices.Clone(Lookup("spawn-per-request").Remedy), func(r string) bool {
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
func (j *endpointJudge) sse() Finding {
	f := j.finding("sse-transport", Warning, Certain)
	f.Title = "it speaks HTTP+SSE, which is deprecated: its sessions end with the connection, and with every restart"
	for _, v := range j.out.Verdicts {
		if v.Topic != TopicTransport && v.Verdict == Failed {
			f.Severity = Error
			f.Evidence = append(f.Evidence, strings.TrimSuffix(v.Question, "?")+": "+v.Answer)
		}
	}
	stream, _ := j.answer(facts.AskStream)
	f.Evidence = append(f.Evidence, fmt.Sprintf("GET is answered with %d and a stream that begins with an endpoint event", stream.Status))
	remedies := []string{remedyStreamableHTTP}
	if f.Severity == Error {
		remedies = append(remedies, remedyRefuseDead)
	}
	if j.gateway == "supergateway" {
		remedies = []string{remedySupergatewaySSE}
	}
	f.Remedy = j.remedy("sse-transport", remedies...)
	return f
}

// retained is what sessions cost: those that are kept, and those that nobody can end or knows to be gone.
func (j *endpointJudge) retained() (Finding, bool) {
	f := j.finding("session-retention", Info, Certain)
	add := func(s Severity, title, evidence string, remedy string) {
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
		f.Confidence = Likely
		if j.kept > 0 {
			add(Warning, "its memory grows with every session that is dropped", j.growing+", unless it ends idle sessions later", remedyNoSessions)
		} else {
			add(Error, "its memory grows with every request", j.growing, remedyNoSessions)
		}
	}
	if j.stranded != "" {
		add(Error, "a restart strands its clients: "+j.stranded, j.stranded, pick(j.gateway == "supergateway", remedyGateway404, remedy404))
	}
	if v := j.verdict(TopicDelete); v == Failed {
		add(Warning, "clients cannot end their sessions", "DELETE does not end a session", remedyIdleTimeout)
	}
	_, timed := j.command.Flag("--sessionTimeout")
	if j.kept > 0 && !timed {
		add(Info, "it keeps what clients drop, for "+Age(j.kept)+" at least", "a dropped session still answered after "+Age(j.kept),
			pick(j.gateway == "supergateway", remedyGatewayTimeout, remedyIdleTimeout))
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

// broken are the rows that failed because the endpoint does not serve what it has to.
func (j *endpointJudge) broken(add func(s Severity, title, evidence, remedy string)) {
	settled, _ := j.look(facts.Settled)
	for _, v := range j.out.Verdicts {
		if v.Verdict != Failed {
			continue
		}
		evidence := v.Question + " " + v.Answer
		switch {
		case v.Topic == TopicProcesses && settled.Gone:
			add(Error, "the server ended while sessions were opened and dropped", evidence, remedyLog)
		case v.Topic == TopicLimit:
			add(Error, "it stops serving while sessions are opened and dropped", evidence, remedyLog)
		case v.Topic == TopicWith:
			add(Error, "the session that it hands out is not served", evidence, remedyOneMemory)
		case v.Topic == TopicWithout:
			add(Error, "tools/list without a session is neither served nor refused as it should be", evidence, remedyWithout)
		case v.Topic == TopicTransport:
			add(Error, "it refuses initialize, and does not serve revision 2026-07-28 either", evidence, remedyDiscover)
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
		return []string{remedyFastMCP}
	case runtime == "node" || runtime == "bun" || runtime == "deno":
		return []string{remedyTypeScript, remedyMastra}
	case j.e.Process.Found && !j.forwarder() && runtime == "":
		return nil // a program of its own
	}
	return []string{remedyTypeScript, remedyMastra, remedyFastMCP}
}

// finding begins a finding of a rule about this endpoint.
func (j *endpointJudge) finding(rule string, s Severity, sure Confidence) Finding {
	return Finding{
		ID: rule + "-" + hash(j.e.URL), Rule: rule, Severity: s, Confidence: sure, Evidence: []string{},
		PIDs: []int{}, Processes: []Row{}, Reap: Reap{Safe: []int{}, OnRequest: []int{}},
		Remedy: Remedy{Steps: []string{}, Commands: []string{}},
	}
}

// remedy makes one of some of a rule's own.
func (j *endpointJudge) remedy(rule string, of ...string) Remedy {
	return Remedy{Summary: of[0], Steps: append([]string{}, of[1:]...), Commands: []string{"mcpdoctor explain " + rule}}
}

// undeleted says how many sessions the probe itself has left behind.
func (j *endpointJudge) undeleted() {
	n := j.e.Retention.Undeleted
	if r, _ := j.answer(facts.AskDelete); r.Status/100 == 2 && j.verdict(TopicDelete) == Failed { // it says that it deletes them
		n += j.e.Retention.Deleted + 1
	}
	if n > 0 {
		j.out.Problems = append(j.out.Problems, fmt.Sprintf("%s that the probe opened could not be deleted, and %s until the server ends %s", Count(n, "session"), be(n, "stays", "stay"), be(n, "it", "them")))
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
		Count(len(left), "process"), j.out.Process.PID, be(len(left), "is", "are"), pidList(pids, 6), pick(len(top) < len(left), ", each with its own", ""))
}
