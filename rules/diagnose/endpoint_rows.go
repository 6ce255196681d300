package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/format"
	"mcpdoctor/scan/facts"
)

// transport says what the endpoint speaks.
func (j *endpointJudge) transport() {
	const question = "what does it speak?"
	switch e := j.e; e.Transport {
	case facts.LegacySSE:
		answer := "HTTP+SSE of 2024-11-05, deprecated since 2025-03-26"
		if r, _ := j.answer(facts.AskOverStream); !r.Result {
			answer += "; initialize is answered with " + r.Words()
		}
		j.row(TopicTransport, question, Failed, answer)
	case facts.Stateless:
		r, _ := j.answer(facts.AskInitialize)
		if e.Modern {
			j.row(TopicTransport, question, OK, "Streamable HTTP of 2026-07-28 alone; initialize, with which older clients begin, is answered with "+r.Words())
			return
		}
		r, _ = j.answer(facts.AskModern)
		j.row(TopicTransport, question, Failed, "initialize is refused as by a server of 2026-07-28, but server/discover is answered with "+r.Words())
	default:
		answer := "Streamable HTTP"
		if e.Version != "" {
			answer += ", protocol " + e.Version
		}
		if e.Modern {
			answer += "; and 2026-07-28 beside it"
		}
		j.row(TopicTransport, question, OK, answer)
	}
}

// sessions goes through what a session is to an endpoint of Streamable HTTP.
func (j *endpointJudge) sessions() {
	if j.e.Transport == facts.Streamable {
		answer := "no"
		if j.e.Session {
			answer = "yes, it hands out an Mcp-Session-Id"
		}
		j.row(TopicSession, "does initialize open a session?", Note, answer)
	}
	if r, asked := j.answer(facts.AskWithout); asked {
		verdict, answer := OK, r.Words()
		doubt := j.doubt(facts.AskWithout, r)
		switch {
		case doubt != "":
			verdict, answer = Unsure, answer+doubt
		case r.Result && j.e.Session:
			verdict, answer = Note, answer+", though initialize hands out sessions"
		case r.Result:
			answer += ": it needs none"
		case !j.e.Session || r.Status == 0 || r.Status >= 500 || r.Status/100 == 2 && !r.Error:
			verdict = Failed
		case r.Status == notFound:
			verdict, answer = Note, answer+" instead of 400: it tells clients that a session has ended, and to initialize again"
		case r.Status != badRequest:
			verdict, answer = Note, answer+": refused, though not with 400"
		}
		j.row(TopicWithout, "tools/list without a session?", verdict, answer)
	}
	if r, asked := j.answer(facts.AskWith); asked && !r.Result {
		verdict, doubt := Failed, j.doubt(facts.AskWith, r)
		if doubt != "" {
			verdict = Unsure
		}
		j.row(TopicWith, "tools/list with the session?", verdict, r.Words()+doubt)
	}
	j.unknown()
	j.deletion()
}

// unknown judges what clients are told after a restart: their sessions are unknown then.
func (j *endpointJudge) unknown() {
	r, asked := j.answer(facts.AskUnknown)
	if !asked {
		return
	}
	verdict, answer := Failed, r.Words()
	doubt := j.doubt(facts.AskUnknown, r)
	switch {
	case doubt != "":
		verdict, answer = Unsure, answer+doubt
	case !r.Result && j.unserved():
		verdict, answer = Unsure, answer+j.unservedWords()
	case r.Result && j.e.Session:
		verdict, answer = OK, answer+": it does not insist on its own"
	case r.Result:
		verdict, answer = OK, answer+": it does not look at sessions"
	case r.Status == notFound:
		verdict, answer = OK, answer+": clients initialize again"
	case !j.e.Session && r.Status/100 == 4:
		verdict, answer = Note, answer+"; it hands out none itself"
	case r.Status/100 == 2:
		j.stranded = fmt.Sprintf("an unknown session is accepted with %d and fails afterwards", r.Status)
	case r.Status == 0:
		j.stranded = "an unknown session is not answered"
	default:
		j.stranded = fmt.Sprintf("an unknown session is answered with %d instead of 404", r.Status)
		answer += " instead of 404"
	}
	j.row(TopicUnknown, "an unknown session, as after a restart?", verdict, answer)
}

// deletion judges whether a client can end its session.
func (j *endpointJudge) deletion() {
	r, asked := j.answer(facts.AskDelete)
	if !asked {
		return
	}
	const question = "does DELETE end the session?"
	after, looked := j.answer(facts.AskDeleted)
	if doubt := j.doubt(facts.AskDelete, r); doubt != "" {
		j.row(TopicDelete, question, Unsure, r.Words()+doubt)
		return
	}
	if r.Status == methodNotAllowed {
		j.row(TopicDelete, question, Note, r.Words()+": clients cannot end their sessions, which the specification allows")
		return
	}
	if !looked {
		j.row(TopicDelete, question, Unsure, r.Words()+"; what became of the session was not asked")
		return
	}
	verdict, answer := OK, fmt.Sprintf("%s, and tools/list with it then %s", r.Words(), after.Words())
	doubt := j.doubt(facts.AskDeleted, after)
	switch {
	case doubt != "":
		verdict, answer = Unsure, answer+doubt
	case !after.Result && j.unserved():
		verdict, answer = Unsure, answer+j.unservedWords()
	case !after.Result && r.Status/100 == 2:
	case !after.Result:
		verdict, answer = Note, answer+": the session has ended all the same"
	default:
		verdict, answer = Failed, answer+": the session is not ended"
	}
	j.row(TopicDelete, question, verdict, answer)
}

// legacy judges what clients of HTTP+SSE are told when their session is gone.
func (j *endpointJudge) legacy() {
	for _, q := range []struct {
		ask      facts.Ask
		topic    Topic
		question string
	}{
		{facts.AskClosed, TopicClosed, "a POST to the session of a closed stream?"},
		{facts.AskStale, TopicStale, "a POST to an unknown session, as after a restart?"},
	} {
		r, asked := j.answer(q.ask)
		if !asked {
			continue
		}
		verdict, answer := Failed, r.Words()
		doubt := j.doubt(q.ask, r)
		switch {
		case doubt != "":
			verdict, answer = Unsure, answer+doubt
		case r.Late:
			answer += ": clients wait in vain"
			j.stranded = "what they POST to a session that is gone is never answered"
		case r.Result:
			verdict, answer = OK, answer+": it is served all the same"
		case r.Error && r.Status/100 == 2:
			answer += ": the client is not told that its session is gone"
			j.stranded = fmt.Sprintf("what they POST to a session that is gone is answered with %s, which does not tell that it is gone", r.Words())
		case r.Status/100 == 2:
			answer += ": it is accepted, and nobody answers it"
			j.stranded = fmt.Sprintf("what they POST to a session that is gone is accepted with %d, and answered by nobody", r.Status)
		case r.Status >= 400:
			verdict, answer = OK, answer+": the client is told"
		}
		j.row(q.topic, q.question, verdict, answer)
	}
	r, asked := j.answer(facts.AskAgain)
	if !asked {
		return
	}
	if r.Failed == "" && r.Status == statusOK {
		j.row(TopicAgain, "does it bear another client?", OK, "yes, a new stream is opened")
		return
	}
	if doubt := j.doubt(facts.AskAgain, r); doubt != "" {
		j.row(TopicAgain, "does it bear another client?", Unsure, r.Words()+doubt)
		return
	}
	j.row(TopicAgain, "does it bear another client?", Failed, "no, after the first stream a new one is answered with: "+r.Words())
}

// limit says that the endpoint refuses sessions beyond a number.
func (j *endpointJudge) limit() {
	r := j.e.Retention
	if settled, _ := j.look(facts.Settled); r.Refused == nil || settled.Gone {
		return
	}
	question := "how many sessions does it bear?"
	if r.Request == "tools/list" {
		question = "how many requests does it bear?"
	}
	joint := ", then "
	if r.Sent == r.Asked { // it went on after a refusal
		joint = "; another was answered with "
	}
	answer := fmt.Sprintf("%d of %d were served%s%s", r.Served, r.Sent, joint, r.Refused.Words())
	doubt := j.doubt("", *r.Refused)
	switch {
	case doubt != "":
		j.row(TopicLimit, question, Unsure, answer+doubt)
	case r.Refused.Status == unavailable && r.Served == 0:
		j.row(TopicLimit, question, Unsure, answer+": it may have a limit that others have reached")
	case r.Refused.Status == unavailable:
		j.row(TopicLimit, question, Note, answer+": it has a limit")
	default:
		j.row(TopicLimit, question, Failed, answer)
	}
}

// dropped says for how long a session was kept that nobody used.
func (j *endpointJudge) dropped() {
	r, asked := j.answer(facts.AskDropped)
	if !asked {
		return
	}
	const question = "is a dropped session let go?"
	waited := time.Duration(j.e.Retention.DroppedMS) * time.Millisecond
	switch doubt := j.doubt(facts.AskDropped, r); {
	case doubt != "":
		j.row(TopicDropped, question, Unsure, r.Words()+doubt)
	case !r.Result && j.unserved():
		j.row(TopicDropped, question, Unsure, r.Words()+j.unservedWords())
	case r.Result || r.Error && r.Code == methodNotFound && r.Status/100 == 2: // ping is optional, and the session is there
		j.kept = waited
		j.row(TopicDropped, question, Note, "it still answers "+format.Age(waited)+" later; whether it ever ends is not seen in that time")
	case r.Status == notFound || r.Status == badRequest || r.Status == statusGone:
		j.row(TopicDropped, question, OK, fmt.Sprintf("yes, %s later it is answered with %s", format.Age(waited), r.Words()))
	default:
		j.row(TopicDropped, question, Unsure, fmt.Sprintf("%s later it is answered with %s", format.Age(waited), r.Words()))
	}
}

// methodNotFound is the code of JSON-RPC for it.
const methodNotFound = -32601

// forwarders pass connections on to a server that is not below them.
var forwarders = []string{"docker-proxy", "rootlessport", "ssh", "sshd", "nginx", "caddy", "haproxy", "traefik", "envoy", "socat", "cloudflared", "ngrok", "tailscaled", "wslrelay.exe", "gvproxy", "slirp4netns", "pasta"}

// forwarder tells that who listens is not the server, so that counting its children tells nothing.
func (j *endpointJudge) forwarder() bool {
	return slices.Contains(forwarders, j.e.Process.Listener.Name)
}

const (
	// fewRequests is how many requests it takes until what they left is no chance.
	fewRequests = 3

	// perRequest is the share of them from which on what is left is one process for each.
	perRequest = 2
)

// processes judges what the sessions left below the process.
func (j *endpointJudge) processes() {
	const question = "do its processes end?"
	r := j.e.Retention
	settled, seen := j.look(facts.Settled)
	what := format.Count(r.Served, "request")
	if j.e.Session {
		what = format.Count(r.Served, "dropped session")
	} else if j.e.Transport == facts.LegacySSE {
		what = format.Count(r.Served, "dropped stream")
	}
	switch {
	case !j.e.Process.Found:
		j.row(TopicProcesses, question, Unsure, j.e.Process.Why)
		return
	case j.forwarder():
		j.row(TopicProcesses, question, Unsure, fmt.Sprintf("%s listens on the port (pid %d) and passes on to a server elsewhere", j.e.Process.Listener.Name, j.e.Process.Listener.PID))
		return
	case !seen:
		j.row(TopicProcesses, question, Unsure, "the time was over")
		return
	case settled.Gone:
		j.row(TopicProcesses, question, Failed, fmt.Sprintf("the server itself (pid %d) has ended after %s", j.e.Process.Listener.PID, what))
		return
	case r.Sent == 0:
		j.row(TopicProcesses, question, Unsure, "nothing was opened: ask with --sessions 20")
		return
	case r.Served == 0:
		j.row(TopicProcesses, question, Unsure, fmt.Sprintf("none of %s was served", format.Count(r.Sent, "request")))
		return
	}
	left := format.Count(settled.SessionChildren, "process")
	if settled.SessionProcesses > settled.SessionChildren {
		left = fmt.Sprintf("%s (%d with their own)", left, settled.SessionProcesses)
	}
	line := fmt.Sprintf("%s left %s below pid %d", what, left, j.e.Process.Listener.PID)
	cleared, deleted := j.look(facts.Cleared)
	many := func(n int) bool { return n >= fewRequests && n*perRequest >= r.Served }
	switch {
	case settled.SessionProcesses == 0:
		j.row(TopicProcesses, question, OK, fmt.Sprintf("%s left none below pid %d", what, j.e.Process.Listener.PID))
	case !many(settled.SessionChildren):
		j.row(TopicProcesses, question, Unsure, line+": too few to be one for each; other clients may be at work")
	case !j.e.Session:
		j.piling = line
		j.row(TopicProcesses, question, Failed, line)
	case deleted && many(cleared.SessionChildren+cleared.Strays):
		j.piling = fmt.Sprintf("%s were deleted, and left %s", format.Count(r.Deleted, "session"), format.Count(cleared.SessionProcesses, "process"))
		j.row(TopicProcesses, question, Failed, j.piling)
	case j.mode().NeverEnds:
		j.piling = line + ", for ever: " + strings.Join(j.mode().Missing, ", ") + " is missing from its command line"
		j.row(TopicProcesses, question, Failed, j.piling)
	case deleted:
		j.row(TopicProcesses, question, Note, line+"; DELETE ended them")
	default:
		j.row(TopicProcesses, question, Note, line+" for "+format.Age(time.Duration(r.DroppedMS)*time.Millisecond)+" at least")
	}
}

// mode is how the gateway that listens uses its servers.
func (j *endpointJudge) mode() catalog.Mode { return j.known.Mode(j.run) }
