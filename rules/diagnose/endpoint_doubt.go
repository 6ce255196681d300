package diagnose

import (
	"slices"

	"mcpdoctor/scan/facts"
)

const (
	// leastLimit is the shortest limit for one answer at which silence counts as a failure.
	leastLimit = 3000 // ms

	// silenceFactor is how many times as long as the slowest answer the limit has to be for that.
	silenceFactor = 4
)

// goneSession are the questions about a session that does not exist.
var goneSession = []facts.Ask{facts.AskUnknown, facts.AskDeleted, facts.AskClosed, facts.AskStale}

// refusable are the questions whose refusal proves something only if a request that must be served is served.
var refusable = []facts.Ask{facts.AskUnknown, facts.AskDeleted, facts.AskDropped}

// doubt returns why an answer proves nothing, to be said after the answer; empty when it proves something. An empty
// question stands for the opening of sessions.
func (j *endpointJudge) doubt(ask facts.Ask, r facts.Answer) string {
	switch {
	case r.Late && (r.Ours || j.slow(ask) && j.e.LimitMS < facts.Patience.Milliseconds()):
		return ": probe again with a longer --timeout"
	case r.Late && j.slow(ask):
		return ": other requests were slow or unanswered too"
	case r.Ours:
		return ": a limit of the probe, not of the server"
	case r.Status == tooManyRequests:
		return ": it limits the request rate; probe again later, with fewer --sessions"
	case r.Status == unauthorized || r.Status == forbidden:
		return ": it requires credentials, so sessions were not tested"
	case slices.Contains(refusable, ask) && !r.Result && j.unserved() && j.e.Session:
		return ": inconclusive, because its own session is refused as well"
	case slices.Contains(refusable, ask) && !r.Result && j.unserved():
		return ": inconclusive, because requests without a session are refused as well"
	}
	return ""
}

// slow reports whether an answer that is missing may only be late, because other questions were answered slowly or
// not at all. The questions about a session that does not exist count as one.
func (j *endpointJudge) slow(ask facts.Ask) bool {
	if j.e.LimitMS < leastLimit {
		return true
	}
	gone := slices.Contains(goneSession, ask)
	for _, x := range j.e.Exchanges {
		switch {
		case ask == "" && (x.Ask == facts.AskDropped || x.Ask == facts.AskAgain): // they came after the sessions that silenced it
		case x.Ask == ask || gone && slices.Contains(goneSession, x.Ask):
		case x.Answer.Late, x.DurationMS*silenceFactor > j.e.LimitMS:
			return true
		}
	}
	return false
}

// unserved reports whether the endpoint refused the one request that it has to serve.
func (j *endpointJudge) unserved() bool {
	ask := facts.AskWithout
	if j.e.Session {
		ask = facts.AskWith
	}
	r, asked := j.answers[ask]
	return asked && !r.Result
}
