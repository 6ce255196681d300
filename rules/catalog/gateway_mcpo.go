package catalog

// mcpo serves MCP servers as OpenAPI.
var _ = register(Gateway{
	Name:        "mcpo",
	Programs:    "mcpo  -  --version, --help",
	ConfigFlags: []string{"--config", "-c"},
	targets:     func(a Args) []Target { return afterOptions(a, mcpoValues) },
})

var mcpoValues = Words("--port -p --host -h --api-key -k --env -e --env-path --cors-allow-origins --name -n --description -d --version -v " +
	"--ssl-certfile -t --ssl-keyfile --server-type --type --config -c --header --path-prefix --root-path --log-level")
