package rules

import "mcpdoctor/rules/catalog"

var _ = register(Rule{
	ID:       "session-retention",
	Order:    90,
	Title:    "an HTTP server keeps its sessions in memory: dropped ones pile up, and a restart loses all",
	Severity: Warning,
	Reap:     "nothing: `probe` finds it, and the server has to change",
	Probe:    true,
	Why: "A server that hands out an Mcp-Session-Id keeps a transport, a server object and often a process for each. Clients seldom send DELETE: connectors open a session for one question and drop it, " +
		"so that a server without a time-out keeps 7 to 190 KB for each, for ever. And the sessions are gone when it restarts: clients know that only if it answers their old ID with 404, as the specification " +
		"demands (Streamable HTTP, \"Session Management\"), and then initialize again. With 400, or with 202 and an error later, they stay stranded until somebody restarts them.",
	Evidence: []string{
		"what an unknown session ID is answered with: 404, 400 or something else",
		"a session that was dropped still answers after the settling time",
		"memory that grows by the same amount in two equal rounds of many sessions, after a warm-up",
		"whether DELETE ends a session",
	},
	Wrong: []string{
		"a server that drops idle sessions after minutes: probe waits for seconds only, and says for how long it has seen a session to be kept",
		"memory that a garbage collector has not given back yet: fewer than a thousand sessions prove nothing",
		"other clients that were at work at the same time",
	},
	Remedy: []string{
		RemedyNoSessions, RemedyIdleTimeout, Remedy404, catalog.Supergateway.Remedies.IdleSession, catalog.Supergateway.Remedies.UnknownSession, RemedyTypeScript, RemedyMastra, RemedyFastMCP,
		RemedyLog, RemedyOneMemory, RemedyWithout, RemedyDiscover,
	},
})

// What several findings say, once.
const (
	RemedyNoSessions  = "hand out no sessions where none are needed"
	RemedyTypeScript  = "the TypeScript SDK: a transport without sessionIdGenerator, made for each request and closed with it"
	RemedyIdleTimeout = "end sessions that are idle for some minutes, limit how many there may be (answer 503 beyond), and honour DELETE"
	Remedy404         = "answer an unknown or ended session ID with 404, so that clients initialize again after a restart"
	RemedyMastra      = "@mastra/mcp: serverless: true instead of sessionIdGenerator"
	RemedyFastMCP     = "FastMCP and the Python SDK: stateless_http=True"
	RemedyLog         = "look into the server's log for what ended or blocked it: clients that come and go must not; limit how many sessions there may be, and answer 503 beyond"
	RemedyOneMemory   = "where several instances share one address, keep sessions where all of them see them, or do without sessions: not every client keeps the cookie of a load balancer"
	RemedyWithout     = "without a session serve the request, or hand out an Mcp-Session-Id with initialize and answer 400 to requests that lack it"
	RemedyDiscover    = "answer initialize, or server/discover as revision 2026-07-28 demands"
)
