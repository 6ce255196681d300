package process

import (
	"slices"
	"strings"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
)

// What a command line says about the way in which a program runs.

// transports are the values of `--transport` and the like, in lower case and without hyphens.
var transports = map[string]string{
	"streamablehttp": "Streamable HTTP", "streamable": "Streamable HTTP", "streaming": "Streamable HTTP", "http": "Streamable HTTP",
	"shttp": "Streamable HTTP", "sse": "HTTP+SSE, deprecated", "ws": "WebSocket", "websocket": "WebSocket",
}

// transport returns what a word says about the transport to the network; "" when it says nothing.
func transport(word string) string {
	return transports[strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(word))]
}

// transportFlag is the transport that the first of some options names.
func transportFlag(c command.Command, flags ...string) string {
	for _, flag := range flags {
		if value, ok := c.Flag(flag); ok && transport(value) != "" {
			return transport(value)
		}
	}
	return ""
}

// isFlag reports whether a word is an option.
func isFlag(word string) bool { return strings.HasPrefix(word, "-") }

// SpeaksHTTP reports whether a server's command line makes it serve over the network and not over stdin.
func SpeaksHTTP(c command.Command) bool {
	if transportFlag(c, "--transport", "--outputTransport", "-t", "--mode") != "" {
		return true
	}
	hasFlag := catalog.Args(c.Args).Has
	return slices.ContainsFunc([]string{"--port", "--http", "--sse", "--http-port", "--streamable-http", "--listen"}, hasFlag) ||
		// mcp-server-everything streamableHttp
		slices.ContainsFunc(c.Args[:min(2, len(c.Args))], func(a string) bool { return transport(a) != "" })
}

// ServingMode is the transport that a gateway or server offers, and what a session is to it; empty when its command line
// does not say, or when it is stdio.
func ServingMode(rec Recognition, version string) string {
	if known := rec.Gateway.Transport(rec.Run(version)); known != "" {
		return known
	}
	if rec.Role != RoleGateway && rec.Role != RoleServer {
		return ""
	}
	c, args := rec.Command, catalog.Args(rec.Command.Args)
	words := transportFlag(c, "--transport", "--outputTransport", "-t")
	switch {
	case words != "":
	case len(args) > 0 && !isFlag(args[0]) && transport(args[0]) != "":
		words = transport(args[0])
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

// Run is what the catalog reads a gateway's mode from.
func (rec *Recognition) Run(version string) catalog.Run {
	return catalog.Run{Args: rec.Command.Args, Runtime: rec.Command.Runtime, Version: version}
}

// Targets returns the commands that a gateway starts, as far as its command line names them.
func (rec *Recognition) Targets(os string) []command.Command {
	var out []command.Command
	for _, t := range rec.Gateway.Targets(rec.Command.Args) {
		out = append(out, command.Target(t, os))
	}
	return out
}

// ConfigFlags are the options with which a client or gateway names a file with the servers that it starts.
func (rec *Recognition) ConfigFlags() []string {
	switch {
	case rec.Client != nil:
		return rec.Client.ConfigFlags
	case rec.Gateway != nil:
		return rec.Gateway.ConfigFlags
	}
	return nil
}

// Daemon reports whether a program was started to stay in the background.
func Daemon(c command.Command) bool {
	return slices.ContainsFunc([]string{"--daemon", "--daemonize", "--background"}, catalog.Args(c.Args).Has)
}

// Profile returns the folder in which a browser keeps its profile; "" when its command line names none.
func Profile(c command.Command) string {
	dir, _ := c.Flag("--user-data-dir")
	return dir
}
