package endpoint

import (
	"context"
	"net/http"
	"sync"
	"time"

	"mcpdoctor/scan/facts"
)

const (
	// warming is the share of the sessions that are opened before the first of the two rounds.
	warming = 5

	// refusals in a row after which no more sessions are asked for.
	refusals = 3

	// calm is how long nothing may have been below the process that was not there before the probe, until
	// nothing more is expected: a server may start what it starts after its answer.
	calm = 2 * time.Second

	// farewells is how many sessions are deleted at once.
	farewells = 8
)

// retain opens sessions and drops each with its connection, as connectors do that live for one
// question. Nothing is deleted meanwhile.
func (a *asker) retain(ctx context.Context) {
	r := &a.e.Retention
	r.Asked = a.o.Sessions
	if a.o.Sessions == 0 || ctx.Err() != nil {
		return
	}
	a.again(ctx, facts.AtSessions)
	warm := 0
	round := 0
	if a.o.Sessions >= facts.LeastForMemory && a.seen != nil {
		warm = a.o.Sessions / warming
		round = (a.o.Sessions - warm) / 2
	}
	refused := 0
	began := int64(0)
	for n := 0; n < a.o.Sessions && refused < refusals; n++ {
		if round > 0 && n >= warm && (n-warm)%round == 0 && len(r.Rounds) < 2 {
			began = a.resident(ctx)
		}
		answer := a.openOne(ctx)
		if ctx.Err() != nil {
			break // it was not answered because nobody waits any more
		}
		r.Sent++
		if answer.Result || a.e.Transport == facts.LegacySSE && answer.Failed == "" && answer.Status == http.StatusOK {
			r.Served++
			refused = 0
		} else {
			refused++
			if r.Refused == nil {
				r.Refused = &answer
			}
		}
		if round > 0 && n+1 > warm && (n+1-warm)%round == 0 && len(r.Rounds) < 2 {
			r.Rounds = append(r.Rounds, facts.Round{Sessions: round, BeforeBytes: began, AfterBytes: a.resident(ctx)})
		}
	}
	a.again(ctx, facts.AtOnce)
}

// openOne opens one session, or sends one request where there are none, and forgets it.
func (a *asker) openOne(ctx context.Context) facts.Answer {
	switch r := &a.e.Retention; a.e.Transport {
	case facts.LegacySSE:
		r.Request = "GET"
		s, answer := a.dial(ctx)
		if s != nil {
			s.close()
		}
		return answer
	case facts.Stateless:
		r.Request = "tools/list"
		return a.send(ctx, message{rpc: "tools/list", modern: true}).Answer
	default:
		r.Request = "initialize"
		got := a.send(ctx, initialize())
		a.keep(got.session)
		return got.Answer
	}
}

// resident is the memory of the process itself, 0 when it cannot be seen.
func (a *asker) resident(ctx context.Context) int64 {
	looks := len(a.e.Retention.Looks)
	a.again(ctx, "")
	if len(a.e.Retention.Looks) == looks {
		return 0
	}
	look := a.e.Retention.Looks[looks]
	a.e.Retention.Looks = a.e.Retention.Looks[:looks]
	return look.RSSBytes
}

// settle waits for what was dropped to end, asks whether a dropped session still answers, deletes all
// of them, and looks again.
func (a *asker) settle(ctx context.Context) {
	r := &a.e.Retention
	sessions := len(a.opened) > 0
	began := a.o.Now()
	least := calm
	if sessions { // that they are kept is to be seen for as long as it may take
		least = a.o.Settling
	}
	a.wait(ctx, least)
	a.again(ctx, facts.Settled)
	if sessions && r.Sent > 0 {
		a.ask(ctx, facts.AskDropped, "POST ping, a dropped session", message{rpc: "ping", session: a.opened[0]})
		r.DroppedMS = a.o.Now().Sub(began).Milliseconds()
	}
	if a.e.Transport == facts.LegacySSE && ctx.Err() == nil {
		began := a.o.Now()
		s, answer := a.dial(ctx)
		a.note(facts.AskAgain, "GET, a last time", began, answer)
		if s != nil {
			s.close()
		}
	}
	if ctx.Err() != nil {
		a.e.Unasked = "the time was over before all was asked"
	}
	a.deleteAll(ctx)
	if r.Deleted > 0 {
		a.wait(ctx, 0)
		a.again(ctx, facts.Cleared)
	}
	if a.seen != nil {
		a.e.Process.Left = a.seen.last
	}
}

// wait waits for the settling time; less when nothing is left to end, and nothing was for so long.
func (a *asker) wait(ctx context.Context, least time.Duration) {
	const step = 250 * time.Millisecond
	quiet := time.Duration(0)
	for waited := time.Duration(0); waited < a.o.Settling && ctx.Err() == nil; waited += step {
		switch {
		case least >= a.o.Settling:
		case a.seen == nil:
			return
		case !a.quiet(ctx):
			quiet = 0
		case quiet >= least:
			return
		default:
			quiet += step
		}
		a.pause(ctx, min(step, a.o.Settling-waited))
	}
}

// pause waits, but not beyond the end of ctx.
func (a *asker) pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// quiet tells that nothing is left of what came below the process.
func (a *asker) quiet(ctx context.Context) bool {
	looks := len(a.e.Retention.Looks)
	a.again(ctx, "")
	if len(a.e.Retention.Looks) == looks {
		return false
	}
	look := a.e.Retention.Looks[looks]
	a.e.Retention.Looks = a.e.Retention.Looks[:looks]
	return look.NewProcesses == 0
}

// clearAway ends what is open, whatever has happened.
func (a *asker) clearAway(ctx context.Context) {
	if a.stream != nil {
		a.stream.close()
	}
	ctx, cancel := context.WithTimeout(ctx, Farewell)
	defer cancel()
	a.deleteAll(ctx)
	a.e.Retention.Undeleted += len(a.opened)
	a.e.Requests = a.sent.count()
}

// deleteAll deletes the sessions that were opened, several at once. Those that it does not come to
// before ctx ends stay among the opened. Where the first one could not be deleted it does nothing.
func (a *asker) deleteAll(ctx context.Context) {
	if a.undeletable {
		return
	}
	r := &a.e.Retention
	var mu sync.Mutex
	var all sync.WaitGroup
	next := make(chan string)
	for range min(farewells, len(a.opened)) {
		all.Go(func() {
			for session := range next {
				status := a.deleteOne(ctx, session)
				mu.Lock()
				r.Deletes++
				switch {
				case status/100 == 2:
					r.Deleted++
				case status != http.StatusNotFound && status != http.StatusGone:
					r.Undeleted++
				}
				mu.Unlock()
			}
		})
	}
	for len(a.opened) > 0 && ctx.Err() == nil {
		select {
		case next <- a.opened[0]:
			a.opened = a.opened[1:]
		case <-ctx.Done():
		}
	}
	close(next)
	all.Wait()
}

// deleteOne is the status of the answer to the DELETE of a session, 0 when there was none.
func (a *asker) deleteOne(ctx context.Context, session string) int {
	r, _, err := a.build(ctx, message{method: http.MethodDelete, session: session})
	if err != nil {
		return 0
	}
	res, err := a.client.Do(r)
	if err != nil {
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}
