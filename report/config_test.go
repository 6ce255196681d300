package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"mcpdoctor/rules"
	"mcpdoctor/rules/configured"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/config"
)

// configuration is a home with a bit of everything, beside the processes that belong to it.
func configuration() *configured.Report {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	proc := func(pid, ppid int, rss int64, args ...string) scan.Process {
		return scan.Process{PID: pid, PPID: ppid, Start: int64(pid), Started: at.Add(-time.Hour), Args: args, RSSBytes: &rss, CWD: "/home/me/src/app"}
	}
	seen := process.Recognise(&scan.Snapshot{Taken: at, Host: scan.Host{OS: "linux"}, Processes: []scan.Process{
		proc(1, 0, 0, "/sbin/init"), proc(70, 1, 400<<20, "claude"), proc(71, 1, 300<<20, "claude"),
		proc(80, 70, 70<<20, "npm exec @playwright/mcp@latest --headless"), proc(81, 80, 90<<20, "node", "/home/me/.npm/_npx/0f/node_modules/.bin/playwright-mcp", "--headless"),
		proc(82, 71, 70<<20, "npm exec @playwright/mcp@latest --headless"), proc(83, 82, 90<<20, "node", "/home/me/.npm/_npx/0f/node_modules/.bin/playwright-mcp", "--headless"),
		proc(90, 70, 40<<20, "python", "server.py"),
	}})
	claude, cursor, project := "/home/me/.claude.json", "/home/me/.cursor/mcp.json", "/home/me/src/app/.mcp.json"
	configured := configured.Attribute(seen, config.Found{
		Home: "/home/me",
		Servers: []config.Server{
			{Client: "Claude Code", Name: "linear", File: claude, Transport: config.SSE, URL: "https://mcp.linear.app/sse"},
			{Client: "Claude Code", Name: "playwright", File: claude, Transport: config.Stdio, Command: "npx", Args: []string{"-y", "@playwright/mcp@latest", "--headless"}},
			{Client: "Claude Code", Name: "db", File: claude, Project: "/home/me/src/shop", Transport: config.Stdio, Command: "uvx", Args: []string{"db-mcp", "postgresql://app:hunter2@localhost/shop"}},
			{Client: "Claude Code", Name: "fixtures", File: project, Project: "/home/me/src/app", Transport: config.Stdio, Command: "python", Args: []string{"server.py"}},
			{Client: "Cursor", Name: "browser", File: cursor, Transport: config.Stdio, Command: "npx", Args: []string{"-y", "@playwright/mcp@latest", "--headless"}},
			{Client: "Cursor", Name: "github", File: cursor, Transport: config.Stdio, Command: "docker", Args: []string{"run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "ghcr.io/github/github-mcp-server"}, Disabled: true},
			{Client: "Cursor", Name: "gateway", File: cursor, Transport: config.Stdio, Command: "npx", Args: []string{"-y", "supergateway", "--stdio", "uvx notes-tool", "--outputTransport", "streamableHttp"}},
		},
		Places: []config.Place{
			{Client: "Claude Code", Path: claude, State: config.Present, Servers: 3},
			{Client: "Cursor", Path: cursor, State: config.Present, Servers: 3},
			{Client: "Codex", Path: "/home/me/.codex/config.toml", State: config.Broken, Reason: "invalid TOML", Line: 12},
			{Client: "Gemini CLI", Path: "/home/me/.gemini/settings.json", State: config.Absent},
			{Client: "Zed", Path: "/home/me/.config/zed/settings.json", State: config.Refused, Reason: "permission denied"},
			{Client: "Claude Code", Path: project, Project: "/home/me/src/app", State: config.Present, Servers: 1},
		},
	}, nil)
	c := configured.Report()
	c.Tool = rules.Tool{Name: "mcpdoctor", Version: "test"}
	return c
}

func TestConfigGolden(t *testing.T) {
	for _, c := range []struct {
		file string
		o    Options
		json bool
	}{
		{file: "pipe.txt"},
		{file: "narrow.txt", o: Options{Width: 80}},
		{file: "verbose.txt", o: Options{Verbose: true}},
		{file: "colour.txt", o: Options{Width: 120, Color: true}},
		{file: "config.json", json: true},
	} {
		t.Run(c.file, func(t *testing.T) {
			var b bytes.Buffer
			err := ConfigText(&b, configuration(), c.o)
			if c.json {
				b.Reset()
				err = ConfigJSON(&b, configuration())
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.String(), "hunter2") {
				t.Error("a password is shown")
			}
			file := filepath.Join("../testdata/config/golden", c.file)
			if *update {
				if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v (go test ./report -run Golden -update writes it)", err)
			}
			if !bytes.Equal(b.Bytes(), want) {
				t.Errorf("got\n%s\nwant %s", b.String(), file)
			}
		})
	}
}

func TestConfigEmpty(t *testing.T) {
	configured := configured.Attribute(process.Recognise(&scan.Snapshot{}), config.Found{}, nil)
	var b bytes.Buffer
	if err := ConfigText(&b, configured.Report(), Options{}); err != nil || b.String() != "No MCP servers are configured. -v lists every file that was looked for.\n" {
		t.Errorf("%v, %q", err, b.String())
	}
	b.Reset()
	if err := ConfigJSON(&b, configured.Report()); err != nil || strings.Contains(b.String(), "null") {
		t.Errorf("%v, %s", err, b.String())
	}
}

// TestConfigSecrets puts a secret wherever one may stand in a configuration.
func TestConfigSecrets(t *testing.T) {
	const secret = "hunter2"
	for _, s := range []config.Server{
		{Command: "x-mcp", Args: []string{"--api-key", secret}},
		{Command: "x-mcp", Args: []string{"--api-key=" + secret}},
		{Command: "x-mcp", Args: []string{"--password", "two words " + secret}},
		{Command: "x-mcp", Args: []string{"--tavily-key", secret}},
		{Command: "x-mcp", Args: []string{"--brave-key=" + secret}},
		{Command: "x-mcp", Args: []string{"--openaiKey", secret}},
		{Command: "x-mcp", Args: []string{"--openaikey", secret}},
		{Command: "x-mcp", Args: []string{"--api-keys", secret}},
		{Command: "x-mcp", Args: []string{"--session", secret}},
		{Command: "x-mcp", Args: []string{"--auth", secret}},
		{Command: "x-mcp", Args: []string{"--login-cookie", secret}},
		{Command: "x-mcp", Args: []string{"--credential", secret}},
		{Command: "x-mcp", Args: []string{"--db-pass", secret}},
		{Command: "x-mcp", Args: []string{"--sql-pwd", "two words " + secret}},
		{Command: "x-mcp", Args: []string{"-token", secret}},
		{Command: "x-mcp", Args: []string{"-k", secret}},
		{Command: "x-mcp", Args: []string{"-k=" + secret}},
		{Command: "x-mcp", Args: []string{"-k", "abc/" + secret + "=="}},
		{Command: "x-mcp", Args: []string{"-p", secret}},
		{Command: "x-mcp", Args: []string{"-P", "two words " + secret}},
		{Command: "x-mcp", Args: []string{"-t", secret}},
		{Command: "x-mcp", Args: []string{"-u", secret}},
		{Command: "x-mcp", Args: []string{"--" + strings.Repeat("long-", 20) + "key", secret}},
		{Command: "x-mcp", Args: []string{"tavily_key=" + secret}},
		{Command: "npx", Args: []string{"-y", "x-mcp", "--tavily-key", secret}},
		{Command: "npx", Args: []string{"-y", "x-mcp", "-k", secret}},
		{Command: "docker", Args: []string{"run", "-i", "acme/x", "-k", secret}},
		{Command: "python", Args: []string{"server.py", "-p", secret}},
		{Command: "sh", Args: []string{"-c", "x-mcp --tavily-key " + secret}},
		{Command: "sh", Args: []string{"-c", "x-mcp --session 'two words " + secret + "' -v"}},
		{Command: "sh", Args: []string{"-c", "x-mcp -k " + secret + " --stdio"}},
		{Command: "sh", Args: []string{"-c", "exec x-mcp --brave-key=\"two words " + secret + "\""}},
		{Command: "npx", Args: []string{"-y", "supergateway", "--stdio", "uvx x-mcp --tavily-key " + secret}},
		{Command: "npx", Args: []string{"-y", "supergateway", "--stdio", "uvx x-mcp -k '" + secret + "'"}},
		{Command: "uvx x-mcp --tavily-key " + secret},
		{Command: "x-mcp", Args: []string{"--header", "Authorization: Bearer " + secret}},
		{Command: "x-mcp", Args: []string{"--header", "X-Api-Key: " + secret}},
		{Command: "x-mcp", Args: []string{"postgresql://app:" + secret + "@localhost/app"}},
		{Command: "x-mcp", Args: []string{"postgresql://app:a/b@" + secret + "@localhost/app"}},
		{Command: "x-mcp", Args: []string{"--url=https://example.com/mcp?k=" + secret}},
		{Command: "docker", Args: []string{"run", "-e", "HARMLESS=" + secret, "acme/x"}},
		{Command: "docker", Args: []string{"run", "-e", "harmless=" + secret, "acme/x"}},
		{Command: "docker", Args: []string{"run", "-eHARMLESS=" + secret, "acme/x"}},
		{Command: "docker", Args: []string{"run", "--env=HARMLESS=" + secret, "acme/x"}},
		{Command: "env", Args: []string{"HARMLESS=" + secret, "x-mcp"}},
		{Command: "env", Args: []string{"HARMLESS=two words " + secret, "x-mcp"}},
		{Command: "sh", Args: []string{"-c", "HARMLESS=" + secret + " x-mcp"}},
		{Command: "sh", Args: []string{"-c", "HARMLESS='two words " + secret + "' x-mcp"}},
		{Command: "uvx", Args: []string{"x-mcp", "--token", secret}},
		{Command: "uvx", Args: []string{"--from", "git+https://me:" + secret + "@example.com/x", "x-mcp"}},
		{Command: "npx", Args: []string{"-y", "mcp-remote", "https://example.com/mcp?k=" + secret}},
		{URL: "https://example.com/sse?k=" + secret},
		{URL: "https://me:" + secret + "@example.com/sse"},
		{URL: "https://" + secret + "@example.com/sse"},
		{URL: "https://example.com/s/0f3e1d2c4b5a69788796a5b4c3d2e1f0" + secret + "/sse"},
		{URL: "https://example.com/sse#" + secret},
		{URL: "://" + secret + "@"},
	} {
		s.Name, s.Transport = "x", config.Stdio
		if s.URL != "" {
			s.Transport = config.SSE
		}
		one, other := s, s
		one.Client, other.Client = "Claude Code", "Cursor"
		seen := process.Recognise(&scan.Snapshot{Host: scan.Host{OS: "linux"}})
		configured := configured.Attribute(seen, config.Found{Servers: []config.Server{one, other}}, nil)
		var text, asJSON bytes.Buffer
		if err := ConfigText(&text, configured.Report(), Options{Verbose: true}); err != nil {
			t.Fatal(err)
		}
		if err := ConfigJSON(&asJSON, configured.Report()); err != nil {
			t.Fatal(err)
		}
		for _, out := range []string{text.String(), asJSON.String()} {
			if strings.Contains(out, secret) {
				t.Errorf("%q %q is shown:\n%s", append([]string{s.Command}, s.Args...), s.URL, out)
				break
			}
		}
	}
}

// TestConfigShown keeps what is no secret: references to one, and words that only look alike.
func TestConfigShown(t *testing.T) {
	for _, word := range []string{
		"--token=${input:token}", "-e", "GITHUB_TOKEN", "TOKEN=$TOKEN", "https://mcp.example.com/v1/mcp", "https://example.com/${ACCOUNT}/mcp?region=${REGION}",
		"x -p 8080 -k /etc/key.pem -u 1000 --no-auth x", "x --session-timeout 60", "x --key ${KEY} --stdio 'y -t 5'",
		"@playwright/mcp@latest", "--port=8080", "/home/me/A=B/x", "git+https://github.com/oraios/serena",
	} {
		if got := configGate.text(word); got != word {
			t.Errorf("%s is shown as %s", word, got)
		}
	}
}

// TestConfigArgsShown keeps what launchers and programs have to say that is no secret.
func TestConfigArgsShown(t *testing.T) {
	for _, line := range []string{
		"npx -y -p @acme/notes notes --port 80", "docker run -i -t -u node -p 127.0.0.1:80:80 acme/notes", "uvx -p 3.12 notes a", "notes -p 8080 -t 30 -k ./key.pem",
		"notes --key ${KEY} -p $PASS", "notes --max-tokens 100", "notes --no-session x", "python -u -m notes", "supergateway --sessionTimeout 600000",
	} {
		words := strings.Fields(line)
		if got := strings.Join(configGate.shown(words), " "); got != line {
			t.Errorf("%s is shown as %s", line, got)
		}
	}
}

// TestConfigHostile gives everything in a file a name that commands terminals.
func TestConfigHostile(t *testing.T) {
	evil := "\x1b[2J\x1b]0;title\x07\nINFO nothing is wrong\r\u202e\u2028\xff" + strings.Repeat("x", 100_000)
	seen := process.Recognise(&scan.Snapshot{Host: scan.Host{OS: "linux"}})
	var servers []config.Server
	for _, client := range []string{evil, evil + "2"} {
		servers = append(servers,
			config.Server{Client: client, Name: evil, File: evil, Project: evil, CWD: evil, Transport: config.Stdio, Command: "npx", Args: []string{"-y", "x-mcp", evil}},
			config.Server{Client: client, Name: evil, File: evil, Transport: config.SSE, URL: "https://example.com/" + evil + "/sse"})
	}
	configured := configured.Attribute(seen, config.Found{Servers: servers, Places: []config.Place{{Client: evil, Path: evil, State: config.Broken, Reason: evil}}}, nil)
	var text, asJSON bytes.Buffer
	if err := ConfigText(&text, configured.Report(), Options{Verbose: true, Width: 100}); err != nil {
		t.Fatal(err)
	}
	if err := ConfigJSON(&asJSON, configured.Report()); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), asJSON.String()} {
		for _, r := range out {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar || r == '\u2028') {
				t.Fatalf("%q is written as it is", r)
			}
		}
		if len(out) > 40*2*longest {
			t.Errorf("%d bytes are written", len(out))
		}
	}
	if strings.Contains(text.String(), "\nINFO nothing") {
		t.Error("a name makes a line of its own")
	}
	if !json.Valid(asJSON.Bytes()) {
		t.Error("the JSON is none")
	}
}

// FuzzConfigText hides the value of a variable, whatever it is.
func FuzzConfigText(f *testing.F) {
	for _, s := range []string{"hunter2", "'two words'x", "https://u:p@h/x?y=z#f", "A=b", "://", "x=://@?&=#", `\'`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		configGate.text(s)
		if s == "" || strings.ContainsAny(s, " ;&$'\"") {
			return // it ends there, or is a reference
		}
		if got := configGate.text("x HARMLESS=" + s + " y"); len(s) < longest && got != "x HARMLESS=*** y" {
			t.Errorf("%q is shown as %q", s, got)
		}
	})
}
