package catalog

// plain are the gateways that are only known by their names. One of which more is known has a file of its own.
var plain = []Gateway{
	{Name: "1mcp", Programs: `
		1mcp
		@1mcp/agent  -  --version, --help`},
	{Name: "agentgateway", Programs: "agentgateway"},
	{Name: "ContextForge", Programs: "mcp-context-forge, mcpgateway"},
	{Name: "director", Programs: "@director.run/cli  serve"},
	{Name: "fastmcp", Programs: "fastmcp  dev, run http*, inspector"},
	{Name: "hypertool", Programs: "@hypertool/cli  run"},
	{Name: "magg", Programs: "magg  serve, --http"},
	{Name: "mcp-bridge", Programs: "mcp-bridge"},
	{Name: "mcp-compose", Programs: "mcp-compose  up, serve"},
	{Name: "mcp-gateway", Programs: "mcp-gateway  -  --version, --help"},
	{Name: "mcp-hub", Programs: "mcp-hub  -  --version, --help", ConfigFlags: []string{"--config", "-c"}},
	{Name: "mcp-superassistant-proxy", Programs: "@srbhptl39/mcp-superassistant-proxy, mcp-superassistant-proxy"},
	{Name: "mcphub", Programs: "@samanhappy/mcphub, mcphub"},
	{Name: "MCPJungle", Programs: "mcpjungle  start"},
	{Name: "MetaMCP", Programs: "metamcp"},
	{Name: "nanobot", Programs: "nanobot  run"},
	{Name: "plugged.in", Programs: "plugged.in"},
	{Name: "ToolHive", Programs: `
		thv  proxy, serve, restart, run
		thv-proxyrunner`},
}
