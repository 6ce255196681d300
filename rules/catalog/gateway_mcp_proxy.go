package catalog

import "strings"

// Three programs are called mcp-proxy: sparfenyuk's in Python, punkpeye's in TypeScript and TBXark's in Go, whose only
// option that matters is --config, a file or a URL. Given a URL as its argument, the first is a stdio server in front
// of that URL.
var _ = register(Gateway{
	Name: "mcp-proxy",
	Programs: `
		@punkpeye/mcp-proxy
		mcp-proxy  --config, -config  --version, --help
		mcp-proxy  -  http*, --version, --help`,
	ConfigFlags: []string{"--named-server-config", "--config", "-config"},
	targets:     proxyTargets,
	transport: func(r Run) string {
		switch {
		case r.Runtime != "python" || !r.Has("--port"):
			return ""
		case r.Has("--stateless"):
			return "Streamable HTTP and HTTP+SSE, one server for all clients, stateless"
		}
		return "Streamable HTTP and HTTP+SSE, one server for all clients"
	},
})

var (
	proxyValues = Words("--port --host --sse-port --sse-host --transport --cwd --allow-origin --named-server-config --client-id --client-secret " +
		"--token-url --log-level --endpoint --server --sseEndpoint --streamEndpoint --apiKey --requestTimeout --sessionIdleTimeout " +
		"--connectionTimeout --config -config")
	proxyPairs = Words("-e --env -H --headers") // two values each
)

func proxyTargets(a Args) (targets []Target) {
	for i := 0; i < len(a); i++ {
		switch arg := a[i]; {
		case arg == "--named-server": // NAME COMMAND
			if i+2 < len(a) {
				targets = append(targets, Target{Line: a[i+2]})
			}
			i += 2
		case proxyPairs[arg]:
			i += 2
		case proxyValues[arg]:
			i++
		case strings.HasPrefix(arg, "-") && arg != "--":
		default:
			return append(targets, afterOptions(a[i:], nil)...)
		}
	}
	return targets
}
