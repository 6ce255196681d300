package endpoint

import (
	"context"
	"net/http"
	"sync"
	"time"

	"mcpdoctor/scan/facts"
)

const (
	// refusals in a row end the opening of sessions.
	refusals = 3

	// quietTime is how long no new process may run below the listener until none is expected any more: a server
	// may start processes after its answer.
	quietTime = 2 * time.Second

	// parallelDeletes is how many sessions are deleted at a time.
	parallelDeletes = 8
)

// openSessions opens sessions and drops each with its connection, as connectors do that live for one request.
// Nothing is deleted meanwhile. With enough sessions, memory is measured before and after two equal rounds, after
// a fifth of the sessions as a warm-up.
func (p *prober) openSessions(ctx context.Context) {
	r := &p.e.Retention
	r.Asked = p.o.Sessions
	if p.o.Sessions == 0 || ctx.Err() != nil {
		return
	}
	p.recordLook(ctx, facts.AtSessions)
	warmUp, round := 0, 0
	if p.o.Sessions >= facts.LeastForMemory && p.process != nil {
		warmUp = p.o.Sessions / 5
		round = (p.o.Sessions - warmUp) / 2
	}
	refused := 0
	before := int64(0)
	for n := 1; n <= p.o.Sessions && refused < refusals; n++ {
		inRounds := round > 0 && n > warmUp && len(r.Rounds) < 2
		if inRounds && (n-1-warmUp)%round == 0 {
			before = p.memory(ctx)
		}
		answer := p.openSession(ctx)
		if ctx.Err() != nil {
			break // the answer was not waited for
		}
		r.Sent++
		switch {
		case answer.Result, p.e.Transport == facts.LegacySSE && answer.Failed == "" && answer.Status == http.StatusOK:
			r.Served++
			refused = 0
		default:
			refused++
			if r.Refused == nil {
				r.Refused = &answer
			}
		}
		if inRounds && (n-warmUp)%round == 0 {
			r.Rounds = append(r.Rounds, facts.Round{Sessions: round, BeforeBytes: before, AfterBytes: p.memory(ctx)})
		}
	}
	p.recordLook(ctx, facts.AtOnce)
}

// openSession opens one session, or sends one request where there are none, and drops it.
func (p *prober) openSession(ctx context.Context) facts.Answer {
	switch r := &p.e.Retention; p.e.Transport {
	case facts.LegacySSE:
		r.Request = "GET"
		s, answer := p.openStream(ctx)
		if s != nil {
			s.close()
		}
		return answer
	case facts.Stateless:
		r.Request = "tools/list"
		return p.send(ctx, message{method: "tools/list", modern: true}).Answer
	default:
		r.Request = "initialize"
		got := p.send(ctx, initialize())
		p.keep(got.session)
		return got.Answer
	}
}

// settle waits for processes of dropped sessions to exit, asks whether a dropped session still answers, deletes
// all sessions, and looks again.
func (p *prober) settle(ctx context.Context) {
	r := &p.e.Retention
	began := p.o.Now()
	if len(p.opened) > 0 { // whether they are kept shows only after all of the settling time
		p.pause(ctx, p.o.Settling)
	} else {
		p.awaitQuiet(ctx, quietTime)
	}
	p.recordLook(ctx, facts.Settled)
	if len(p.opened) > 0 && r.Sent > 0 {
		p.ask(ctx, facts.AskDropped, "POST ping, a dropped session", message{method: "ping", session: p.opened[0]})
		r.DroppedMS = p.o.Now().Sub(began).Milliseconds()
	}
	if p.e.Transport == facts.LegacySSE && ctx.Err() == nil {
		if s := p.askStream(ctx, facts.AskAgain, "GET, a last time"); s != nil {
			s.close()
		}
	}
	if ctx.Err() != nil {
		p.e.Unasked = "the time was over before all was asked"
	}
	p.deleteAll(ctx)
	if r.Deleted > 0 {
		p.awaitQuiet(ctx, 0)
		p.recordLook(ctx, facts.Cleared)
	}
	if p.process != nil {
		p.e.Process.Left = p.process.left
	}
}

// awaitQuiet waits until no new process has run below the listener for a time, at most the settling time.
func (p *prober) awaitQuiet(ctx context.Context, least time.Duration) {
	const step = 250 * time.Millisecond
	quiet := time.Duration(0)
	for waited := time.Duration(0); waited < p.o.Settling && ctx.Err() == nil && p.process != nil; waited += step {
		switch look, ok := p.look(ctx); {
		case !ok || look.NewProcesses > 0:
			quiet = 0
		case quiet >= least:
			return
		default:
			quiet += step
		}
		p.pause(ctx, min(step, p.o.Settling-waited))
	}
}

// pause waits, unless ctx ends.
func (p *prober) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// cleanUp closes and deletes what is open, whatever has happened.
func (p *prober) cleanUp(ctx context.Context) {
	if p.stream != nil {
		p.stream.close()
	}
	ctx, cancel := context.WithTimeout(ctx, CleanupTime)
	defer cancel()
	p.deleteAll(ctx)
	p.e.Retention.Undeleted += len(p.opened)
	p.e.Requests = int(p.counter.sent.Load())
}

// deleteAll deletes the sessions that were opened. Those that it does not come to before ctx ends stay in opened.
func (p *prober) deleteAll(ctx context.Context) {
	if p.undeletable {
		return
	}
	r := &p.e.Retention
	var mu sync.Mutex
	var all sync.WaitGroup
	next := make(chan string)
	for range min(parallelDeletes, len(p.opened)) {
		all.Go(func() {
			for session := range next {
				res, out := p.open(ctx, message{httpMethod: http.MethodDelete, session: session})
				if res != nil {
					res.close()
				}
				mu.Lock()
				r.Deletes++
				switch {
				case out.Status/100 == 2:
					r.Deleted++
				case out.Status != http.StatusNotFound && out.Status != http.StatusGone:
					r.Undeleted++
				}
				mu.Unlock()
			}
		})
	}
	for len(p.opened) > 0 && ctx.Err() == nil {
		select {
		case next <- p.opened[0]:
			p.opened = p.opened[1:]
		case <-ctx.Done():
		}
	}
	close(next)
	all.Wait()
}
