package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"mcpdoctor/scan/facts"
)

const (
	maxAnswer    = 1 << 20  // bytes of one answer
	maxHeader    = 64 << 10 // bytes of its header
	maxRedirects = 3        // of the first request; later ones go where it led, and follow none
)

const (
	newestLegacy   = "2025-11-25" // the last revision that begins with initialize
	modern         = "2026-07-28"
	unknownSession = "00000000-0000-4000-8000-000000000000" // one that never was
)

// errSpent means that all the requests that are allowed have been sent.
var errSpent = errors.New("no more requests are allowed")

// counter lets a number of requests through.
type counter struct {
	most int64
	sent atomic.Int64
	next http.RoundTripper
}

func newCounter(o Options) *counter {
	return &counter{most: int64(MaxRequests(o.Sessions)), next: &http.Transport{
		Proxy:                  o.Proxy,
		DisableCompression:     true, // a small answer could unfold into any size
		DisableKeepAlives:      true, // each session is dropped with its connection
		MaxResponseHeaderBytes: maxHeader,
	}}
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.sent.Add(1) > c.most {
		c.sent.Add(-1)
		return nil, errSpent
	}
	return c.next.RoundTrip(r)
}

// redirect lets the first request be redirected on the same host.
func (p *prober) redirect(r *http.Request, via []*http.Request) error {
	if p.url != nil {
		return http.ErrUseLastResponse
	}
	switch elsewhere := otherHost("it redirects", via[0].URL, r.URL); {
	case elsewhere != nil:
		return elsewhere
	case r.Method != via[0].Method:
		return unaskable(facts.NoMCP, "it redirects a POST so that a "+r.Method+" would follow: not an answer of an MCP server")
	case len(via) > maxRedirects:
		return unaskable(facts.NoMCP, fmt.Sprintf("it redirects more than %d times", maxRedirects))
	}
	return nil
}

// otherHost returns why an address is not asked; nil when it stays on the host and port, or only changes from http to https.
func otherHost(how string, from, to *url.URL) *facts.Unaskable {
	toHTTPS := from.Scheme == "http" && to.Scheme == "https" && portOf(from) == "80" && portOf(to) == "443"
	switch {
	case to.Scheme != "http" && to.Scheme != "https":
		return unaskable(facts.NoMCP, how+" to an address that is not HTTP")
	case to.User != nil:
		return unaskable(facts.OtherHost, how+" to an address with a user in it, which is not asked")
	case !strings.EqualFold(from.Hostname(), to.Hostname()):
		return unaskable(facts.OtherHost, how+" to another host, "+to.Host+", which is not asked")
	case portOf(from) != portOf(to) && !toHTTPS:
		return unaskable(facts.OtherHost, how+" to another port, "+to.Host+", which is not asked")
	case from.Scheme != to.Scheme && !toHTTPS:
		return unaskable(facts.OtherHost, how+" to the same host by "+to.Scheme+", which is not asked")
	}
	return nil
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// message is a request to be sent.
type message struct {
	httpMethod string   // POST when empty
	target     *url.URL // the endpoint when nil
	method     string   // of JSON-RPC; empty for a request without a body
	params     any
	notify     bool // it has no ID, and wants no answer
	modern     bool // in the form of revision 2026-07-28
	session    string
}

var clientInfo = map[string]any{"name": "mcpdoctor", "version": "1"}

// body returns the JSON-RPC message, and the ID that its answer will have.
func (p *prober) body(m message) ([]byte, int, error) {
	if m.method == "" {
		return nil, 0, nil
	}
	id := 0
	text := map[string]any{"jsonrpc": "2.0", "method": m.method}
	if !m.notify {
		p.lastID++
		id = p.lastID
		text["id"] = id
	}
	if m.modern {
		m.params = map[string]any{"_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion":    modern,
			"io.modelcontextprotocol/clientInfo":         clientInfo,
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		}}
	}
	if m.params != nil {
		text["params"] = m.params
	}
	body, err := json.Marshal(text)
	return body, id, err
}

// request returns the HTTP request of a message, and the ID that its answer will have.
func (p *prober) request(ctx context.Context, m message) (*http.Request, int, error) {
	body, id, err := p.body(m)
	if err != nil {
		return nil, 0, err
	}
	method, accept := cmp.Or(m.httpMethod, http.MethodPost), "application/json, text/event-stream"
	if method == http.MethodGet {
		accept = "text/event-stream"
	}
	target := cmp.Or(m.target, p.url, p.o.URL)
	r, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	r.URL.User = nil // it goes into a header, so that a redirect does not lose it
	for name, values := range p.o.Header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	if u := p.o.URL.User; u != nil && r.Header.Get("Authorization") == "" {
		password, _ := u.Password()
		r.SetBasicAuth(u.Username(), password)
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", "mcpdoctor")
	}
	r.Header.Set("Accept", accept)
	if m.method != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	switch {
	case m.modern:
		r.Header.Set("MCP-Protocol-Version", modern)
		r.Header.Set("Mcp-Method", m.method)
	case p.version != "" && m.method != "initialize":
		r.Header.Set("MCP-Protocol-Version", p.version)
	}
	if m.session != "" {
		r.Header.Set("Mcp-Session-Id", m.session)
	}
	return r, id, nil
}

// reply is an answer with what only the probe needs of it.
type reply struct {
	facts.Answer
	header  http.Header
	session string
	result  json.RawMessage
	data    json.RawMessage  // of an error
	err     *facts.Unaskable // why the endpoint cannot be asked, if this is its first answer; nil when there is an answer
}

// response is an answer whose header has come. Reading its body fails with [context.DeadlineExceeded] when the
// time for one answer is over.
type response struct {
	*http.Response
	id     int
	ctx    context.Context
	cancel context.CancelCauseFunc
	limit  *time.Timer
}

func (r *response) close() {
	r.limit.Stop()
	r.cancel(nil)
	r.Body.Close()
}

func (r *response) Read(b []byte) (int, error) {
	n, err := r.Body.Read(b)
	if err != nil && err != io.EOF && context.Cause(r.ctx) == context.DeadlineExceeded {
		err = context.DeadlineExceeded
	}
	return n, err
}

// open sends a message and waits for the header of its answer. Without one the response is nil, and the reply
// says why.
func (p *prober) open(whole context.Context, m message) (*response, reply) {
	ctx, cancel := context.WithCancelCause(whole)
	out := &response{ctx: ctx, cancel: cancel, limit: time.AfterFunc(p.limit, func() { cancel(context.DeadlineExceeded) })}
	r, id, err := p.request(ctx, m)
	if err == nil {
		out.id = id
		out.Response, err = p.client.Do(r)
	}
	if err != nil {
		if context.Cause(ctx) == context.DeadlineExceeded {
			err = context.DeadlineExceeded
		}
		out.limit.Stop()
		cancel(nil)
		return nil, p.noAnswer(whole, err)
	}
	if p.url == nil {
		p.url = out.Request.URL
	}
	answer := facts.Answer{Status: out.StatusCode, Type: contentType(out.Header)}
	return out, reply{Answer: answer, header: out.Header, session: out.Header.Get("Mcp-Session-Id")}
}

// send sends a message and waits for its answer.
func (p *prober) send(ctx context.Context, m message) reply {
	res, out := p.open(ctx, m)
	if res == nil {
		return out
	}
	defer res.close()
	p.secrets.add(out.session)
	p.read(res, &out)
	if out.Failed != "" && ctx.Err() != nil {
		out.Answer = interrupted(ctx)
	}
	return out
}

// ask sends a message as one of the questions and records the answer.
func (p *prober) ask(ctx context.Context, ask facts.Ask, sent string, m message) reply {
	if ctx.Err() != nil {
		return reply{Answer: interrupted(ctx)}
	}
	began := p.o.Now()
	r := p.send(ctx, m)
	if r.session != m.session && r.session != unknownSession { // some open a session for requests without one
		p.keep(r.session)
	}
	p.record(ask, sent, began, r.Answer)
	return r
}

func (p *prober) record(ask facts.Ask, sent string, began time.Time, answer facts.Answer) {
	p.e.Exchanges = append(p.e.Exchanges, facts.Exchange{Ask: ask, Sent: sent, Answer: answer, DurationMS: p.o.Now().Sub(began).Milliseconds()})
}

// interrupted is the answer that the probe did not wait for, as ctx has ended.
func interrupted(ctx context.Context) facts.Answer {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return facts.Answer{Failed: "the time was over", Late: true, Ours: true}
	}
	return facts.Answer{Failed: "it was interrupted", Ours: true}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3g s", d.Seconds()) }

// noAnswer classifies the error of a request. The text of a [url.Error] is not used: it has the whole URL.
func (p *prober) noAnswer(whole context.Context, err error) reply {
	var refused *facts.Unaskable
	var outer *url.Error
	var network *net.OpError
	var certificate *tls.CertificateVerificationError
	failed := func(reason facts.Reason, text string) reply {
		return reply{Answer: facts.Answer{Failed: text}, err: unaskable(reason, text)}
	}
	switch {
	case whole.Err() != nil:
		return reply{Answer: interrupted(whole)}
	case errors.Is(err, errSpent):
		return reply{Answer: facts.Answer{Failed: errSpent.Error(), Ours: true}}
	case errors.As(err, &refused):
		return failed(refused.Reason, p.secrets.mask(refused.What))
	case errors.Is(err, context.DeadlineExceeded):
		reason := facts.Silent
		if p.limit < facts.Patience {
			reason = facts.Hasty
		}
		out := failed(reason, "no answer within "+seconds(p.limit))
		out.Late = true
		return out
	case errors.As(err, &network) && (network.Op == "dial" || network.Op == "proxyconnect"):
		return failed(facts.NoAnswer, p.secrets.mask("no connection: "+network.Err.Error()))
	case errors.As(err, &certificate):
		return failed(facts.NoTrust, "its certificate is not accepted: "+p.secrets.short(certificate.Err.Error()))
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, new(tls.RecordHeaderError)):
		return failed(facts.PlainHTTP, "it does not answer with TLS")
	case errors.Is(err, io.EOF), network != nil: // reading or writing failed
		return failed(facts.Closed, "the connection was closed without an answer")
	case errors.As(err, &outer):
		err = outer.Err
	}
	const tlsAlert = `"\x15\x03` // the beginning of an alert in net/http's "malformed HTTP response"
	if strings.Contains(err.Error(), tlsAlert) {
		return failed(facts.WantsTLS, "it answers with TLS")
	}
	return failed(facts.NoHTTP, p.secrets.short(err.Error()))
}

// read reads an answer to its end, or to its limit.
func (p *prober) read(res *response, out *reply) {
	if e := res.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		out.Failed, out.Ours = "the body is compressed, which was not asked for, and was not read", true
		return
	}
	body := io.LimitReader(res, maxAnswer)
	if out.Type == "text/event-stream" {
		p.readStream(newEvents(body), res.id, out)
		return
	}
	text, err := io.ReadAll(body)
	if err != nil {
		out.Failed, out.Late = p.cutOff(err), errors.Is(err, context.DeadlineExceeded)
	}
	if len(text) == maxAnswer {
		out.Ours, out.Late = true, false
		out.Failed = fmt.Sprintf("the answer is longer than %d bytes, and was not read to its end", maxAnswer)
		text = text[:1024]
	}
	if m, ok := parseMessage(text, res.id); ok {
		p.take(m, out)
		return
	}
	out.Text = p.secrets.short(string(text[:min(len(text), 4*maxText)]))
	if out.Failed == "" && isResponse(text) {
		out.Failed, out.Text = "the answer has another ID than the request", ""
	}
}

// readStream reads events up to the answer with an ID.
func (p *prober) readStream(in *events, id int, out *reply) {
	for {
		e, err := in.next()
		switch {
		case err == nil:
		case !errors.Is(err, io.EOF):
			out.Failed, out.Late = p.cutOff(err), errors.Is(err, context.DeadlineExceeded)
			return
		case in.read >= maxAnswer:
			out.Failed, out.Ours = fmt.Sprintf("the stream had no answer in its first %d bytes", maxAnswer), true
			return
		default:
			out.Failed = "the stream ended without an answer"
			return
		}
		if m, ok := parseMessage([]byte(e.data), id); ok {
			p.take(m, out)
			return
		}
	}
}

// take copies a JSON-RPC response to the reply.
func (p *prober) take(m rpcMessage, out *reply) {
	switch {
	case m.Error != nil:
		out.Error, out.Code, out.Text, out.data = true, m.Error.Code, p.secrets.short(m.Error.Message), m.Error.Data
	case bytes.HasPrefix(bytes.TrimSpace(m.Result), []byte("{")):
		out.Result, out.result = true, m.Result
	default:
		out.Failed = "its result is no object"
	}
}

// cutOff says why a body could not be read to its end.
func (p *prober) cutOff(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "the answer did not end within " + seconds(p.limit)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the answer was cut off"
	}
	return "the answer could not be read: " + p.secrets.short(err.Error())
}

// contentType returns the media type of an answer in lower case and without parameters, "unreadable" when it is
// none.
func contentType(h http.Header) string {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	const longest = 64
	if len(kind) > longest || strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz0123456789/+.-") != "" {
		return "unreadable"
	}
	return kind
}
