package rules

import "mcpdoctor/rules/catalog"

var _ = register(Rule{
	ID:       "sse-transport",
	Order:    100,
	Title:    "an endpoint speaks the deprecated HTTP+SSE transport, whose sessions die with the connection",
	Severity: Warning,
	Reap:     "nothing: `probe` finds it, and the server has to change",
	Probe:    true,
	Why: "In the transport of 2024-11-05 a client opens a stream with GET and POSTs its requests to an address that the stream named. The session lives as long as the stream, in the memory of one process: " +
		"it dies with every restart, deploy and proxy time-out. Clients open the stream again by themselves, but nothing tells them to initialize again, so that they wait for answers that never come, " +
		"or are told \"request before initialization was complete\" (-32602). Streamable HTTP has replaced it since 2025-03-26; the revision of 2026-07-28 calls it deprecated.",
	Evidence: []string{
		"POST of initialize is refused, and GET opens a stream whose first event is \"endpoint\"",
		"what a POST to a session of a closed stream is answered with: 404 tells the client, 202 and silence do not",
	},
	Wrong: []string{
		"a server that speaks Streamable HTTP at another path as well: probe asks at the one URL that it is given",
		"clients that notice the end of their stream and begin anew with initialize are not stranded",
	},
	Remedy: []string{
		RemedyStreamableHTTP,
		RemedyRefuseDead,
		catalog.Supergateway.Remedies.SSE,
	},
})

const (
	RemedyStreamableHTTP = "serve Streamable HTTP beside the old /sse, and give clients that URL: FastMCP transport=\"http\", the TypeScript SDK's StreamableHTTPServerTransport; then retire /sse"
	RemedyRefuseDead     = "until then answer a POST to a session that is not there with 404, never with 202"
)
