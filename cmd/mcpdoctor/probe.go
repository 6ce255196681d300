package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpdoctor/report"
	"mcpdoctor/rules"
	"mcpdoctor/rules/diagnose"
	"mcpdoctor/rules/format"
	"mcpdoctor/rules/look"
	"mcpdoctor/scan/endpoint"
	"mcpdoctor/scan/facts"
)

const (
	usualSessions = 20
	mostSessions  = 10000
	usualTimeout  = 2 * time.Minute
)

type probeOptions struct {
	output
	sessions int
	headers  texts
	timeout  span
}

func newProbe(w *world) *cobra.Command {
	o := &probeOptions{sessions: usualSessions, timeout: span{usualTimeout}}
	c := verb(&cobra.Command{
		Use:   "probe URL",
		Short: "Test whether an MCP server over HTTP leaks.",
		Long: "Ask an HTTP endpoint what a client would, open sessions, drop them, and report what stays. If the endpoint runs on this\n" +
			"machine, the memory and child processes of its server are measured too.\n\n" +
			"It calls no tool, and sends at most two requests per session and " + fmt.Sprint(endpoint.MaxRequests(0)) + " others. It follows redirects on the same host and\n" +
			"port only, and deletes the sessions it opened. A server that leaks per session leaks these too. A server that accepts a single\n" +
			"client, as supergateway 3 over SSE, exits: do not probe it while it is in use.\n\n" +
			"Exit code: 0 all passed, 1 something failed, 2 the endpoint could not be probed.",
		Example: "  mcpdoctor probe http://127.0.0.1:8000/mcp\n  mcpdoctor probe http://127.0.0.1:8000/mcp --sessions 2000\n  mcpdoctor probe https://mcp.example/mcp --header \"Authorization: Bearer $TOKEN\" --json",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, args []string) error { return o.run(ctx, w, args[0]) })
	o.flags(c, "print the result as JSON", "print every request with its answer, and every process")
	f := c.Flags()
	f.IntVar(&o.sessions, "sessions", o.sessions, "number of sessions to open and drop; memory is judged from "+fmt.Sprint(facts.LeastForMemory)+" on")
	f.Var(&o.headers, "header", "send the header `NAME:VALUE` with every request; never shown (repeatable)")
	f.Var(&o.timeout, "timeout", "limit for all requests; deleting the sessions may take "+format.Age(endpoint.CleanupTime)+" more")
	c.ValidArgsFunction = cobra.NoFileCompletions
	return c
}

// texts is a repeatable flag. It is checked later, because an error of the flag would show its value, which may be
// a secret.
type texts []string

func (t *texts) String() string     { return "" }
func (t *texts) Type() string       { return "text" }
func (t *texts) Set(s string) error { *t = append(*t, s); return nil }

func (o *probeOptions) run(ctx context.Context, w *world, address string) error {
	at, err := endpointURL(address)
	if err != nil {
		return err
	}
	header, err := endpointHeader(o.headers)
	if err != nil {
		return err
	}
	switch {
	case o.sessions < 0 || o.sessions > mostSessions:
		return &problem{what: fmt.Sprintf("--sessions is %d", o.sessions), hint: fmt.Sprintf("it must be from 0 to %d", mostSessions)}
	case o.timeout.Duration < time.Second:
		return &problem{what: "--timeout is shorter than a second", hint: "it must be at least 1s"}
	}
	fmt.Fprintf(w.err, "mcpdoctor: probing for up to %s, and %s to clean up\n", format.Age(o.timeout.Duration), format.Age(endpoint.CleanupTime))
	w.finish.Store(true) // to delete its sessions
	e, err := endpoint.Probe(ctx, endpoint.Options{
		URL: at, Header: header, Sessions: o.sessions, Timeout: o.timeout.Duration, Settling: look.ConfirmAfter, Now: w.now, Proxy: http.ProxyFromEnvironment,
	})
	if ctx.Err() != nil {
		return &problem{what: "interrupted", hint: "opened sessions have been deleted, if the server did that within " + format.Age(endpoint.CleanupTime)}
	}
	if err != nil {
		return unaskable(at, err)
	}
	r := diagnose.Endpoint(e, w.now())
	r.Tool = rules.Tool{Name: "mcpdoctor", Version: version()}
	if err := printResult(w, o.output, "result", r, report.EndpointJSON, report.EndpointText); err != nil {
		return err
	}
	if r.Fails() {
		return errFound
	}
	return nil
}

// endpointURL parses the address. Errors do not repeat it: it may have a password.
func endpointURL(address string) (*url.URL, error) {
	const hint = "example: http://127.0.0.1:8000/mcp"
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, &problem{what: "the URL is not valid", hint: hint}
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, &problem{what: "the URL does not begin with http:// or https://", hint: hint}
	case u.Hostname() == "":
		return nil, &problem{what: "the URL has no host", hint: hint}
	}
	return u, nil
}

// ownHeaders are set by the probe itself.
var ownHeaders = []string{"Accept", "Connection", "Content-Length", "Content-Type", "Mcp-Method", "Mcp-Protocol-Version", "Mcp-Session-Id", "Transfer-Encoding"}

// endpointHeader parses headers. Errors do not repeat their values.
func endpointHeader(lines []string) (http.Header, error) {
	header := http.Header{}
	for i, line := range lines {
		const hint = "example: --header 'Authorization: Bearer TOKEN'"
		which := "--header"
		if len(lines) > 1 {
			which = fmt.Sprintf("--header number %d", i+1)
		}
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case !ok:
			return nil, &problem{what: which + " has no colon after its name", hint: hint}
		case name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isToken(r) }):
			return nil, &problem{what: which + " has no valid name before its colon", hint: hint}
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return nil, &problem{what: which + " has a control character in its value", hint: hint}
		case slices.Contains(ownHeaders, http.CanonicalHeaderKey(name)):
			return nil, &problem{what: which + " is " + http.CanonicalHeaderKey(name) + ", which the probe sets itself", hint: "leave it out"}
		}
		header.Add(name, value)
	}
	return header, nil
}

// isToken reports whether a header's name may have this character (RFC 9110, 5.6.2).
func isToken(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// unaskable explains why an endpoint could not be probed, and what to do.
func unaskable(at *url.URL, err error) error {
	p := &problem{what: "cannot probe " + at.Host + ": " + report.Redact(err.Error()), hint: "see mcpdoctor probe --help"}
	var u *facts.Unaskable
	if !errors.As(err, &u) {
		return p
	}
	if hint := unaskableHints[u.Reason]; hint != "" {
		p.hint = hint
	}
	return p
}

// unaskableHints say for each reason what to do.
var unaskableHints = map[facts.Reason]string{
	facts.NoAnswer:  "check that the server runs, and its host and port",
	facts.Silent:    "see the server's log: it accepted the connection and did not answer",
	facts.Hasty:     "--timeout 2m allows " + format.Age(facts.Patience) + " for one answer",
	facts.Closed:    "see the server's log; if it needs TLS, use https://",
	facts.NoTrust:   "use the host name of its certificate, and trust its issuer (SSL_CERT_FILE names a file of issuers)",
	facts.PlainHTTP: "use http:// instead of https://",
	facts.WantsTLS:  "use https:// instead of http://",
	facts.NoHTTP:    "check that an HTTP server listens on that port",
	facts.NoAccess:  "give the credentials: --header 'Authorization: Bearer TOKEN'",
	facts.BadAccess: "check that the value of --header is complete, not expired, and meant for this server",
	facts.Forbidden: "give credentials with --header, or use another host name: some servers accept only the Host and Origin they know",
	facts.Busy:      "wait a while, and use fewer --sessions",
	facts.Broken:    "see the server's log, and check that the URL is that of the MCP endpoint",
	facts.OtherHost: "if you trust that address, use it as the URL",
	facts.NoMCP:     "use the URL of the MCP endpoint itself, which often ends in /mcp or /sse",
	facts.NoTime:    "--timeout 5m allows more time",
}
