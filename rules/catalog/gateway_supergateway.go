package catalog

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpdoctor/rules/format"
)

// Supergateway puts a stdio server behind HTTP, or a URL behind stdio (then it is a server). What its options do was
// read in its source and measured, for 3.4.3 and 4.0.0.
var Supergateway = register(Gateway{
	Name:      "supergateway",
	Programs:  "supergateway  -  --sse, --streamableHttp, --version, --help",
	targets:   func(a Args) []Target { return lineAfter(a, "--stdio", supergatewayOptions) },
	mode:      supergatewayMode,
	transport: supergatewayTransport,
	Advice: &Advice{
		Title: "supergateway keeps servers that are no longer used",
		Why: "before version 4 it starts a server for each request and never terminates it; " +
			"with --stateful it keeps one per session, forever without --sessionTimeout",
		Remedy: "use supergateway@4; with --stateful, add --sessionTimeout",
		Note:   supergatewayNote,
	},
	Remedies: Remedies{
		Spawn: "supergateway 3: add --stateful --sessionTimeout 60000; or update to supergateway 4, " +
			"which terminates each server after its request",
		SSE: "supergateway: --outputTransport streamableHttp instead of sse, and version 4: " +
			"with sse, version 3 exits when a second client opens a stream",
		UnknownSession: "supergateway: version 4 answers an unknown session with 404, version 3 with 400",
		IdleSession:    "supergateway --stateful: add --sessionTimeout 600000, which ends a session that is idle for ten minutes",
	},
})

// ServeHTTP is how a stdio server is put behind Streamable HTTP; %s is its command as one word of shell.
const ServeHTTP = "npx -y supergateway@4 --stdio %s --outputTransport streamableHttp --stateful --sessionTimeout 600000 --port 8000"

var supergatewayOptions = Words("--stdio --sse --streamableHttp --port --baseUrl --ssePath --messagePath --streamableHttpPath --outputTransport " +
	"--logLevel --cors --healthEndpoint --header --oauth2Bearer --stateful --sessionTimeout --protocolVersion")

func supergatewayMode(r Run) Mode {
	m := anyMode
	m.Remedy = "add --stateful --sessionTimeout 60000 to its command line, or update to supergateway 4, which ends each server with its request"
	switch {
	case r.Major() >= 4:
		m.Remedy = "give it a shorter --sessionTimeout"
	case len(r.Args) > 0:
		m.Missing = slices.DeleteFunc([]string{"--stateful", "--sessionTimeout"}, r.Has)
	}
	transport, _ := r.Flag("--outputTransport")
	timeout, timed := r.Flag("--sessionTimeout")
	switch {
	case len(r.Args) == 0:
		m.Idle, m.Why = time.Minute, "its own flags cannot be seen (pm2 cuts a command line down to the script)"
	case !strings.EqualFold(transport, "streamableHttp"):
		m.Why = "in this mode one server is for all clients"
	case r.Has("--stateful") && timed:
		m.Idle, m.Why = max(SessionAge, 2*milliseconds(timeout)), "it runs with --stateful --sessionTimeout "+timeout
	case r.Has("--stateful"):
		m.Why = "with --stateful but without --sessionTimeout a session that is not closed is kept" + supergatewayKeeps(r)
		m.NeverEnds = r.Version != "" && r.Major() < 4
	case r.Major() >= 4:
		m.PerRequest, m.AtLeast, m.Why = true, 3, "supergateway 4 keeps a server for 5 minutes at most after its request"
	default:
		m.PerRequest, m.AtLeast, m.Idle, m.Proved = true, 2, RequestAge, RequestAge
		m.Why = "without --stateful each server is for one request, and should have ended with it"
		if r.Version == "" { // 4 keeps some servers for five minutes after their request
			m.Proved = SessionAge
		}
	}
	return m
}

func supergatewayTransport(r Run) string {
	if !r.Has("--stdio") { // stdio in front of a URL, or a command line that pm2 cut
		return ""
	}
	transport, _ := r.Flag("--outputTransport")
	timeout, _ := r.Flag("--sessionTimeout")
	const stateless, stateful = "Streamable HTTP, stateless: a server for each request", "Streamable HTTP, stateful: a server for each session, "
	switch {
	case strings.EqualFold(transport, "ws"):
		return "WebSocket, one server for all clients"
	case !strings.EqualFold(transport, "streamableHttp"):
		return "HTTP+SSE, deprecated, one server for all clients"
	case !r.Has("--stateful") && r.Version != "" && r.Major() < 4:
		return stateless + ", which it never ends"
	case !r.Has("--stateful"):
		return stateless
	case milliseconds(timeout) > 0:
		return stateful + "ended when it is idle for " + format.Age(milliseconds(timeout))
	case r.Version == "":
		return stateful + "without --sessionTimeout"
	}
	return stateful + "kept" + supergatewayKeeps(r)
}

// supergatewayKeeps is for how long a session that was not closed is kept without --sessionTimeout.
func supergatewayKeeps(r Run) string {
	if r.Major() >= 4 {
		return " for 30 minutes"
	}
	return " for ever"
}

func supergatewayNote(r Run) string {
	switch {
	case r.Major() >= 4 || !r.Has("--stdio"): // in front of a URL it starts nothing
		return ""
	case !r.Has("--stateful"):
		return "--stateful --sessionTimeout 600000 prevents it as well"
	case !r.Has("--sessionTimeout"):
		return "--sessionTimeout is missing: 600000 is ten minutes"
	}
	return ""
}

// milliseconds reads a duration of at most a day; anything else is 0.
func milliseconds(s string) time.Duration {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > int(24*time.Hour/time.Millisecond) {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}
