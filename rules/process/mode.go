package process

import (
	"mcpdoctor/rules/command"
	"strings"
)

// What a command line says about the manner in which a program runs.

// speaksHTTP tells that a server was told to serve over the network and not over stdin.
func SpeaksHTTP(c command.Command) bool {
	for _, flag := range []string{"--transport", "--outputTransport", "-t", "--mode"} {
		if v, ok := c.Flag(flag); ok && httpTransport(v) {
			return true
		}
	}
	for _, flag := range []string{"--port", "--http", "--sse", "--http-port", "--streamable-http", "--listen"} {
		if _, ok := c.Flag(flag); ok {
			return true
		}
	}
	for i, a := range c.Args {
		if i < 2 && httpTransport(a) { // `mcp-server-everything streamableHttp`
			return true
		}
	}
	return false
}

func httpTransport(s string) bool {
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s)) {
	case "http", "sse", "streamablehttp", "ws", "websocket", "shttp":
		return true
	}
	return false
}

// daemon tells that a program was told to stay in the background.
func Daemon(c command.Command) bool {
	for _, flag := range []string{"--daemon", "--daemonize", "--background"} {
		if _, ok := c.Flag(flag); ok {
			return true
		}
	}
	return false
}

// profile returns the folder that a browser was told to keep its profile in.
func Profile(c command.Command) string {
	dir, _ := c.Flag("--user-data-dir")
	return dir
}

// NonInteractive reports whether a client runs without a person in front of it, as its arguments say.
func (in *Instance) NonInteractive() bool {
	tty := in.Main().TTY
	rec := in.Recognition
	return (tty == "" || tty == "-") && rec.By != ByRelation && rec.Client.NonInteractive(rec.Command.Args)
}
