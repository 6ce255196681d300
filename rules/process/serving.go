package process

import (
	"mcpdoctor/rules/command"
	"mcpdoctor/rules/format"
	"strconv"
	"strings"
	"time"
)

// How a gateway or a server is reached, as far as its command line tells.

// transports are the words of `--transport` and the like, in lower case and without hyphens.
var transports = map[string]string{
	"streamablehttp": "Streamable HTTP", "streamable": "Streamable HTTP", "streaming": "Streamable HTTP", "http": "Streamable HTTP",
	"sse": "HTTP+SSE, deprecated", "ws": "WebSocket", "websocket": "WebSocket",
}

// servingMode is the transport that a gateway or server offers, and what a session is to it; empty when
// its command line does not say, or when it is stdio.
func ServingMode(rec Recognition, version string) string {
	c := rec.Command
	if command.Canonical(c.Program) == "supergateway" {
		return supergatewayServing(c, version)
	}
	if rec.Role != RoleGateway && rec.Role != RoleServer {
		return ""
	}
	words := ""
	for _, flag := range []string{"--transport", "--outputTransport", "-t"} {
		if value, ok := c.Flag(flag); ok && words == "" {
			words = transports[fold(value)]
		}
	}
	switch {
	case words != "":
	case len(c.Args) > 0 && !strings.HasPrefix(c.Args[0], "-") && transports[fold(c.Args[0])] != "": // mcp-server-everything streamableHttp
		words = transports[fold(c.Args[0])]
	case rec.Name == "@playwright/mcp" && withFlag(c, "--port"):
		words = "Streamable HTTP and HTTP+SSE"
	case rec.Name == "mcp-proxy" && c.Runtime == "python" && withFlag(c, "--port"):
		words = "Streamable HTTP and HTTP+SSE, one server for all clients"
	default:
		return ""
	}
	if withFlag(c, "--stateless") || withFlag(c, "--stateless-http") {
		words += ", stateless"
	}
	return words
}

// supergatewayServing reads the flags of supergateway, whose defaults were read in its source.
func supergatewayServing(c command.Command, version string) string {
	if len(c.Args) == 0 {
		return "" // cut by pm2
	}
	if !withFlag(c, "--stdio") {
		return "" // stdio in front of a URL
	}
	transport, _ := c.Flag("--outputTransport")
	timeout, timed := c.Flag("--sessionTimeout")
	switch {
	case fold(transport) == "ws":
		return "WebSocket, one server for all clients"
	case fold(transport) != "streamablehttp":
		return "HTTP+SSE, deprecated, one server for all clients"
	case !withFlag(c, "--stateful") && version != "" && Major(version) < 4:
		return "Streamable HTTP, stateless: a server for each request, which it never ends"
	case !withFlag(c, "--stateful"):
		return "Streamable HTTP, stateless: a server for each request"
	case timed && Milliseconds(timeout) > 0:
		return "Streamable HTTP, stateful: a server for each session, ended when it is idle for " + format.Age(Milliseconds(timeout))
	case version == "":
		return "Streamable HTTP, stateful: a server for each session, without --sessionTimeout"
	}
	return "Streamable HTTP, stateful: a server for each session, kept" + ForHowLong(version)
}

func withFlag(c command.Command, flag string) bool {
	_, ok := c.Flag(flag)
	return ok
}

// fold makes one word of the ways in which a transport is written.
func fold(word string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(word))
}

func ForHowLong(version string) string {
	if Major(version) >= 4 {
		return " for 30 minutes"
	}
	return " for ever"
}

func Major(version string) int {
	n, _ := strconv.Atoi(strings.SplitN(version, ".", 2)[0])
	return n
}

func Milliseconds(s string) time.Duration {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > int(24*time.Hour/time.Millisecond) {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}
