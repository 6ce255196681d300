package rules

import "mcpdoctor/rules/catalog"

var _ = register(Rule{
	ID:       "session-retention",
	Order:    90,
	Title:    "an HTTP server keeps its sessions in memory: dropped ones pile up, and a restart loses them all",
	Severity: Warning,
	Reap:     "nothing: `probe` finds it, and the server has to change",
	Probe:    true,
	Why: "A server that hands out an Mcp-Session-Id keeps a transport, a server object and often a process for each session. " +
		"Few clients send DELETE: many open a session for one request and drop it. Without an idle time-out, 7 to 190 KB " +
		"stay for each. A restart loses all sessions: clients initialize again if an old session ID gets 404, as the " +
		"specification demands (Streamable HTTP, \"Session Management\"). With 400, or with 202 and a later error, they stay " +
		"stranded until they are restarted.",
	Evidence: []string{
		"the answer to an unknown session ID: 404, 400 or another",
		"a dropped session that still answers after the settling time",
		"memory that grows by the same amount in two equal rounds of many sessions, after a warm-up",
		"a session that DELETE does not end",
	},
	Wrong: []string{
		"the server drops idle sessions after minutes: probe waits for seconds only, and says how long a session was kept",
		"the garbage collector has not returned memory yet: fewer than a thousand sessions prove nothing",
		"other clients were active at the same time",
	},
	Remedy: []string{
		RemedyNoSessions, RemedyIdleTimeout, Remedy404,
		catalog.Supergateway.Remedies.IdleSession, catalog.Supergateway.Remedies.UnknownSession,
		RemedyTypeScript, RemedyMastra, RemedyFastMCP,
		RemedyLog, RemedyOneMemory, RemedyWithout, RemedyDiscover,
	},
})

// The remedies that diagnose.Endpoint chooses from.
const (
	RemedyNoSessions  = "do not hand out sessions unless you need them"
	RemedyTypeScript  = "TypeScript SDK: create a transport without sessionIdGenerator for each request, and close it afterwards"
	RemedyIdleTimeout = "end sessions after some idle minutes, limit their number (answer 503 beyond it), and honour DELETE"
	Remedy404         = "answer an unknown or ended session ID with 404, so that clients initialize again after a restart"
	RemedyMastra      = "@mastra/mcp: serverless: true instead of sessionIdGenerator"
	RemedyFastMCP     = "FastMCP and the Python SDK: stateless_http=True"
	RemedyLog         = "look in the server's log for what made it exit or hang: clients that come and go must not; limit the " +
		"number of sessions, and answer 503 beyond it"
	RemedyOneMemory = "if several instances share one address, store sessions where all instances see them, or use none: not " +
		"every client keeps a load balancer's cookie"
	RemedyWithout = "serve requests without a session, or hand out an Mcp-Session-Id with initialize and answer 400 to " +
		"requests that lack it"
	RemedyDiscover = "answer initialize, or server/discover as revision 2026-07-28 demands"
)
