package rules

import "slices"

// Rule is one kind of leak. Each has a file of its own, which is also its documentation:
// `mcpdoctor explain`, `mcpdoctor rules`, shell completion and the README's table are read from
// these fields, and nothing about a rule is written twice.
type Rule struct {
	ID       string   `json:"id"`    // a short slug, never used again for another meaning
	Title    string   `json:"title"` // what it says, in one line
	Severity Severity `json:"severity"`
	Reap     string   `json:"reap"` // what may be ended, and when

	Why      string   `json:"why"`        // why it happens and why it matters
	Evidence []string `json:"evidence"`   // what it wants to see
	Wrong    []string `json:"wrong_when"` // when it may be mistaken
	Remedy   []string `json:"remedy"`     // what a person can change so that it does not come back

	Code []Snippet `json:"code,omitempty"` // what can be put into a program, where words are not enough

	// Probe tells that asking an endpoint finds it (mcpdoctor probe), and looking at processes does not.
	Probe bool `json:"probe,omitempty"`

	// check looks for this leak and returns what it found; nil when Probe.
	check func(*judgement) []Finding
}

// all is in the order of judging. An instance that one rule has explained is not explained again
// by a later one, so the more exact rule comes first.
var all = []*Rule{
	&orphan,
	&spawnPerRequest,
	&staleGeneration,
	&duplicateSessions,
	&runawayParent,
	&leftoverHelper,
	&zombie,
	&memoryGrowth,
	&sessionRetention,
	&sseTransport,
}

// Rules returns every rule, in the order of judging.
func Rules() []*Rule { return slices.Clone(all) }

// Lookup returns the rule with that ID, nil when there is none.
func Lookup(id string) *Rule {
	for _, r := range all {
		if r.ID == id {
			return r
		}
	}
	return nil
}
