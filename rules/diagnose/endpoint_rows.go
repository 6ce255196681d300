package diagnose

import (
	"fmt"
	"time"

	"mcpdoctor/rules/format"
	"mcpdoctor/scan/facts"
)

// The HTTP statuses that are judged (RFC 9110); net/http would be a large dependency for nine numbers.
const (
	statusOK         = 200
	badRequest       = 400
	unauthorized     = 401
	forbidden        = 403
	notFound         = 404
	methodNotAllowed = 405
	statusGone       = 410
	tooManyRequests  = 429
	unavailable      = 503
)

// methodNotFound is the JSON-RPC error code.
const methodNotFound = -32601

func (j *endpointJudge) transport() {
	switch e := j.e; e.Transport {
	case facts.LegacySSE:
		answer := "HTTP+SSE (2024-11-05), deprecated since 2025-03-26"
		if r := j.answers[facts.AskOverStream]; !r.Result {
			answer += "; initialize: " + r.Words()
		}
		j.row(TopicTransport, Failed, answer)
	case facts.Stateless:
		initialize, discover := j.answers[facts.AskInitialize].Words(), j.answers[facts.AskModern].Words()
		if e.Modern {
			j.row(TopicTransport, OK, "Streamable HTTP, 2026-07-28 only; initialize, which older clients send first: "+initialize)
		} else {
			j.row(TopicTransport, Failed, "initialize is refused as if by a 2026-07-28 server, but server/discover fails: "+discover)
		}
	default:
		answer := "Streamable HTTP"
		if e.Version != "" {
			answer += ", protocol " + e.Version
		}
		if e.Modern {
			answer += " and 2026-07-28"
		}
		j.row(TopicTransport, OK, answer)
	}
}

// sessions judges what a session is to an endpoint of Streamable HTTP.
func (j *endpointJudge) sessions() {
	if j.e.Transport == facts.Streamable {
		answer := "no"
		if j.e.Session {
			answer = "yes, initialize returns an Mcp-Session-Id"
		}
		j.row(TopicSession, Note, answer)
	}
	j.judge(TopicWithout, facts.AskWithout, func(r facts.Answer) (Verdict, string) {
		switch {
		case r.Result && j.e.Session:
			return Note, ": served, although initialize hands out sessions"
		case r.Result:
			return OK, ": no session needed"
		case !j.e.Session || r.Status == 0 || r.Status >= 500 || r.Status/100 == 2 && !r.Error:
			return Failed, ""
		case r.Status == notFound:
			return Note, " instead of 400: clients take it for an ended session, and initialize again"
		case r.Status != badRequest:
			return Note, ": refused, but not with 400"
		}
		return OK, ""
	})
	if r := j.answers[facts.AskWith]; !r.Result { // a session that works needs no row
		j.judge(TopicWith, facts.AskWith, func(facts.Answer) (Verdict, string) { return Failed, "" })
	}
	j.judge(TopicUnknown, facts.AskUnknown, j.unknown)
	j.judge(TopicDelete, facts.AskDelete, j.deletion)
}

// unknown judges the answer to an unknown session, which is what every session is after a restart.
func (j *endpointJudge) unknown(r facts.Answer) (Verdict, string) {
	switch {
	case r.Result && j.e.Session:
		return OK, ": served, although the session is not its own"
	case r.Result:
		return OK, ": it ignores session IDs"
	case r.Status == notFound:
		return OK, ": clients initialize again"
	case !j.e.Session && r.Status/100 == 4:
		return Note, "; it hands out no sessions itself"
	case r.Status/100 == 2:
		j.stranded = fmt.Sprintf("an unknown session is accepted with %d and fails later", r.Status)
		return Failed, ""
	case r.Status == 0:
		j.stranded = "a request with an unknown session gets no answer"
		return Failed, ""
	}
	j.stranded = fmt.Sprintf("an unknown session gets %d instead of 404", r.Status)
	return Failed, " instead of 404"
}

// deletion judges whether clients can end their sessions.
func (j *endpointJudge) deletion(r facts.Answer) (Verdict, string) {
	after, asked := j.answers[facts.AskDeleted]
	switch {
	case r.Status == methodNotAllowed:
		return Note, ": clients cannot end sessions, which the specification allows"
	case !asked:
		return Unsure, "; the session was not tried afterwards"
	}
	then := "; tools/list with that session then got " + after.Words()
	switch doubt := j.doubt(facts.AskDeleted, after); {
	case doubt != "":
		return Unsure, then + doubt
	case after.Result:
		return Failed, then + ": the session was not ended"
	case r.Status/100 != 2:
		return Note, then + ": the session ended nevertheless"
	}
	return OK, then
}

// legacy judges what clients of HTTP+SSE get when their session is gone.
func (j *endpointJudge) legacy() {
	gone := func(r facts.Answer) (Verdict, string) {
		switch {
		case r.Late:
			j.stranded = "a POST to a session that is gone is never answered"
			return Failed, ": clients wait forever"
		case r.Result:
			return OK, ": served nevertheless"
		case r.Error && r.Status/100 == 2:
			j.stranded = "a POST to a session that is gone gets " + r.Words() + ", which does not say that it is gone"
			return Failed, ": the client cannot see that its session is gone"
		case r.Status/100 == 2:
			j.stranded = fmt.Sprintf("a POST to a session that is gone is accepted with %d and never answered", r.Status)
			return Failed, ": accepted, but never answered"
		case r.Status >= 400:
			return OK, ": the client sees that its session is gone"
		}
		return Failed, ""
	}
	j.judge(TopicClosed, facts.AskClosed, gone)
	j.judge(TopicStale, facts.AskStale, gone)
	j.judge(TopicAgain, facts.AskAgain, func(r facts.Answer) (Verdict, string) {
		if r.Failed == "" && r.Status == statusOK {
			return OK, ": a new stream was opened"
		}
		return Failed, ": no new stream after the first one"
	})
}

// limit judges a refusal to open more sessions.
func (j *endpointJudge) limit() {
	r := j.e.Retention
	if r.Refused == nil || j.looks[facts.Settled].Gone {
		return
	}
	joint := ", then "
	if r.Sent == r.Asked { // it went on after a refusal
		joint = "; one got "
	}
	answer := fmt.Sprintf("%d of %d served%s%s", r.Served, r.Sent, joint, r.Refused.Words())
	doubt := j.doubt("", *r.Refused)
	switch {
	case doubt != "":
		j.row(TopicLimit, Unsure, answer+doubt)
	case r.Refused.Status == unavailable && r.Served == 0:
		j.row(TopicLimit, Unsure, answer+": other clients may have reached its limit")
	case r.Refused.Status == unavailable:
		j.row(TopicLimit, Note, answer+": it limits its sessions")
	default:
		j.row(TopicLimit, Failed, answer)
	}
}

// dropped judges whether a session that nothing used any more was kept.
func (j *endpointJudge) dropped() {
	waited := time.Duration(j.e.Retention.DroppedMS) * time.Millisecond
	later := " " + format.Age(waited) + " later"
	j.judge(TopicDropped, facts.AskDropped, func(r facts.Answer) (Verdict, string) {
		switch {
		case r.Result || r.Error && r.Code == methodNotFound && r.Status/100 == 2: // ping is optional
			j.kept = waited
			return Note, later + ": still kept; a longer idle time-out cannot be ruled out"
		case r.Status == notFound || r.Status == badRequest || r.Status == statusGone:
			return OK, later
		}
		return Unsure, later
	})
}
