package endpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"mcpdoctor/scan/facts"
)

// Codes of errors that only servers of revision 2026-07-28 answer with; see its basic/index, "Error Codes".
const (
	headerMismatch     = -32020
	missingCapability  = -32021
	unsupportedVersion = -32022
)

// detect finds out what the endpoint speaks. It asks as clients until 2025-11-25 begin, then as 2026-07-28 has
// it, and where it gets a result for neither it opens an HTTP+SSE stream.
func (p *prober) detect(ctx context.Context) error {
	first := p.ask(ctx, facts.AskInitialize, "POST initialize", initialize())
	if first.Result && parseServer(first.result).ProtocolVersion == "" {
		first.Result, first.Failed = false, "its result names no protocol version"
	}
	if err := p.rejected(first); err != nil {
		return err
	}
	if first.Result {
		p.e.Transport = facts.Streamable
		p.agree(first)
	}
	discovered := p.ask(ctx, facts.AskModern, "POST server/discover, revision "+modern, message{method: "server/discover", modern: true})
	p.discover(first, discovered)
	if p.e.Transport != "" {
		return nil
	}
	if p.stream = p.askStream(ctx, facts.AskStream, "GET, accepting text/event-stream"); p.stream != nil {
		p.e.Transport = facts.LegacySSE
		return nil
	}
	switch {
	case ctx.Err() != nil:
		return unaskable(facts.NoTime, "the time was over before it was known what it speaks")
	case p.streamErr != nil:
		return p.streamErr
	case first.Error, first.Status >= 500, first.Status/100 == 2 && first.Failed != "" && !first.Ours:
		return unaskable(facts.Broken, "it does not serve initialize: it answered with "+first.Words())
	}
	get := p.e.Exchanges[len(p.e.Exchanges)-1].Answer
	return unaskable(facts.NoMCP, "it does not seem to speak MCP: it answered initialize with "+first.Words()+", and GET with "+get.Words())
}

// rejected returns why no other question makes sense after the first answer; nil if one does.
func (p *prober) rejected(first reply) error {
	switch {
	case first.err != nil:
		return first.err
	case first.Ours && first.Status == 0:
		return unaskable(facts.NoTime, "the time was over before it was known what it speaks")
	case first.Status == http.StatusUnauthorized, first.Status == http.StatusForbidden, first.Status == http.StatusTooManyRequests:
		return p.refusal(first)
	case first.Result:
	case first.Status >= 300 && first.Status < 400:
		return unaskable(facts.NoMCP, fmt.Sprintf("it answers a POST with HTTP %d, and does not say where to go", first.Status))
	case first.Status == http.StatusBadRequest && strings.Contains(first.Text, "HTTPS"): // Go, nginx
		return unaskable(facts.WantsTLS, "it answers with "+first.Words())
	}
	return nil
}

// refusal is the error of an endpoint that does not let this client in, with what it asks for.
func (p *prober) refusal(r reply) *facts.Unaskable {
	out := unaskable(facts.NoAccess, "it requires authentication")
	asks, value := "it asks for ", r.header.Get("WWW-Authenticate")
	switch {
	case r.Status == http.StatusTooManyRequests:
		out.Reason, out.What = facts.Busy, "it accepts no more requests for now"
		asks, value = "Retry-After is ", r.header.Get("Retry-After")
	case r.Status == http.StatusForbidden:
		out.Reason, out.What, value = facts.Forbidden, "it forbids the request", ""
	case len(p.o.Header) > 0 || p.o.URL.User != nil:
		out.Reason, out.What = facts.BadAccess, "it does not accept the credentials that were given"
	}
	out.What += fmt.Sprintf(" (HTTP %d)", r.Status)
	switch {
	case value != "":
		out.What += "; " + asks + p.secrets.short(value)
	case r.Text != "" && !strings.HasPrefix(r.Text, "<"):
		out.What += fmt.Sprintf(": %q", r.Text)
	}
	return out
}

func initialize() message {
	return message{method: "initialize", params: map[string]any{
		"protocolVersion": newestLegacy, "capabilities": map[string]any{}, "clientInfo": clientInfo,
	}}
}

type implementation struct{ Name, Version string }

// serverResult is what servers say of themselves in the result of initialize or server/discover, or in the data
// of an error.
type serverResult struct {
	ProtocolVersion   string
	ServerInfo        implementation
	SupportedVersions []string
	Supported         []string
	Meta              struct {
		ServerInfo implementation `json:"io.modelcontextprotocol/serverInfo"`
	} `json:"_meta"`
}

// parseServer merges texts. What has another form is left out.
func parseServer(texts ...json.RawMessage) serverResult {
	var out serverResult
	for _, text := range texts {
		_ = json.Unmarshal(text, &out)
	}
	return out
}

// agree records the version, the server's name and the session of initialize.
func (p *prober) agree(r reply) {
	s := parseServer(r.result)
	p.e.Version = p.secrets.short(s.ProtocolVersion)
	p.e.Name, p.e.Release = p.secrets.short(s.ServerInfo.Name), p.secrets.short(s.ServerInfo.Version)
	if isVersion(s.ProtocolVersion) {
		p.version = s.ProtocolVersion
	}
	p.e.Session = r.session != "" && p.e.Transport == facts.Streamable
}

// isVersion reports whether a protocol version can be sent as a header.
func isVersion(s string) bool {
	const longest = 32
	return s != "" && len(s) <= longest && strings.Trim(s, "0123456789-.abcdefghijklmnopqrstuvwxyz") == ""
}

// keep remembers a session to delete.
func (p *prober) keep(session string) {
	if session != "" && !slices.Contains(p.opened, session) {
		p.opened = append(p.opened, session)
	}
}

// discover records whether revision 2026-07-28 is served: by the answer to a request in its form, or by the error
// with which a server that speaks nothing else refuses initialize.
func (p *prober) discover(first, discovered reply) {
	s := parseServer(first.data, discovered.data, discovered.result)
	for _, v := range append(s.Supported, s.SupportedVersions...) {
		if isVersion(v) && len(p.e.Supported) < 8 {
			p.e.Supported = append(p.e.Supported, v)
		}
	}
	if p.e.Name == "" {
		info := s.Meta.ServerInfo // where the revision has it
		if info.Name == "" {
			info = s.ServerInfo
		}
		p.e.Name, p.e.Release = p.secrets.short(info.Name), p.secrets.short(info.Version)
	}
	// Some answer everything with a result, and some list only older versions in the error.
	p.e.Modern = discovered.Result && discovered.Status == http.StatusOK && len(parseServer(discovered.result).SupportedVersions) > 0
	if p.e.Transport == "" && (p.e.Modern || isModernError(first.Answer)) {
		p.e.Transport, p.e.Version = facts.Stateless, modern
	}
}

func isModernError(r facts.Answer) bool {
	return r.Error && (r.Code == headerMismatch || r.Code == missingCapability || r.Code == unsupportedVersion)
}

// askStreamable asks what Streamable HTTP leaves to the server: how it treats sessions.
func (p *prober) askStreamable(ctx context.Context) {
	list := message{method: "tools/list", modern: p.e.Transport == facts.Stateless}
	session := ""
	if p.e.Session {
		session = p.opened[0]
		p.ask(ctx, facts.AskInitialized, "POST notifications/initialized", message{method: "notifications/initialized", notify: true, session: session})
	}
	p.ask(ctx, facts.AskWithout, "POST tools/list, no session", list)
	list.session = unknownSession
	p.ask(ctx, facts.AskUnknown, "POST tools/list, unknown session", list)
	if session == "" {
		return
	}
	list.session = session
	p.ask(ctx, facts.AskWith, "POST tools/list, session of initialize", list)
	gone := p.ask(ctx, facts.AskDelete, "DELETE, session of initialize", message{httpMethod: http.MethodDelete, session: session})
	after := p.ask(ctx, facts.AskDeleted, "POST tools/list, deleted session", list)
	if gone.Status/100 == 2 || after.Status == http.StatusNotFound || after.Status == http.StatusBadRequest || after.Status == http.StatusGone {
		p.opened = p.opened[1:]
		return
	}
	switch gone.Status {
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		p.undeletable = true
	case http.StatusRequestTimeout, http.StatusTooManyRequests: // not now
	default:
		p.undeletable = after.Result && gone.Status/100 == 4
	}
}
