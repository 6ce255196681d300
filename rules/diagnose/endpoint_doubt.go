package diagnose

import (
	"slices"

	"mcpdoctor/scan/facts"
)

const (
	// patient is the shortest limit for one answer at which silence is held against an endpoint.
	patient = 3000 // ms

	// patiently is how many times longer than the slowest other answer the limit has to be for that.
	patiently = 4
)

// ofTheGone are the questions whose session is not there.
var ofTheGone = []facts.Ask{facts.AskUnknown, facts.AskDeleted, facts.AskClosed, facts.AskStale}

// doubt says why an answer tells nothing about the question, in words that go on behind the answer;
// empty when it does tell something. Without a question it is about the opening of sessions.
func (j *endpointJudge) doubt(ask facts.Ask, r facts.Answer) string {
	switch {
	case r.Late && (r.Ours || j.hasty(ask) && j.e.LimitMS < facts.Patience.Milliseconds()):
		return ": ask again with a longer --timeout"
	case r.Late && j.hasty(ask):
		return ": it is slow, or silent, to other questions, too"
	case r.Ours:
		return ": that is a limit of the probe's own"
	case r.Status == tooManyRequests:
		return ": it asks for fewer requests; ask again later, with fewer --sessions"
	case r.Status == unauthorized || r.Status == forbidden:
		return ": it wants to know who asks, which tells nothing about sessions"
	}
	return ""
}

// hasty tells that an answer that did not come in its time may only be slow: others were slow or did not
// come either. Of the questions whose session is gone one is as good as the other.
func (j *endpointJudge) hasty(ask facts.Ask) bool {
	if j.e.LimitMS < patient {
		return true
	}
	gone := slices.Contains(ofTheGone, ask)
	for _, x := range j.e.Exchanges {
		switch {
		case ask == "" && (x.Ask == facts.AskDropped || x.Ask == facts.AskAgain): // asked after the sessions, which have silenced it
		case x.Ask == ask || gone && slices.Contains(ofTheGone, x.Ask):
		case x.Answer.Late, x.DurationMS*patiently > j.e.LimitMS:
			return true
		}
	}
	return false
}

// unserved tells that the request that has to be served was asked and was not, so that what comes to
// others like it tells nothing about their sessions.
func (j *endpointJudge) unserved() bool {
	ask := facts.AskWithout
	if j.e.Session {
		ask = facts.AskWith
	}
	r, asked := j.answer(ask)
	return asked && !r.Result
}

// unservedWords go on behind an answer that tells nothing for that reason.
func (j *endpointJudge) unservedWords() string {
	if j.e.Session {
		return ", which tells nothing: the session of initialize is not served either"
	}
	return ", which tells nothing: without a session it is not served either"
}
