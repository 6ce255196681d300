package configured_test

import (
	"fmt"
	"strings"
	"testing"

	"mcpdoctor/rules"
	"mcpdoctor/rules/configured"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/config"
)

// advised returns the advice about entries, one line each.
func advised(t *testing.T, s *scan.Snapshot, servers ...config.Server) string {
	t.Helper()
	if s == nil {
		s = configuredTable("linux", configuredProc{1, 0, "init", ""})
	}
	seen := process.Recognise(s)
	configured := configured.Attribute(seen, config.Found{Home: "/home/me", Servers: servers}, nil)
	var out []string
	for _, a := range configured.Report().Advice {
		if a.Severity != rules.Info || a.Title == "" || a.Why == "" || a.Remedy == "" {
			t.Errorf("incomplete advice %+v", a)
		}
		for _, item := range a.Items {
			line := a.Topic + ": " + item.Server + " of " + strings.Join(item.Clients, ", ")
			if item.Note != "" {
				line += "; " + item.Note
			}
			for _, c := range item.Commands {
				line += "; run " + c
			}
			if item.Entry != nil {
				line += fmt.Sprintf("; start %s %q", item.Entry.Command, item.Entry.Args)
			}
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func TestAdvice(t *testing.T) {
	for _, c := range []struct{ entry, want string }{
		// Wrappers.
		{"npx|-y|notes-tool@1.2.0|a", "wrapper: x of Cursor; run npm install --global notes-tool@1.2.0"},
		{"npx|-y|notes-tool@latest", "wrapper: x of Cursor; run npm install --global notes-tool"},
		{"cmd|/c|npx|-y|notes-tool", "wrapper: x of Cursor; run npm install --global notes-tool"},
		{"uvx|notes-tool|--vault|a", `wrapper: x of Cursor; run uv tool install notes-tool; start notes-tool ["--vault" "a"]`},
		{"uvx|notes-tool==1.2", `wrapper: x of Cursor; run uv tool install notes-tool==1.2; start notes-tool []`},
		{"uvx|--from|git+https://example.com/notes@v2|notes-tool|a", `wrapper: x of Cursor; run uv tool install git+https://example.com/notes@v2; start notes-tool ["a"]`},
		{"uv|--directory|/srv/notes|run|server.py|a", `wrapper: x of Cursor; start the script with the project's own interpreter, .venv/bin/python; ` +
			`run uv sync --directory /srv/notes; start /srv/notes/.venv/bin/python ["/srv/notes/server.py" "a"]`},
		{"uv|run|server.py", `wrapper: x of Cursor; start the script with the project's own interpreter, .venv/bin/python`},
		{"sh|-c|node /srv/notes/index.js 'a b'", `wrapper: x of Cursor; no shell is needed; start node ["/srv/notes/index.js" "a b"]`},
		{"bash|-c|cd /srv/notes && node index.js", `wrapper: x of Cursor; put exec before the last command of the line, so that the program replaces the shell`},
		{"sh|-c|exec node /srv/notes/index.js", ""},
		{"bash|-lc|node /srv/notes/index.js", `wrapper: x of Cursor; put exec before the last command of the line, so that the program replaces the shell`},
		{"sh|-c|node ~/notes/index.js", `wrapper: x of Cursor; put exec before the last command of the line, so that the program replaces the shell`},
		{"sh|-c|source /srv/notes/env", ""},
		{"bash|/opt/deploy.sh", ""},
		{"bash|-e|/opt/notes.sh", ""},
		{"sh|/srv/notes/run|a", ""},
		{"/bin/zsh|-l|/srv/notes/run", ""},
		{`cmd|/c|C:/notes/run.cmd`, ""},
		{`powershell|-File|C:/notes/run.ps1`, ""},
		{"sh|-c|npx -y notes-tool", "wrapper: x of Cursor; run npm install --global notes-tool"},
		{"npx|-y|${PACKAGE}", ""},

		// None: they become what they start, or are needed.
		{"node|/srv/notes/index.js", ""},
		{"env|A=b|node|/srv/notes/index.js", ""},
		{"docker|run|-i|--rm|acme/notes", ""},
		{"notes-server", ""},

		// supergateway.
		{"node|/opt/supergateway/dist/index.js|--stdio|notes-server|--outputTransport|streamableHttp", "gateway: x of Cursor; --stateful --sessionTimeout 600000 prevents it as well"},
		{"node|/opt/supergateway/dist/index.js|--stdio|notes-server|--stateful", "gateway: x of Cursor; --sessionTimeout is missing: 600000 is ten minutes"},
		{"node|/opt/supergateway/dist/index.js|--stdio|notes-server|--stateful|--sessionTimeout|60000", ""},
		{"node|/opt/supergateway/dist/index.js|--sse|https://example.com/sse", ""},
		{"npx|-y|supergateway@3.4.3|--stdio|notes-server", "gateway: x of Cursor; --stateful --sessionTimeout 600000 prevents it as well\nwrapper: x of Cursor; run npm install --global supergateway@3.4.3"},
		{"npx|-y|supergateway@4.0.0|--stdio|notes-server", "wrapper: x of Cursor; run npm install --global supergateway@4.0.0"},
	} {
		words := strings.Split(c.entry, "|")
		s := config.Server{Client: "Cursor", Name: "x", Transport: config.Stdio, Command: words[0], Args: words[1:]}
		if got := advised(t, nil, s); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.entry, got, c.want)
		}
		if s.Disabled = true; advised(t, nil, s) != "" {
			t.Errorf("%s: advice about a disabled server", c.entry)
		}
	}
}

func TestAdviceURLs(t *testing.T) {
	for _, c := range []struct {
		transport config.Transport
		url, want string
	}{
		{config.HTTP, "https://example.com/mcp", ""},
		{config.SSE, "https://example.com/sse", "sse: x of Cursor; perhaps https://example.com/mcp"},
		{config.SSE, "https://example.com/mcp/sse/", "sse: x of Cursor; perhaps https://example.com/mcp"},
		{config.SSE, "https://example.com/events", "sse: x of Cursor"},
		{config.SSE, "https://example.com/sse?key=abc", "sse: x of Cursor"},
		{config.SSE, "https://me:abc@example.com/sse", "sse: x of Cursor"},
		{config.SSE, ":// no url", "sse: x of Cursor"},
	} {
		if got := advised(t, nil, config.Server{Client: "Cursor", Name: "x", Transport: c.transport, URL: c.url}); got != c.want {
			t.Errorf("%s: got %s, want %s", c.url, got, c.want)
		}
	}
}

// TestAdviceShared has one server in several clients, and counts its copies.
func TestAdviceShared(t *testing.T) {
	s := configuredTable("linux", configuredProc{1, 0, "init", ""}, configuredProc{10, 1, "claude", ""}, configuredProc{11, 1, "codex", ""},
		configuredProc{20, 10, "notes-server|--vault|a", ""}, configuredProc{21, 11, "notes-server|--vault|a", ""})
	entry := func(client, vault string) config.Server {
		return config.Server{Client: client, Name: "notes", Transport: config.Stdio, Command: "notes-server", Args: []string{"--vault", vault}}
	}
	const run = "; run npx -y supergateway@4 --stdio 'notes-server --vault a' --outputTransport streamableHttp --stateful --sessionTimeout 600000 --port 8000"
	if got, want := advised(t, s, entry("Claude Code", "a"), entry("Codex", "a"), entry("Cursor", "b")), "shared: notes of Claude Code, Codex; 2 copies are running"+run; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := advised(t, s, entry("Codex", "a"), entry("Codex", "a"), entry("Cursor", "b")); got != "" {
		t.Errorf("two entries of one client: %s", got)
	}
	// The same words in another folder are another server.
	in := func(client, folder string) config.Server {
		return config.Server{Client: client, Name: "x", Transport: config.Stdio, Command: "python", Args: []string{"server.py"}, CWD: folder}
	}
	if got := advised(t, nil, in("Codex", "/srv/a"), in("Cursor", "/srv/b")); got != "" {
		t.Errorf("servers of two folders: %s", got)
	}
	// A word with spaces may be a secret, which could not be redacted in a line.
	got := advised(t, nil, entry("Codex", "pass word"), entry("Cursor", "pass word"))
	if got != "shared: notes of Codex, Cursor" {
		t.Errorf("got %s", got)
	}
}

// TestInstances counts the instances of each entry: those below its own client, if that is known.
func TestInstances(t *testing.T) {
	s := configuredTable("linux", configuredProc{1, 0, "init", ""}, configuredProc{10, 1, "claude", ""}, configuredProc{11, 1, "codex", ""},
		configuredProc{20, 10, "notes-server|a", ""}, configuredProc{21, 11, "notes-server|a", ""}, configuredProc{22, 11, "notes-server|a", ""},
		configuredProc{23, 1, "notes-server|a", ""}, configuredProc{24, 1, "notes-server|b", ""}, configuredProc{30, 1, "npm exec supergateway --stdio notes-server --port 8000", ""})
	s.Processes[len(s.Processes)-1].Listen = []string{"tcp:127.0.0.1:8000"}
	seen := process.Recognise(s)
	configured := configured.Attribute(seen, config.Found{Servers: []config.Server{
		{Client: "Claude Code", Name: "notes", Transport: config.Stdio, Command: "notes-server", Args: []string{"a"}},
		{Client: "Codex", Name: "notes", Transport: config.Stdio, Command: "notes-server", Args: []string{"a"}},
		{Client: "Cursor", Name: "unused", Transport: config.Stdio, Command: "notes-server", Args: []string{"c"}},
		{Client: "Cursor", Name: "gateway", Transport: config.HTTP, URL: "http://localhost:8000/mcp"},
		{Client: "Cursor", Name: "elsewhere", Transport: config.HTTP, URL: "http://example.com:8000/mcp"},
	}}, nil)
	var got []string
	for _, c := range configured.Report().Servers {
		got = append(got, fmt.Sprint(c.Client, " ", c.Name, " ", c.Instances, " ", c.PIDs))
	}
	// The one without a client may be of either.
	want := "Claude Code notes 2 [20 23]\nCodex notes 3 [21 22 23]\nCursor unused 0 []\nCursor gateway 1 [30]\nCursor elsewhere 0 []"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}
