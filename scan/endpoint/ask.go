package endpoint

import (
	"bytes"
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
	"sync"
	"time"

	"mcpdoctor/scan/facts"
)

const (
	// answerLimit is how much of one answer is read, whatever it is.
	answerLimit = 1 << 20

	// headerLimit is how much of an answer's header is read.
	headerLimit = 64 << 10

	// redirects is how often the first question may be sent elsewhere on the same host. Later ones go
	// straight to where that led, and follow nothing.
	redirects = 3
)

const (
	newestLegacy = "2025-11-25" // the last revision that begins with initialize
	modern       = "2026-07-28"
	nobody       = "00000000-0000-4000-8000-000000000000" // a session that never was
)

// Codes of JSON-RPC errors that only a server of revision 2026-07-28 answers with; see its basic/index,
// "Error Codes".
const (
	headerMismatch     = -32020
	missingCapability  = -32021
	unsupportedVersion = -32022
)

// errSpent says that the requests that were allowed have been sent.
var errSpent = errors.New("no more requests are allowed")

// asker asks one endpoint.
type asker struct {
	o      Options
	client *http.Client
	sent   *counter
	url    *url.URL // where it was led by the first question
	led    bool
	limit  time.Duration // for one answer
	lastID int

	secrets []string
	hide    *strings.Replacer // nil when a secret has been added since

	version string   // for MCP-Protocol-Version, once agreed
	opened  []string // sessions that are to be deleted

	// undeletable tells that the endpoint did not delete the first session, so that the others are not
	// tried.
	undeletable bool

	stream *stream          // of the old transport
	astray *facts.Unaskable // why there is none, when it led elsewhere
	seen   *watched
	e      *facts.Endpoint
}

func newAsker(o Options) *asker {
	a := &asker{o: o, url: o.URL, limit: min(facts.Patience, o.Timeout/4), e: &facts.Endpoint{URL: shown(o.URL), Exchanges: []facts.Exchange{}}}
	a.e.LimitMS = a.limit.Milliseconds()
	a.sent = &counter{most: Budget(o.Sessions), next: &http.Transport{
		Proxy:                  o.Proxy,
		DisableCompression:     true, // a small answer could unfold into any size
		DisableKeepAlives:      true, // each session is to be dropped with its connection
		MaxResponseHeaderBytes: headerLimit,
	}}
	a.client = &http.Client{Transport: a.sent, CheckRedirect: a.redirect}
	a.secrets = secretsOf(o)
	return a
}

// counter lets only so many requests through.
type counter struct {
	most int
	next http.RoundTripper

	mu   sync.Mutex
	sent int
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	spent := c.sent >= c.most
	if !spent {
		c.sent++
	}
	c.mu.Unlock()
	if spent {
		return nil, errSpent
	}
	return c.next.RoundTrip(r)
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent
}

// redirect lets the first question be led elsewhere on the same host.
func (a *asker) redirect(r *http.Request, via []*http.Request) error {
	switch from := via[0].URL; {
	case a.led:
		return http.ErrUseLastResponse
	case !sameHost(from, r.URL):
		return leads("it redirects", from, r.URL)
	case r.Method != via[0].Method:
		return unaskable(facts.NoMCP, "it redirects a POST so that a "+r.Method+" would follow, which is no answer of an MCP server")
	case len(via) > redirects:
		return unaskable(facts.NoMCP, fmt.Sprintf("it redirects more than %d times", redirects))
	}
	return nil
}

// sameHost tells that a redirect stays on the host, and on its port but for the change to https.
func sameHost(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) || to.User != nil {
		return false
	}
	return from.Scheme == to.Scheme && portOf(from) == portOf(to) || from.Scheme == "http" && to.Scheme == "https" && portOf(from) == "80" && portOf(to) == "443"
}

// leads is the error of an address that is not on the same host.
func leads(how string, from, to *url.URL) *facts.Unaskable {
	switch {
	case to.Scheme != "http" && to.Scheme != "https":
		return unaskable(facts.NoMCP, how+" to an address that is none of HTTP")
	case to.User != nil:
		return unaskable(facts.OtherHost, how+" to an address with a user in it, which is not asked")
	case !strings.EqualFold(from.Hostname(), to.Hostname()):
		return unaskable(facts.OtherHost, how+" to another host, "+to.Host+", which is not asked")
	case portOf(from) != portOf(to):
		return unaskable(facts.OtherHost, how+" to another port, "+to.Host+", which is not asked")
	}
	return unaskable(facts.OtherHost, how+" to the same host by "+to.Scheme+", where it is not asked")
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

// message is one request to be sent.
type message struct {
	method  string   // of HTTP; POST when empty
	target  *url.URL // the endpoint when nil
	rpc     string   // the method of JSON-RPC; empty for a request without a body
	params  any
	notify  bool   // it has no ID, and wants no answer
	modern  bool   // as revision 2026-07-28 has it
	session string // its Mcp-Session-Id
}

// client is what is said about us.
var client = map[string]any{"name": "mcpdoctor", "version": "1"}

// build makes the HTTP request of a message, and returns the ID that its answer will have.
func (a *asker) build(ctx context.Context, m message) (*http.Request, int, error) {
	if m.method == "" {
		m.method = http.MethodPost
	}
	if m.target == nil {
		m.target = a.url
	}
	target := *m.target
	target.User = nil // it goes into a header, so that a redirect does not lose it
	body, id := []byte(nil), 0
	if m.rpc != "" {
		text := map[string]any{"jsonrpc": "2.0", "method": m.rpc}
		if !m.notify {
			a.lastID++
			id = a.lastID
			text["id"] = id
		}
		if m.modern {
			m.params = map[string]any{"_meta": map[string]any{
				"io.modelcontextprotocol/protocolVersion":    modern,
				"io.modelcontextprotocol/clientInfo":         client,
				"io.modelcontextprotocol/clientCapabilities": map[string]any{},
			}}
		}
		if m.params != nil {
			text["params"] = m.params
		}
		var err error
		if body, err = json.Marshal(text); err != nil {
			return nil, 0, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, m.method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, 0, errors.New("the request cannot be made")
	}
	for name, values := range a.o.Header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	if u := a.o.URL.User; u != nil && r.Header.Get("Authorization") == "" {
		password, _ := u.Password()
		r.SetBasicAuth(u.Username(), password)
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if m.method == http.MethodGet {
		r.Header.Set("Accept", "text/event-stream")
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", "mcpdoctor")
	}
	if m.rpc != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	switch {
	case m.modern:
		r.Header.Set("MCP-Protocol-Version", modern)
		r.Header.Set("Mcp-Method", m.rpc)
	case a.version != "" && m.rpc != "initialize":
		r.Header.Set("MCP-Protocol-Version", a.version)
	}
	if m.session != "" {
		r.Header.Set("Mcp-Session-Id", m.session)
	}
	return r, id, nil
}

// reply is an answer with what only the questions need of it.
type reply struct {
	facts.Answer
	session string
	result  json.RawMessage
	data    json.RawMessage // of an error
	err     *facts.Unaskable
	reason  facts.Reason // of a connection that gave no answer
	wants   string       // what it asks for: WWW-Authenticate, Retry-After
}

// send sends a message and waits for its answer.
func (a *asker) send(whole context.Context, m message) reply {
	ctx, cancel := context.WithTimeout(whole, a.limit)
	defer cancel()
	r, id, err := a.build(ctx, m)
	if err != nil {
		return reply{Answer: facts.Answer{Failed: err.Error()}}
	}
	res, err := a.client.Do(r)
	if err != nil {
		return a.failed(whole, err)
	}
	defer res.Body.Close()
	if !a.led {
		a.led = true
		a.url = res.Request.URL
	}
	out := a.read(res, id)
	if out.Failed != "" && whole.Err() != nil {
		out.Answer = cutShort(whole)
	}
	return out
}

// cutShort is the answer that nobody waits for any more, as ctx has ended.
func cutShort(ctx context.Context) facts.Answer {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return facts.Answer{Failed: "the time was over", Late: true, Ours: true}
	}
	return facts.Answer{Failed: "it was interrupted", Ours: true}
}

// tlsAlert is how net/http shows the beginning of an alert of TLS in "malformed HTTP response".
const tlsAlert = `"\x15\x03`

// seconds writes a limit for a sentence.
func seconds(d time.Duration) string { return fmt.Sprintf("%.3g s", d.Seconds()) }

// failed is the answer that did not come. The text of a [url.Error] is not used: it has the whole URL.
func (a *asker) failed(whole context.Context, err error) reply {
	if whole.Err() != nil {
		return reply{Answer: cutShort(whole)}
	}
	var refused *facts.Unaskable
	var outer *url.Error
	var dial *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &refused):
		refused = unaskable(refused.Reason, a.veil(refused.What))
		return reply{Answer: facts.Answer{Failed: refused.What}, err: refused}
	case errors.Is(err, context.DeadlineExceeded):
		reason := facts.Silent
		if a.limit < facts.Patience {
			reason = facts.Hasty
		}
		return reply{Answer: facts.Answer{Failed: "no answer within " + seconds(a.limit), Late: true}, reason: reason}
	case errors.Is(err, errSpent):
		return reply{Answer: facts.Answer{Failed: errSpent.Error(), Ours: true}}
	case errors.As(err, &dial) && (dial.Op == "dial" || dial.Op == "proxyconnect"):
		return reply{Answer: facts.Answer{Failed: a.veil("no connection: " + dial.Err.Error())}, reason: facts.NoAnswer}
	case errors.As(err, &certificate):
		return reply{Answer: facts.Answer{Failed: "its certificate is not accepted: " + a.short(certificate.Err.Error())}, reason: facts.NoTrust}
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, new(tls.RecordHeaderError)):
		return reply{Answer: facts.Answer{Failed: "it does not answer with TLS"}, reason: facts.PlainHTTP}
	case errors.As(err, &outer):
		err = outer.Err
	}
	if errors.Is(err, io.EOF) || errors.As(err, &dial) { // dial was no such operation, but reading or writing
		return reply{Answer: facts.Answer{Failed: "the connection was closed without an answer"}, reason: facts.Closed}
	}
	text := err.Error()
	if strings.Contains(text, tlsAlert) {
		return reply{Answer: facts.Answer{Failed: "it answers with TLS"}, reason: facts.WantsTLS}
	}
	return reply{Answer: facts.Answer{Failed: a.short(text)}, reason: facts.NoHTTP}
}

// read reads an answer to its end, or as far as it is allowed to go.
func (a *asker) read(res *http.Response, id int) reply {
	kind := contentType(res.Header)
	out := reply{Answer: facts.Answer{Status: res.StatusCode, Type: kind}, session: res.Header.Get("Mcp-Session-Id")}
	switch res.StatusCode {
	case http.StatusUnauthorized:
		out.wants = a.short(res.Header.Get("WWW-Authenticate"))
	case http.StatusTooManyRequests:
		out.wants = a.short(res.Header.Get("Retry-After"))
	}
	if out.session != "" {
		a.secrets, a.hide = append(a.secrets, out.session), nil
	}
	if e := res.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		out.Failed, out.Ours = "the body is compressed, which was not asked for, and was not read", true
		return out
	}
	body := io.LimitReader(res.Body, answerLimit)
	if kind == "text/event-stream" {
		a.readStream(body, id, &out)
		return out
	}
	text, err := io.ReadAll(body)
	if err != nil {
		out.Failed, out.Late = a.ended(err), errors.Is(err, context.DeadlineExceeded)
	}
	if len(text) == answerLimit {
		out.Ours, out.Late = true, false
		out.Failed = fmt.Sprintf("the answer is longer than %d bytes, and was not read to its end", answerLimit)
		text = text[:1024]
	}
	m, ok := parseMessage(text, id)
	if !ok {
		out.Text = a.short(string(text[:min(len(text), 4*shortest)]))
		if out.Failed == "" && answersAnother(text) {
			out.Failed, out.Text = "the answer has another ID than the question", ""
		}
		return out
	}
	a.take(m, &out)
	return out
}

// readStream reads the events of an answer up to the one with that ID.
func (a *asker) readStream(body io.Reader, id int, out *reply) {
	events := newEvents(body)
	for {
		e, err := events.next()
		if err != nil {
			out.Failed = "the stream ended without an answer"
			if !errors.Is(err, io.EOF) {
				out.Failed = a.ended(err)
			} else if events.read >= answerLimit {
				out.Ours = true
				out.Failed = fmt.Sprintf("the stream had no answer in its first %d bytes", answerLimit)
			}
			out.Late = errors.Is(err, context.DeadlineExceeded)
			return
		}
		if m, ok := parseMessage([]byte(e.data), id); ok {
			a.take(m, out)
			return
		}
	}
}

func (a *asker) take(m rpcMessage, out *reply) {
	if m.Error != nil {
		out.Error, out.Code, out.Text, out.data = true, m.Error.Code, a.short(m.Error.Message), m.Error.Data
		return
	}
	if !bytes.HasPrefix(bytes.TrimSpace(m.Result), []byte("{")) {
		out.Failed = "its result is no object"
		return
	}
	out.Result, out.result = true, m.Result
}

// ended says why a body could not be read to its end.
func (a *asker) ended(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "the answer did not end within " + seconds(a.limit)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the answer was cut off"
	}
	return "the answer could not be read: " + a.short(err.Error())
}

// ask sends a message as one of the questions and writes down what came back. What nobody would wait
// for is not asked.
func (a *asker) ask(ctx context.Context, ask facts.Ask, sent string, m message) reply {
	if ctx.Err() != nil {
		return reply{Answer: cutShort(ctx)}
	}
	began := a.o.Now()
	r := a.send(ctx, m)
	if r.session != m.session && r.session != nobody { // some open one for whoever comes without
		a.keep(r.session)
	}
	a.note(ask, sent, began, r.Answer)
	return r
}

func (a *asker) note(ask facts.Ask, sent string, began time.Time, answer facts.Answer) {
	a.e.Exchanges = append(a.e.Exchanges, facts.Exchange{Ask: ask, Sent: sent, Answer: answer, DurationMS: a.o.Now().Sub(began).Milliseconds()})
}
