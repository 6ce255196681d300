package catalog

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func gateway(t *testing.T, name string) *Gateway {
	t.Helper()
	for _, g := range AllGateways() {
		if g.Name == name {
			return g
		}
	}
	t.Fatalf("no gateway %s", name)
	return nil
}

func TestTargets(t *testing.T) {
	tried := map[string]bool{}
	for _, c := range []struct {
		gateway string
		args    []string
		want    []string // words with | between them, lines without
	}{
		{"supergateway", []string{"--stdio", "node server.mjs", "--port", "8080"}, []string{"node server.mjs"}},
		{"supergateway", []string{"--stdio", "bun", "my-mcp-server.js", "--port", "8080"}, []string{"bun my-mcp-server.js"}},
		{"supergateway", []string{"--stdio", "npx", "-y", "foo-mcp", "--keep", "--stateful"}, []string{"npx -y foo-mcp --keep"}},
		{"supergateway", []string{"--stdio", "npx", "foo-mcp", "--port=1"}, []string{"npx foo-mcp"}},
		{"supergateway", []string{"--stdio=node x.js"}, []string{"node x.js"}},
		{"supergateway", nil, nil},
		{"supergateway", []string{"--stdio"}, nil},
		{"supergateway", []string{"--stdio", "--port", "80"}, nil},
		{"mcp-proxy", []string{"--port", "8080", "uvx", "mcp-server-fetch", "--x", "a b"}, []string{"uvx|mcp-server-fetch|--x|a b"}},
		{"mcp-proxy", []string{"--port=8080", "-e", "A", "b", "--", "uvx", "foo"}, []string{"uvx|foo"}},
		{"mcp-proxy", []string{"--named-server", "a", "uvx x-mcp", "--named-server", "b", "npx y-mcp"}, []string{"uvx x-mcp", "npx y-mcp"}},
		{"mcp-proxy", []string{"--named-server", "a", "uvx x-mcp", "--", "uvx", "y-mcp"}, []string{"uvx x-mcp", "uvx|y-mcp"}},
		{"mcp-proxy", []string{"https://example.com/sse"}, nil},
		{"mcp-proxy", []string{"--config", "/config/config.json"}, nil},
		{"mcp-proxy", []string{"-config", "https://example.com/config.json"}, nil},
		{"mcpo", []string{"--port", "8000", "--api-key", "x", "--", "uvx", "mcp-server-time", "--tz=UTC"}, []string{"uvx|mcp-server-time|--tz=UTC"}},
		{"mcpo", []string{"--port", "8000", "uvx", "mcp-server-time"}, []string{"uvx|mcp-server-time"}},
		{"mcpo", []string{"--config", "x.json"}, nil},
		{"MCP Inspector", []string{"node", "build/index.js"}, []string{"node|build/index.js"}},
		{"MCP Inspector", []string{"-e", "A=b", "node", "build/index.js"}, []string{"node|build/index.js"}},
		{"MCP Inspector", []string{"--command", "node", "--args", "build/index.js"}, []string{"node build/index.js"}},
		{"docker mcp gateway", []string{"mcp", "gateway", "run"}, nil},
		{"mcp-hub", []string{"--", "x-mcp"}, []string{"x-mcp"}},
		{"mcp-hub", []string{"--"}, nil},
	} {
		tried[c.gateway] = true
		var got []string
		for _, target := range gateway(t, c.gateway).Targets(c.args) {
			got = append(got, target.Line+strings.Join(target.Words, "|"))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %q: %q, want %q", c.gateway, c.args, got, c.want)
		}
	}
	for _, g := range AllGateways() {
		if g.targets != nil && !tried[g.Name] {
			t.Errorf("what %s starts is not tried here", g.Name)
		}
	}
}

func TestMode(t *testing.T) {
	const http = "--stdio x --outputTransport streamableHttp"
	for _, c := range []struct {
		gateway, args, version string

		perRequest   bool
		idle, proved time.Duration
		neverEnds    bool
		missing      string
	}{
		{"supergateway", "", "3.4.3", false, time.Minute, 0, false, ""},
		{"supergateway", "--stdio x", "3.4.3", false, SessionAge, 0, false, "--stateful --sessionTimeout"},
		{"supergateway", http, "", true, RequestAge, SessionAge, false, "--stateful --sessionTimeout"},
		{"supergateway", http, "3.4.3", true, RequestAge, RequestAge, false, "--stateful --sessionTimeout"},
		{"supergateway", http, "4.0.0", true, SessionAge, 0, false, ""},
		{"supergateway", http + " --stateful", "3.4.3", false, SessionAge, 0, true, "--sessionTimeout"},
		{"supergateway", http + " --stateful", "4.0.0", false, SessionAge, 0, false, ""},
		{"supergateway", http + " --stateful", "", false, SessionAge, 0, false, "--sessionTimeout"},
		{"supergateway", http + " --stateful --sessionTimeout 60000", "3.4.3", false, SessionAge, 0, false, ""},
		{"supergateway", http + " --stateful --sessionTimeout 3600000", "3.4.3", false, 2 * time.Hour, 0, false, ""},
		{"docker mcp gateway", "mcp gateway run", "", true, RequestAge, 0, false, ""},
		{"docker mcp gateway", "mcp gateway run --long-lived", "", false, SessionAge, 0, false, ""},
		{"mcp-proxy", "--port 80 -- x-mcp", "", false, SessionAge, 0, false, ""},
	} {
		m := gateway(t, c.gateway).Mode(Run{Args: strings.Fields(c.args), Version: c.version})
		missing := strings.Join(m.Missing, " ")
		if m.PerRequest != c.perRequest || m.Idle != c.idle || m.Proved != c.proved || m.NeverEnds != c.neverEnds || missing != c.missing {
			t.Errorf("%s %s (%s): %+v", c.gateway, c.args, c.version, m)
		}
		if m.AtLeast < 2 || m.Why == "" || m.Remedy == "" {
			t.Errorf("%s %s (%s) is incomplete: %+v", c.gateway, c.args, c.version, m)
		}
	}
}

func TestTransport(t *testing.T) {
	const http = "--stdio x --outputTransport streamableHttp"
	for _, c := range []struct{ gateway, runtime, args, version, want string }{
		{"supergateway", "node", http, "", "Streamable HTTP, stateless: a server for each request"},
		{"supergateway", "node", http, "3.4.3", "Streamable HTTP, stateless: a server for each request, which it never ends"},
		{"supergateway", "node", http + " --stateful", "", "Streamable HTTP, stateful: a server for each session, without --sessionTimeout"},
		{"supergateway", "node", http + " --stateful", "3.4.3", "Streamable HTTP, stateful: a server for each session, kept for ever"},
		{"supergateway", "node", http + " --stateful", "4.0.0", "Streamable HTTP, stateful: a server for each session, kept for 30 minutes"},
		{"supergateway", "node", http + " --stateful --sessionTimeout 600000", "", "Streamable HTTP, stateful: a server for each session, ended when it is idle for 10 min"},
		{"supergateway", "node", "--stdio x", "", "HTTP+SSE, deprecated, one server for all clients"},
		{"supergateway", "node", "--stdio x --outputTransport ws", "", "WebSocket, one server for all clients"},
		{"supergateway", "node", "", "", ""},
		{"mcp-proxy", "python", "--port 80 x-mcp", "", "Streamable HTTP and HTTP+SSE, one server for all clients"},
		{"mcp-proxy", "python", "--port 80 --stateless x-mcp", "", "Streamable HTTP and HTTP+SSE, one server for all clients, stateless"},
		{"mcp-proxy", "node", "--port 80 x-mcp", "", ""},
		{"mcpo", "python", "--port 80 -- x-mcp", "", ""},
	} {
		if got := gateway(t, c.gateway).Transport(Run{Args: strings.Fields(c.args), Runtime: c.runtime, Version: c.version}); got != c.want {
			t.Errorf("%s %s (%s): %q, want %q", c.gateway, c.args, c.version, got, c.want)
		}
	}
}

func TestNonInteractive(t *testing.T) {
	codex, claude := clientNamed(t, "Codex"), clientNamed(t, "Claude Code")
	for _, c := range []struct {
		client *Client
		args   string
		want   bool
	}{
		{claude, "", false},
		{claude, "-p hello", true},
		{claude, "--output-format=json", true},
		{claude, "--resume -- -p", false},
		{codex, "exec hello", true},
		{codex, "app-server", true},
		{codex, "-p profile", false},
		{codex, "resume exec", false},
		{clientNamed(t, "opencode"), "run hello", true},
		{clientNamed(t, "opencode"), "serve", false},
	} {
		if got := c.client.NonInteractive(strings.Fields(c.args)); got != c.want {
			t.Errorf("%s %s: %v", c.client.Name, c.args, got)
		}
	}
}

func clientNamed(t *testing.T, name string) *Client {
	t.Helper()
	for _, rows := range Load().Programs {
		for _, p := range rows {
			if p.Client != nil && p.Client.Name == name {
				return p.Client
			}
		}
	}
	t.Fatalf("no client %s", name)
	return nil
}

func TestGatewaysAreWhole(t *testing.T) {
	recognised := map[*Gateway]bool{}
	for _, rows := range Load().Programs {
		for _, p := range rows {
			recognised[p.Gateway] = true
		}
	}
	var names []string
	for _, g := range AllGateways() {
		names = append(names, g.Name)
		if !recognised[g] {
			t.Errorf("%s has no program", g.Name)
		}
	}
	if n := len(names); len(slices.Compact(names)) != n {
		t.Error("a gateway is there twice")
	}
}
