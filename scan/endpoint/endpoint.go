// Package endpoint talks MCP to an HTTP endpoint as a client does, and watches the process behind it.
package endpoint

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"mcpdoctor/scan/facts"
)

// Options say what to ask, how often and for how long.
type Options struct {
	URL    *url.URL    // http or https, with a host
	Header http.Header // sent with every request, never shown

	// Sessions is how many are opened and dropped; 0 leaves that out.
	Sessions int

	// Timeout is for all questions together. Clearing up may take up to [Farewell] beyond it.
	Timeout time.Duration

	// Settling is how long what was dropped may take to end.
	Settling time.Duration

	Now   func() time.Time
	Proxy func(*http.Request) (*url.URL, error) // as in http.Transport
}

// Farewell is how long deleting the sessions may take when the time is over or the user interrupts.
const Farewell = 3 * time.Second

// Budget is the most HTTP requests that a probe sends for so many sessions: one opens each, one
// deletes each, and fourteen are questions, redirects of the first one and the deletion of what else was
// opened included.
func Budget(sessions int) int { return 2*sessions + questions }

const questions = 14

// Probe asks an endpoint what a client would, opens and drops sessions, deletes them, and
// watches the process behind it when it runs on this machine. An error is an [*facts.Unaskable].
//
// Sessions that were opened are deleted, also when ctx ends.
func Probe(ctx context.Context, o Options) (*facts.Endpoint, error) {
	a := newAsker(o)
	farewell := context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	a.watch(ctx)
	defer a.clearAway(farewell)
	if err := a.greet(ctx); err != nil {
		return nil, err
	}
	switch a.e.Transport {
	case facts.LegacySSE:
		a.askLegacy(ctx)
	default:
		a.askStreamable(ctx)
	}
	a.retain(ctx)
	a.settle(ctx)
	return a.e, nil
}

func unaskable(reason facts.Reason, what string) *facts.Unaskable {
	return &facts.Unaskable{Reason: reason, What: what}
}
