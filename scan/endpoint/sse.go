package endpoint

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"mcpdoctor/scan/facts"
)

// stream is an open stream of the HTTP+SSE transport (2024-11-05): messages are POSTed to its address and
// answered over it.
type stream struct {
	*response
	post   *url.URL
	events *events
}

// closeDelay is how long a server has to notice that its stream was closed.
const closeDelay = time.Second

// askStream opens a stream and records the answer.
func (p *prober) askStream(ctx context.Context, ask facts.Ask, sent string) *stream {
	began := p.o.Now()
	s, answer := p.openStream(ctx)
	p.record(ask, sent, began, answer)
	return s
}

// openStream opens a stream and waits for the event that has its address. Without one the stream is nil, and the
// answer says why.
func (p *prober) openStream(ctx context.Context) (*stream, facts.Answer) {
	res, out := p.open(ctx, message{httpMethod: http.MethodGet})
	if res == nil {
		return nil, out.Answer
	}
	answer := out.Answer
	if res.StatusCode != http.StatusOK || answer.Type != "text/event-stream" || res.Header.Get("Content-Encoding") != "" {
		text, _ := io.ReadAll(io.LimitReader(res, 4*maxText)) // a part of it will do
		res.close()
		answer.Text = p.secrets.short(string(text))
		return nil, answer
	}
	s := &stream{response: res, events: newEvents(io.LimitReader(res, maxAnswer))}
	if answer.Failed = p.readAddress(s); answer.Failed == "" {
		res.limit.Stop()
		return s, answer
	}
	switch {
	case ctx.Err() != nil:
		answer = interrupted(ctx)
	case context.Cause(res.ctx) == context.DeadlineExceeded:
		answer.Failed, answer.Late = "the stream did not say where to POST within "+seconds(p.limit), true
	}
	s.close()
	return nil, answer
}

// readAddress reads the address of a stream, and returns why there is none.
func (p *prober) readAddress(s *stream) (failed string) {
	for {
		e, err := s.events.next()
		if err != nil {
			return "the stream ended without saying where to POST"
		}
		if e.name != "endpoint" {
			continue
		}
		from := s.Request.URL
		to, err := from.Parse(strings.TrimSpace(e.data))
		if err != nil {
			p.streamErr = unaskable(facts.NoMCP, "it opens an HTTP+SSE stream, which names no valid address to POST to")
			return p.streamErr.What
		}
		if elsewhere := otherHost("its stream leads", from, to); elsewhere != nil {
			p.streamErr = unaskable(elsewhere.Reason, p.secrets.mask(elsewhere.What))
			return p.streamErr.What
		}
		s.post = to
		for _, ids := range to.Query() {
			p.secrets.add(ids...)
		}
		return ""
	}
}

// askLegacy does the handshake over the stream, closes it, and asks as a client whose session is gone.
func (p *prober) askLegacy(ctx context.Context) {
	post := p.stream.post
	began := p.o.Now()
	m := initialize()
	m.target = post
	r := p.sendOver(ctx, p.stream, m)
	p.record(facts.AskOverStream, "POST initialize, answer expected over the stream", began, r.Answer)
	if r.Result {
		p.agree(r)
		p.send(ctx, message{method: "notifications/initialized", notify: true, target: post})
	}
	p.stream.close()
	p.pause(ctx, min(p.o.Settling, closeDelay))
	p.ask(ctx, facts.AskClosed, "POST tools/list, session of the closed stream", message{method: "tools/list", target: post})
	if post.RawQuery != "" {
		p.ask(ctx, facts.AskStale, "POST tools/list, unknown session", message{method: "tools/list", target: withUnknownSession(post)})
	}
}

// sendOver sends a message to the address of a stream, and waits for its answer on the stream.
func (p *prober) sendOver(ctx context.Context, s *stream, m message) reply {
	r := p.send(ctx, m)
	if r.Status/100 != 2 || r.Result || r.Error {
		return r
	}
	s.limit.Reset(p.limit)
	defer s.limit.Stop()
	p.readStream(s.events, p.lastID, &r)
	switch {
	case r.Result:
		r.Over, r.Text = "stream", ""
	case r.Error:
		r.Over = "stream"
	case ctx.Err() != nil:
		r.Answer = interrupted(ctx)
	case r.Late:
		r.Failed = "no answer over the stream within " + seconds(p.limit)
	}
	return r
}

// withUnknownSession returns the address of a stream with session IDs that never were.
func withUnknownSession(u *url.URL) *url.URL {
	out := *u
	q := out.Query()
	for _, values := range q {
		for i, v := range values {
			values[i] = similarID(v)
		}
	}
	out.RawQuery = q.Encode()
	return &out
}

// similarID returns an unknown ID in the form of a known one: a server may check the form.
func similarID(id string) string {
	if len(id) == len(unknownSession) {
		return unknownSession
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789abcdefABCDEF", r) {
			return '0'
		}
		return r
	}, id)
}
