package endpoint

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"mcpdoctor/scan/facts"
)

// stream is an open stream of the HTTP+SSE transport (2024-11-05): what is POSTed to its address is
// answered over it.
type stream struct {
	post   *url.URL
	events chan event // closed at the end of the stream
	cancel context.CancelFunc
	body   io.Closer
	once   sync.Once
}

func (s *stream) close() {
	s.once.Do(func() {
		s.cancel()
		s.body.Close()
		for range s.events { // until its reader has ended
		}
	})
}

// noticing is how long a server is given to notice that its stream was closed.
const noticing = time.Second

// openStream asks for the stream and waits for its first event, which says where to POST.
func (a *asker) openStream(ctx context.Context) bool {
	began := a.o.Now()
	s, answer := a.dial(ctx)
	a.note(facts.AskStream, "GET, accepting text/event-stream", began, answer)
	a.stream = s
	return s != nil
}

// dial opens a stream; nil when there is none, and the answer says why.
func (a *asker) dial(whole context.Context) (*stream, facts.Answer) {
	ctx, stop := context.WithCancelCause(whole)
	cancel := func() { stop(nil) }
	// The limit is for the first event. The stream then lives as long as it is wanted.
	limit := time.AfterFunc(a.limit, func() { stop(context.DeadlineExceeded) })
	defer limit.Stop()
	r, _, err := a.build(ctx, message{method: http.MethodGet})
	if err != nil {
		cancel()
		return nil, facts.Answer{Failed: err.Error()}
	}
	res, err := a.client.Do(r)
	if err != nil {
		if context.Cause(ctx) == context.DeadlineExceeded {
			err = context.DeadlineExceeded
		}
		cancel()
		return nil, a.failed(whole, err).Answer
	}
	kind := contentType(res.Header)
	answer := facts.Answer{Status: res.StatusCode, Type: kind}
	if res.StatusCode != http.StatusOK || kind != "text/event-stream" || res.Header.Get("Content-Encoding") != "" {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 4*shortest)) // a part of it does as well
		res.Body.Close()
		cancel()
		answer.Text = a.short(string(text))
		return nil, answer
	}
	s := &stream{cancel: cancel, body: res.Body, events: make(chan event)}
	in := newEvents(io.LimitReader(res.Body, answerLimit))
	go func() {
		defer close(s.events)
		for {
			e, err := in.next()
			if err != nil {
				return
			}
			select {
			case s.events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	for e := range s.events {
		if e.name != "endpoint" {
			continue
		}
		post, err := res.Request.URL.Parse(strings.TrimSpace(e.data))
		switch {
		case err != nil:
			a.astray = unaskable(facts.NoMCP, "it opens a stream of HTTP+SSE, which names no address to POST to")
		case !sameHost(res.Request.URL, post):
			a.astray = leads("its stream leads", res.Request.URL, post)
			a.astray.What = a.veil(a.astray.What)
		}
		if a.astray != nil {
			s.close()
			answer.Failed = a.astray.What
			return nil, answer
		}
		a.secrets, a.hide = append(a.secrets, idsOf(post)...), nil
		s.post = post
		return s, answer
	}
	answer.Failed = "the stream ended without saying where to POST"
	if whole.Err() != nil {
		answer = cutShort(whole)
	} else if context.Cause(ctx) == context.DeadlineExceeded {
		answer.Failed, answer.Late = "the stream did not say where to POST within "+seconds(a.limit), true
	}
	s.close()
	return nil, answer
}

// idsOf are the session IDs in an address, which stand in its query.
func idsOf(u *url.URL) []string {
	var out []string
	for _, values := range u.Query() {
		out = append(out, values...)
	}
	return out
}

// stale is an address with sessions that never were.
func stale(u *url.URL) *url.URL {
	out := *u
	q := out.Query()
	for name, values := range q {
		for i, v := range values {
			values[i] = strangerTo(v)
		}
		q[name] = values
	}
	out.RawQuery = q.Encode()
	return &out
}

// strangerTo is an ID of the same form as one that was handed out: a server may check the form.
func strangerTo(id string) string {
	if len(id) == len(nobody) {
		return nobody
	}
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F' {
			return '0'
		}
		return r
	}, id)
}

// askLegacy goes through the handshake of the old transport, closes the stream, and asks what a client
// is told that does not know that its session is gone.
func (a *asker) askLegacy(ctx context.Context) {
	post := a.stream.post
	began := a.o.Now()
	m := initialize()
	m.target = post
	r := a.over(ctx, m)
	a.note(facts.AskOverStream, "POST initialize, answer expected over the stream", began, r.Answer)
	if r.Result {
		a.agree(reply{Answer: r.Answer, result: r.result})
		a.send(ctx, message{rpc: "notifications/initialized", notify: true, target: post})
	}
	a.stream.close()
	a.pause(ctx, min(a.o.Settling, noticing))
	a.ask(ctx, facts.AskClosed, "POST tools/list, session of the closed stream", message{rpc: "tools/list", target: post})
	if post.RawQuery != "" {
		a.ask(ctx, facts.AskStale, "POST tools/list, unknown session", message{rpc: "tools/list", target: stale(post)})
	}
}

// over sends a message to the address of the stream, and waits for its answer there.
func (a *asker) over(ctx context.Context, m message) reply {
	r := a.send(ctx, m)
	if r.Status/100 != 2 || r.Result || r.Error {
		return r
	}
	id := a.lastID
	wait := time.After(a.limit)
	for {
		select {
		case e, open := <-a.stream.events:
			if !open {
				r.Failed = "the stream ended without an answer"
				return r
			}
			if m, ok := parseMessage([]byte(e.data), id); ok {
				r.Text, r.Over = "", "stream"
				a.take(m, &r)
				return r
			}
		case <-ctx.Done():
			r.Answer = cutShort(ctx)
			return r
		case <-wait:
			r.Failed, r.Late = fmt.Sprintf("no answer over the stream within %s", seconds(a.limit)), true
			return r
		}
	}
}
