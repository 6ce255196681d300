package process

import (
	"strings"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
)

// Run is what a gateway's manners are read from.
func (rec *Recognition) Run(version string) catalog.Run {
	return catalog.Run{Args: rec.Command.Args, Runtime: rec.Command.Runtime, Version: version}
}

// Targets returns the commands that a gateway was told to start, as far as its command line says.
func (rec *Recognition) Targets(os string) []command.Command {
	var out []command.Command
	for _, t := range rec.Gateway.Targets(rec.Command.Args) {
		out = append(out, command.Target(t, os))
	}
	return out
}

// transports are the values of `--transport` and the like, in lower case and without hyphens.
var transports = map[string]string{
	"streamablehttp": "Streamable HTTP", "streamable": "Streamable HTTP", "streaming": "Streamable HTTP", "http": "Streamable HTTP",
	"sse": "HTTP+SSE, deprecated", "ws": "WebSocket", "websocket": "WebSocket",
}

// ServingMode is the transport that a gateway or server offers, and what a session is to it; empty when its command
// line does not say, or when it is stdio.
func ServingMode(rec Recognition, version string) string {
	if words := rec.Gateway.Transport(rec.Run(version)); words != "" {
		return words
	}
	if rec.Role != RoleGateway && rec.Role != RoleServer {
		return ""
	}
	args := catalog.Args(rec.Command.Args)
	words := ""
	for _, flag := range []string{"--transport", "--outputTransport", "-t"} {
		if value, ok := args.Flag(flag); ok && words == "" {
			words = transports[fold(value)]
		}
	}
	switch {
	case words != "":
	case len(args) > 0 && args[0] != "" && args[0][0] != '-' && transports[fold(args[0])] != "": // mcp-server-everything streamableHttp
		words = transports[fold(args[0])]
	case rec.Name == "@playwright/mcp" && args.Has("--port"):
		words = "Streamable HTTP and HTTP+SSE"
	default:
		return ""
	}
	if args.Has("--stateless") || args.Has("--stateless-http") {
		words += ", stateless"
	}
	return words
}

// fold makes one word of the ways in which a transport is written.
func fold(word string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(word))
}
