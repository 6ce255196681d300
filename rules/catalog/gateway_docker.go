package catalog

// DockerGateway is the gateway of Docker Desktop, which runs servers in containers.
var DockerGateway = register(Gateway{
	Name:     "docker mcp gateway",
	Remedies: Remedies{Spawn: "docker mcp gateway: update it, so that containers are reused; or start it with --long-lived"},
	Programs: `
		docker, com.docker.cli  mcp gateway run
		docker-mcp  mcp gateway run, gateway run`,
	mode: func(r Run) Mode {
		m := anyMode
		m.Remedy = "update the docker MCP plugin, which uses containers again, and restart the session that started the gateway"
		if !r.Has("--long-lived") {
			m.PerRequest, m.AtLeast, m.Idle = true, 2, RequestAge
			m.Why = "without --long-lived each container is for one call, and should have ended with it"
		}
		return m
	},
})
