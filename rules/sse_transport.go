package rules

import "mcpdoctor/rules/catalog"

var _ = register(Rule{
	ID:       "sse-transport",
	Order:    100,
	Title:    "an endpoint speaks the deprecated HTTP+SSE transport, whose sessions end with the connection",
	Severity: Warning,
	Reap:     "nothing: `probe` finds it, and the server has to change",
	Probe:    true,
	Why: "In the transport of 2024-11-05 a client opens a stream with GET and POSTs its requests to an address that the " +
		"stream names. The session lives as long as the stream, in the memory of one process: every restart, deployment and " +
		"proxy time-out ends it. Clients reopen the stream by themselves, but nothing makes them initialize again: they wait " +
		"for answers that never come, or get \"request before initialization was complete\" (-32602). Streamable HTTP " +
		"replaced it in 2025-03-26; revision 2026-07-28 calls it deprecated.",
	Evidence: []string{
		"POST of initialize is refused, and GET opens a stream whose first event is \"endpoint\"",
		"the answer to a POST to the session of a closed stream: 404 informs the client, 202 or silence does not",
	},
	Wrong: []string{
		"the server also speaks Streamable HTTP at another path: probe tests only the URL that it is given",
		"clients that notice the end of their stream and initialize again are not stranded",
	},
	Remedy: []string{
		RemedyStreamableHTTP,
		RemedyRefuseDead,
		catalog.Supergateway.Remedies.SSE,
	},
})

const (
	RemedyStreamableHTTP = "serve Streamable HTTP beside /sse and give clients its URL (FastMCP transport=\"http\", TypeScript " +
		"SDK StreamableHTTPServerTransport); then retire /sse"
	RemedyRefuseDead = "until then, answer a POST to an unknown session with 404, never with 202"
)
