// Package rules judges a process table: which MCP servers have leaked, how that is known, and what
// made them leak. A rule is one file that documents itself and registers itself; [Judge] runs all of
// them over a [process.Recognised] table and returns a [Report], which is a plain value.
package rules

import "slices"

// Rule is one kind of leak. Each has a file of its own, which is also its documentation:
// `mcpdoctor explain`, `mcpdoctor rules`, shell completion and the README's table are read from
// these fields, and nothing about a rule is written twice.
type Rule struct {
	ID       string   `json:"id"`    // a short slug, never used again for another meaning
	Title    string   `json:"title"` // one line
	Severity Severity `json:"severity"`

	// Order is the rule's place in judging. An instance that one rule has claimed is left alone by
	// those with a higher Order, so the more exact rule has the lower one.
	Order int `json:"-"`

	Reap string `json:"reap"` // what may be terminated, and when

	Why      string   `json:"why"`        // why it happens and why it matters
	Evidence []string `json:"evidence"`   // what it looks for
	Wrong    []string `json:"wrong_when"` // when it can be wrong
	Remedy   []string `json:"remedy"`     // what a person can change so that it does not come back

	Code []Snippet `json:"code,omitempty"` // code that fixes it

	// Probe reports whether the rule is found by `mcpdoctor probe` instead of by looking at processes.
	Probe bool `json:"probe,omitempty"`

	// check reports what this rule finds; nil when Probe.
	check func(*judgement)
}

// registry is every rule, in the order of judging.
var registry []*Rule

// register adds a rule. Each rule file calls it once, so that a rule needs no second place.
func register(r Rule) *Rule {
	registry = append(registry, &r)
	slices.SortFunc(registry, func(a, b *Rule) int { return a.Order - b.Order })
	return &r
}

// Rules returns every rule, in the order of judging.
func Rules() []*Rule { return slices.Clone(registry) }

// Lookup returns the rule with that ID, nil when there is none.
func Lookup(id string) *Rule {
	for _, r := range registry {
		if r.ID == id {
			return r
		}
	}
	return nil
}
