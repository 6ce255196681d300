package endpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"mcpdoctor/scan/facts"
)

// greet finds out what the endpoint speaks: it asks as every client until 2025-11-25 begins, then as
// 2026-07-28 has it, and where neither is understood it opens the stream of the old transport.
func (a *asker) greet(ctx context.Context) error {
	first := a.ask(ctx, facts.AskInitialize, "POST initialize", initialize())
	if first.Result && !namesVersion(first.result) {
		first.Result, first.Failed = false, "its result names no protocol version"
	}
	switch {
	case first.err != nil:
		return first.err
	case first.Ours && first.Status == 0:
		return unaskable(facts.NoTime, "the time was over before it was known what it speaks")
	case first.Status == 0:
		return unaskable(first.reason, first.Failed)
	case first.Status == http.StatusUnauthorized, first.Status == http.StatusForbidden, first.Status == http.StatusTooManyRequests:
		return a.refusal(first)
	case first.Result:
		a.e.Transport = facts.Streamable
		a.agree(first)
	case first.Status >= 300 && first.Status < 400:
		return unaskable(facts.NoMCP, fmt.Sprintf("it answers a POST with HTTP %d, and does not say where to go", first.Status))
	case first.Status == http.StatusBadRequest && strings.Contains(first.Text, "HTTPS"): // Go, nginx
		return unaskable(facts.WantsTLS, "it answers with "+first.Words())
	}
	discovered := a.ask(ctx, facts.AskModern, "POST server/discover, revision "+modern, message{rpc: "server/discover", modern: true})
	a.discover(first, discovered)
	if a.e.Transport != "" {
		return nil
	}
	if a.openStream(ctx) {
		a.e.Transport = facts.LegacySSE
		return nil
	}
	switch {
	case ctx.Err() != nil:
		return unaskable(facts.NoTime, "the time was over before it was known what it speaks")
	case a.astray != nil:
		return a.astray
	case first.Error, first.Status >= 500, first.Status/100 == 2 && first.Failed != "" && !first.Ours:
		return unaskable(facts.Broken, "it does not serve initialize, which is answered with "+first.Words())
	}
	get := a.e.Exchanges[len(a.e.Exchanges)-1].Answer
	return unaskable(facts.NoMCP, "it does not speak MCP as far as can be told: initialize is answered with "+first.Words()+", and GET with "+get.Words())
}

// refusal is the error of an endpoint that does not let this client in, with what it asks for.
func (a *asker) refusal(r reply) *facts.Unaskable {
	out := unaskable(facts.NoAccess, "it refuses whoever does not prove who they are")
	wants := "which it asks for with "
	switch given := len(a.o.Header) > 0 || a.o.URL.User != nil; {
	case r.Status == http.StatusTooManyRequests:
		out.Reason, out.What, wants = facts.Busy, "it asks for fewer requests", "to come again after so many seconds, or then: "
	case r.Status == http.StatusForbidden:
		out.Reason, out.What = facts.Forbidden, "it forbids the request"
	case given:
		out.Reason, out.What, wants = facts.BadAccess, "it does not accept what was given to prove who asks", "it wants "
	}
	out.What += fmt.Sprintf(" (HTTP %d)", r.Status)
	switch {
	case r.wants != "":
		out.What += ", " + wants + r.wants
	case r.Text != "" && !strings.HasPrefix(r.Text, "<"):
		out.What += fmt.Sprintf(": %q", r.Text)
	}
	return out
}

// namesVersion tells that a result is one of initialize, which has to name a protocol version.
func namesVersion(result json.RawMessage) bool {
	var told struct{ ProtocolVersion string }
	return json.Unmarshal(result, &told) == nil && told.ProtocolVersion != ""
}

func initialize() message {
	return message{rpc: "initialize", params: map[string]any{
		"protocolVersion": newestLegacy, "capabilities": map[string]any{}, "clientInfo": client,
	}}
}

// agree takes over what initialize told: the version, the server's name, the session.
func (a *asker) agree(r reply) {
	var told struct {
		ProtocolVersion string
		ServerInfo      struct{ Name, Version string }
	}
	_ = json.Unmarshal(r.result, &told) // what it does not tell stays empty
	a.e.Version, a.e.Name, a.e.Release = a.short(told.ProtocolVersion), a.short(told.ServerInfo.Name), a.short(told.ServerInfo.Version)
	if version(told.ProtocolVersion) {
		a.version = told.ProtocolVersion
	}
	a.e.Session = r.session != ""
}

// version tells that a protocol version has the form of one, so that it can be sent as a header.
func version(s string) bool {
	const longest = 32
	return s != "" && len(s) <= longest && strings.Trim(s, "0123456789-.abcdefghijklmnopqrstuvwxyz") == ""
}

// keep remembers a session that is to be deleted.
func (a *asker) keep(session string) {
	if session != "" && !slices.Contains(a.opened, session) {
		a.opened = append(a.opened, session)
	}
}

// discover says whether revision 2026-07-28 is served, by what came to a request in its form, or by the
// error with which a server that speaks nothing else refuses initialize.
func (a *asker) discover(first, discovered reply) {
	var told struct {
		SupportedVersions []string
		ServerInfo        struct{ Name, Version string }
		Supported         []string
		Meta              struct {
			ServerInfo struct{ Name, Version string } `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	for _, from := range []json.RawMessage{first.data, discovered.data, discovered.result} {
		_ = json.Unmarshal(from, &told) // of another form: nothing is told
	}
	for _, v := range append(told.Supported, told.SupportedVersions...) {
		if version(v) && len(a.e.Supported) < 8 {
			a.e.Supported = append(a.e.Supported, v)
		}
	}
	if a.e.Name == "" {
		about := told.Meta.ServerInfo // where the revision has it
		if about.Name == "" {
			about = told.ServerInfo
		}
		a.e.Name, a.e.Release = a.short(about.Name), a.short(about.Version)
	}
	// Some answer everything with a result, and some list only older versions here.
	var about struct{ SupportedVersions []string }
	_ = json.Unmarshal(discovered.result, &about)
	a.e.Modern = discovered.Result && discovered.Status == http.StatusOK && len(about.SupportedVersions) > 0
	if a.e.Transport != "" {
		return
	}
	if a.e.Modern || modernError(first.Answer) {
		a.e.Transport, a.e.Version = facts.Stateless, modern
	}
}

// modernError tells that an error is one that only servers of revision 2026-07-28 know.
func modernError(r facts.Answer) bool {
	return r.Error && (r.Code == headerMismatch || r.Code == missingCapability || r.Code == unsupportedVersion)
}

// askStreamable asks what Streamable HTTP leaves to the server: what a session is to it.
func (a *asker) askStreamable(ctx context.Context) {
	list := message{rpc: "tools/list", modern: a.e.Transport == facts.Stateless}
	session := ""
	if a.e.Session {
		session = a.opened[0]
		a.ask(ctx, facts.AskInitialized, "POST notifications/initialized", message{rpc: "notifications/initialized", notify: true, session: session})
	}
	a.ask(ctx, facts.AskWithout, "POST tools/list, no session", list)
	list.session = nobody
	a.ask(ctx, facts.AskUnknown, "POST tools/list, unknown session", list)
	if session == "" {
		return
	}
	list.session = session
	a.ask(ctx, facts.AskWith, "POST tools/list, session of initialize", list)
	gone := a.ask(ctx, facts.AskDelete, "DELETE, session of initialize", message{method: http.MethodDelete, session: session})
	after := a.ask(ctx, facts.AskDeleted, "POST tools/list, deleted session", list)
	if gone.Status/100 == 2 || after.Status == http.StatusNotFound || after.Status == http.StatusBadRequest || after.Status == http.StatusGone {
		a.opened = a.opened[1:]
		return
	}
	switch gone.Status {
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		a.undeletable = true
	case http.StatusRequestTimeout, http.StatusTooManyRequests: // not now
	default:
		a.undeletable = after.Result && gone.Status/100 == 4
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
