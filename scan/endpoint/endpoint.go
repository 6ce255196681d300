// Package endpoint talks MCP to an HTTP endpoint as a client does, and watches the process behind it.
package endpoint

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"mcpdoctor/scan/facts"
)

// Options configure a probe.
type Options struct {
	URL    *url.URL    // http or https, with a host
	Header http.Header // sent with every request, never shown

	// Sessions is how many sessions to open and drop; 0 leaves that out.
	Sessions int

	// Timeout is for all requests together. Cleaning up may take [CleanupTime] more.
	Timeout time.Duration

	// Settling is how long what belongs to dropped sessions may take to exit.
	Settling time.Duration

	Now   func() time.Time
	Proxy func(*http.Request) (*url.URL, error) // as in http.Transport
}

// CleanupTime is how long deleting the sessions may take after the time-out or an interrupt.
const CleanupTime = 3 * time.Second

// MaxRequests is how many HTTP requests a probe sends at most: one to open and one to delete each session, and
// fourteen others, which include redirects of the first one and the deletion of other sessions.
func MaxRequests(sessions int) int { return 2*sessions + otherRequests }

const otherRequests = 14

// Probe asks an endpoint what a client would ask, opens sessions, drops them and deletes them, also when ctx
// ends. It watches the process behind the endpoint if that runs on this machine. An error is a [*facts.Unaskable].
func Probe(ctx context.Context, o Options) (*facts.Endpoint, error) {
	p := newProber(o)
	cleanup := context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	p.findProcess(ctx)
	defer p.cleanUp(cleanup)
	if err := p.detect(ctx); err != nil {
		return nil, err
	}
	if p.e.Transport == facts.LegacySSE {
		p.askLegacy(ctx)
	} else {
		p.askStreamable(ctx)
	}
	p.openSessions(ctx)
	p.settle(ctx)
	return p.e, nil
}

// prober probes one endpoint.
type prober struct {
	o       Options
	client  *http.Client
	counter *counter
	secrets *secrets
	limit   time.Duration // for one answer
	url     *url.URL      // where the first request led; nil before
	version string        // for MCP-Protocol-Version, once agreed
	lastID  int

	opened      []string // sessions to delete
	undeletable bool     // the endpoint refused to delete the first one: the others are not tried

	stream    *stream          // of HTTP+SSE
	streamErr *facts.Unaskable // why its address is not used
	process   *process         // nil when it is not seen
	e         *facts.Endpoint
}

func newProber(o Options) *prober {
	p := &prober{
		o: o, limit: min(facts.Patience, o.Timeout/4), counter: newCounter(o), secrets: newSecrets(o),
		e: &facts.Endpoint{URL: maskedURL(o.URL), Exchanges: []facts.Exchange{}},
	}
	p.e.LimitMS = p.limit.Milliseconds()
	p.client = &http.Client{Transport: p.counter, CheckRedirect: p.redirect}
	return p
}

func unaskable(reason facts.Reason, what string) *facts.Unaskable {
	return &facts.Unaskable{Reason: reason, What: what}
}
