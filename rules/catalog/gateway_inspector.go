package catalog

import "strings"

// The inspector starts the server to inspect from a second process of its own, which is given the command as options.
var _ = register(Gateway{
	Name: "MCP Inspector",
	Programs: `
		@modelcontextprotocol/inspector, @modelcontextprotocol/inspector-cli, @modelcontextprotocol/inspector-server
		mcp-inspector, mcp-inspector-server
		mcp  dev`,
	targets: func(a Args) []Target {
		command, ok := a.Flag("--command")
		if !ok {
			return afterOptions(a, inspectorValues)
		}
		args, _ := a.Flag("--args")
		return []Target{{Line: strings.TrimSpace(command + " " + args)}}
	},
})

var inspectorValues = Words("-e --config --server --transport --server-url --header")
