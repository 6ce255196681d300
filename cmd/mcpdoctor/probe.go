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
	sessions int
	headers  texts
	timeout  span
	json     bool
	color    choice
	verbose  bool
}

func newProbe(w *world) *cobra.Command {
	o := &probeOptions{
		sessions: usualSessions, timeout: span{usualTimeout},
		color: choice{value: "auto", of: []string{"auto", "always", "never"}},
	}
	c := verb(&cobra.Command{
		Use:   "probe URL",
		Short: "Ask an MCP server over HTTP whether it will leak",
		Long: "probe asks an HTTP endpoint what a client would: what it speaks, what a session is to it, what clients are told after a\n" +
			"restart, whether DELETE ends a session. Then it opens sessions, drops them as connectors do, and looks at what stays. When\n" +
			"the endpoint runs on this machine, its process is found by the port, and its children and memory are measured.\n\n" +
			"It calls no tool. It sends at most two requests for each of the --sessions and " + fmt.Sprint(endpoint.MaxRequests(0)) + " besides, follows redirects on the same\n" +
			"host and port only, and deletes the sessions that it opened. What the server leaks by it, it leaks: a gateway that keeps a process\n" +
			"for each request keeps them for these, too; and what bears one client only ends with the second, as supergateway 3 does when\n" +
			"it serves HTTP+SSE: do not probe that one while it is needed. Memory is judged from --sessions " + fmt.Sprint(facts.LeastForMemory) + " on.\n\n" +
			"Exit code: 0 all well, 1 something failed, 2 it could not be asked.",
		Example: "  mcpdoctor probe http://127.0.0.1:8000/mcp\n  mcpdoctor probe http://127.0.0.1:8000/mcp --sessions 2000\n  mcpdoctor probe https://mcp.example/mcp --header \"Authorization: Bearer $TOKEN\" --json",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, args []string) error { return o.run(ctx, w, args[0]) })
	f := c.Flags()
	f.IntVar(&o.sessions, "sessions", o.sessions, "how many sessions to open and drop; 0 leaves that out")
	f.Var(&o.headers, "header", "send this with every request, as `NAME:VALUE`; it is never shown (may be repeated)")
	f.Var(&o.timeout, "timeout", "how long all questions may take; deleting the sessions may take "+format.Age(endpoint.CleanupTime)+" more")
	f.BoolVar(&o.json, "json", false, "print what was found as JSON")
	f.Var(&o.color, "color", "when to use colour")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print every request with its answer, and every process")
	offer(c, "color", o.color.of)
	c.ValidArgsFunction = cobra.NoFileCompletions
	return c
}

// texts is a flag that may be repeated. It is checked later: an error of the flag itself would show
// what was given, which may be a secret.
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
		return &problem{what: fmt.Sprintf("--sessions is %d", o.sessions), hint: fmt.Sprintf("it is a number from 0 to %d", mostSessions)}
	case o.timeout.Duration < time.Second:
		return &problem{what: "--timeout is shorter than a second", hint: "it is a length of time such as 30s or 5m"}
	}
	fmt.Fprintf(w.err, "mcpdoctor: asking; it takes %s at most, and %s more to clear up\n", format.Age(o.timeout.Duration), format.Age(endpoint.CleanupTime))
	w.finish.Store(true) // sessions that were opened are deleted also after an interrupt
	e, err := endpoint.Probe(ctx, endpoint.Options{
		URL: at, Header: header, Sessions: o.sessions, Timeout: o.timeout.Duration, Settling: look.ConfirmAfter, Now: w.now, Proxy: http.ProxyFromEnvironment,
	})
	if ctx.Err() != nil {
		return &problem{what: "interrupted", hint: "sessions that were opened have been deleted, as far as the server allows it and " + format.Age(endpoint.CleanupTime) + " were enough"}
	}
	if err != nil {
		return unaskable(at, err)
	}
	r := diagnose.Endpoint(e, w.now())
	r.Tool = rules.Tool{Name: "mcpdoctor", Version: version()}
	if o.json {
		err = report.EndpointJSON(w.out, r)
	} else {
		err = report.EndpointText(w.out, r, report.Options{Width: w.width(), Color: w.colour(o.color.value), Verbose: o.verbose})
	}
	if err != nil {
		return fmt.Errorf("cannot write what was found: %w", err)
	}
	if r.Fails() {
		return errFound
	}
	return nil
}

// endpointURL reads the address. It is not repeated in errors, since it may hold a password.
func endpointURL(address string) (*url.URL, error) {
	const hint = "it looks like http://127.0.0.1:8000/mcp"
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, &problem{what: "the URL cannot be read", hint: hint}
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, &problem{what: "the URL does not begin with http:// or https://", hint: hint}
	case u.Hostname() == "":
		return nil, &problem{what: "the URL has no host", hint: hint}
	}
	return u, nil
}

// ownHeaders are those that the questions need for themselves.
var ownHeaders = []string{"Accept", "Connection", "Content-Length", "Content-Type", "Mcp-Method", "Mcp-Protocol-Version", "Mcp-Session-Id", "Transfer-Encoding"}

// endpointHeader reads the headers. Their values are never repeated.
func endpointHeader(lines []string) (http.Header, error) {
	header := http.Header{}
	for i, line := range lines {
		const hint = "it looks like --header 'Authorization: Bearer TOKEN'"
		which := "--header"
		if len(lines) > 1 {
			which = fmt.Sprintf("--header number %d", i+1)
		}
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case !ok:
			return nil, &problem{what: which + " has no colon behind its name", hint: hint}
		case name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isToken(r) }):
			return nil, &problem{what: which + " has no name of letters, digits and hyphens in front of its colon", hint: hint}
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return nil, &problem{what: which + " has a line break or another control character in its value", hint: hint}
		case slices.Contains(ownHeaders, http.CanonicalHeaderKey(name)):
			return nil, &problem{what: which + " is " + http.CanonicalHeaderKey(name) + ", which the questions set themselves", hint: "leave it out"}
		}
		header.Add(name, value)
	}
	return header, nil
}

// isToken tells that a character may stand in the name of a header (RFC 9110, 5.6.2).
func isToken(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// unaskable says why an endpoint could not be asked, and what to do.
func unaskable(at *url.URL, err error) error {
	p := &problem{what: "cannot ask " + at.Host + ": " + report.Redact(err.Error()), hint: "mcpdoctor probe --help shows what it asks"}
	var u *facts.Unaskable
	if !errors.As(err, &u) {
		return p
	}
	if hint := unaskableHints[u.Reason]; hint != "" {
		p.hint = hint
	}
	return p
}

// unaskableHints say for each reason what can be done.
var unaskableHints = map[facts.Reason]string{
	facts.NoAnswer:  "look whether it is running, and whether host and port are right",
	facts.Silent:    "look into the server's log: it took the connection, and left the question unanswered",
	facts.Hasty:     "--timeout 2m gives one answer " + format.Age(facts.Patience),
	facts.Closed:    "look into the server's log; where it wants TLS, begin the URL with https://",
	facts.NoTrust:   "give the URL with the name that its certificate is for, and let this machine trust who issued it (SSL_CERT_FILE names a file of such)",
	facts.PlainHTTP: "begin the URL with http:// instead of https://",
	facts.WantsTLS:  "begin the URL with https:// instead of http://",
	facts.NoHTTP:    "look whether it is an HTTP server that listens at that port",
	facts.NoAccess:  "--header 'Authorization: Bearer TOKEN' sends what it wants to see",
	facts.BadAccess: "look whether the value of --header is complete, not expired, and meant for this server",
	facts.Forbidden: "--header sends what proves who asks, where that is missing; or it minds the name in the URL: some serve only the Host and Origin that they know",
	facts.Busy:      "wait a while, and ask again with fewer --sessions",
	facts.Broken:    "look into the server's log; and whether the URL is that of the MCP endpoint itself",
	facts.OtherHost: "if you trust where it leads, give that URL",
	facts.NoMCP:     "give the URL of the MCP endpoint itself, which often ends in /mcp or /sse",
	facts.NoTime:    "--timeout 5m gives it more time",
}
