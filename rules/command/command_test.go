package command

import (
	"fmt"
	"slices"
	"testing"

	"mcpdoctor/scan"
)

func TestParseLine(t *testing.T) {
	for _, c := range []struct {
		os, line string
		want     Command
	}{
		{"linux", "npx -y @modelcontextprotocol/server-filesystem@2026.8.31 /tmp", Command{
			Launchers: []string{"npx"}, Kind: KindPackage, Program: "@modelcontextprotocol/server-filesystem", Version: "2026.8.31", Args: []string{"/tmp"}}},
		{"linux", "sh -c 'uvx --from chroma-mcp==0.2.6 chroma-mcp --a b'", Command{
			Launchers: []string{"sh", "uvx"}, Kind: KindPackage, Program: "chroma-mcp", Version: "0.2.6", Args: []string{"--a", "b"}, From: "chroma-mcp"}},
		{"linux", "node /srv/foo-mcp/dist/index.js --x", Command{
			Runtime: "node", Kind: KindScript, Program: "foo-mcp", Path: "/srv/foo-mcp/dist/index.js", Args: []string{"--x"}}},
		{"linux", "docker run -i --rm -e TOKEN --name=x ghcr.io/github/github-mcp-server:v0.5 stdio", Command{
			Launchers: []string{"docker run"}, Kind: KindImage, Program: "ghcr.io/github/github-mcp-server", Version: "v0.5", Args: []string{"stdio"}}},
		{"linux", "env A=b nice -n 5 python3 -X utf8 -m mcp_server_git -v", Command{
			Launchers: []string{"env", "nice"}, Runtime: "python", Kind: KindModule, Program: "mcp_server_git", Args: []string{"-v"}}},
		{"windows", `cmd /c "C:\Program Files\nodejs\npx.cmd" -y foo-mcp@1`, Command{
			Launchers: []string{"cmd", "npx"}, Kind: KindPackage, Program: "foo-mcp", Version: "1"}},
		{"windows", `C:\Tools\github-mcp-server.exe stdio`, Command{
			Kind: KindBinary, Program: "github-mcp-server", Path: `C:\Tools\github-mcp-server.exe`, Args: []string{"stdio"}}},
		{"linux", "bash", Command{}},
		{"linux", "", Command{}},
		{"linux", "python -c 'import mcp'", Command{Runtime: "python"}},
	} {
		got := ParseLine(c.line, c.os)
		if len(got.Args) == 0 {
			got.Args = nil
		}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", c.line, got, c.want)
		}
	}
}

func TestFlag(t *testing.T) {
	c := Command{Args: []string{"--port", "8080", "--stateful", "--sessionTimeout=15000", "-x", "--", "--late", "1"}}
	for name, want := range map[string]struct {
		value string
		ok    bool
	}{
		"--port": {"8080", true}, "--stateful": {"", true}, "--sessionTimeout": {"15000", true}, "--session": {}, "--late": {}, "-x": {"", true},
	} {
		if value, ok := c.Flag(name); value != want.value || ok != want.ok {
			t.Errorf("Flag(%s) = %q, %v; want %q, %v", name, value, ok, want.value, want.ok)
		}
	}
}

func TestIdentity(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"serena start-mcp-server --context=codex --project-from-cwd", "serena start-mcp-server --project-from-cwd --context=codex", true},
		{"serena start-mcp-server --context codex", "serena start-mcp-server --context=codex", true},
		{"serena start-mcp-server --context=codex", "serena start-mcp-server --context=claude-code", false},
		{"npx -y @modelcontextprotocol/server-filesystem /a", "node /x/node_modules/.bin/mcp-server-filesystem /a", true},
		{"npx -y @modelcontextprotocol/server-filesystem /a", "npx -y @modelcontextprotocol/server-filesystem /b", false},
		{"npx foo-mcp@1.0.0", "npx foo-mcp@latest", true},
		{"npx foo-mcp --port 1234", "npx foo-mcp --port=5678", true},
		{"npx foo-mcp --transport http --port 1234", "npx foo-mcp", false},
		{"npx @playwright/mcp", "node /x/node_modules/.bin/playwright-mcp", true},
		{"npx @salesforce/mcp --orgs X", "node /x/node_modules/.bin/sf-mcp-server --orgs X", true},
		{"node /a/server.mjs", "node /b/server.mjs", false},
		{"node /p/tool/13.11.0/mcp-server.cjs", "node /p/tool/13.12.1/mcp-server.cjs", true},
		{"python -m mcp_server_git", "uvx mcp-server-git", true},
	} {
		a, b := ParseLine(c.a, "linux").Identity(), ParseLine(c.b, "linux").Identity()
		if (a == b) != c.same {
			t.Errorf("%s: %q\n%s: %q\nsame: %v, want %v", c.a, a, c.b, b, a == b, c.same)
		}
	}
}

func TestSameProgram(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"npx @modelcontextprotocol/server-filesystem /tmp", "node /x/.bin/mcp-server-filesystem /tmp", true},
		{"npx @playwright/mcp", "sh -c playwright-mcp", true},
		{"npx @upstash/context7-mcp", "node /x/node_modules/.bin/context7-mcp", true},
		{"npx @azure-devops/mcp c", "node /x/node_modules/.bin/mcp-server-azuredevops c", true},
		{"npx @sentry/mcp-server", "node /x/node_modules/.bin/sentry-mcp", true},
		{"npx @acme/mcp", "node /x/node_modules/@acme/mcp/dist/index.js", true},
		{"uvx mcp-server-git", "python /x/bin/mcp-server-git", true},
		{"python -m mcp_server_git", "python /x/bin/mcp-server-git", true},
		{"uvx --from serena-agent serena start-mcp-server", "python /x/bin/serena start-mcp-server", true},
		{"npx -p oh-my-codex oh-my-codex", "node /x/node_modules/oh-my-codex/dist/mcp/state-server.js", true},
		{"sh -c 'node /a/server.js'", "node /a/server.js", true},
		{"node server.mjs", "node /srv/server.mjs", true},
		{"node /a/server.js", "node /b/server.js", false},
		{"npx foo-mcp", "npx bar-mcp", false},
		{"npx foo-mcp", "node /x/node_modules/.bin/vite", false},
		{"bash", "bash", false},
	} {
		if got := SameProgram(ParseLine(c.a, "linux"), ParseLine(c.b, "linux")); got != c.want {
			t.Errorf("%s ~ %s: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		os      string
		process scan.Process
		want    string // launchers, runtime, program
	}{
		{"linux", scan.Process{Args: []string{"npm exec foo-mcp --x"}}, "[npx]  foo-mcp"}, // a title
		{"linux", scan.Process{Args: []string{"node", "dist/index.js"}, CWD: "/srv/foo-mcp"}, "[] node foo-mcp"},
		{"linux", scan.Process{Args: []string{"/src/x-mcp/.venv/bin/python", "server.py"}}, "[] python x-mcp"},
		{"linux", scan.Process{Args: []string{"sh", "-c", "exec", "npx", "foo-mcp"}}, "[sh npx]  foo-mcp"},
		{"linux", scan.Process{Args: []string{"foo-mcp"}, State: "Z"}, "[]  "},
		{"linux", scan.Process{Cmdline: "[kthreadd]"}, "[]  "},
		{"darwin", scan.Process{Cmdline: "/Applications/Visual Studio Code.app/Contents/MacOS/Electron --x"}, "[]  visual studio code"},
		{"darwin", scan.Process{Cmdline: "/Applications/Cursor.app/Contents/Frameworks/Cursor Helper (Plugin).app/Contents/MacOS/Cursor Helper (Plugin) --x"}, "[]  cursor"},
		{"darwin", scan.Process{Exe: "/opt/foo-mcp"}, "[]  foo-mcp"},
		{"windows", scan.Process{Cmdline: `C:\Program Files\Foo\foo-mcp.exe --x "a b"`}, "[]  foo-mcp"},
		{"windows", scan.Process{Cmdline: `cmd.exe /d /s /c "npx -y foo-mcp"`}, "[cmd npx]  foo-mcp"},
		{"windows", scan.Process{Cmdline: `powershell -NoProfile -Command "npx -y foo-mcp 2>nul"`}, "[powershell npx]  foo-mcp"},
		{"windows", scan.Process{Cmdline: `bash.exe -c "cd /srv; 'foo-mcp' --x | tee log"`}, "[sh]  foo-mcp"},
	} {
		got := Parse(&c.process, c.os)
		if s := fmt.Sprint(got.Launchers, " ", got.Runtime, " ", got.Program); s != c.want {
			t.Errorf("%s %q %s: %q, want %q", c.os, c.process.Args, c.process.Cmdline, s, c.want)
		}
	}
}

func TestShellCommand(t *testing.T) {
	for line, want := range map[string][]string{
		"cd /srv && A=b exec node x.js > /dev/null 2>&1 &": {"node", "x.js"},
		"while true; do foo-mcp --stdio; sleep 1; done":    {"foo-mcp", "--stdio"},
		"if [ -f x ]; then foo-mcp; fi":                    {"foo-mcp"},
		"foo-mcp | tee log":                                {"foo-mcp"},
		"echo x | foo-mcp":                                 {"foo-mcp"},
		"foo-mcp $(cat a; echo b) \"$HOME/x\" 'a b' c\\ d": {"foo-mcp", "$(cat a; echo b)", "$HOME/x", "a b", "c d"},
		"foo-mcp --text it's":                              {"foo-mcp", "--text", "it"}, // a title has lost its quotes
		"npx foo-mcp (x)":                                  {"npx", "foo-mcp"},
		"cd /srv && foo-mcp \"a":                           {"foo-mcp"}, // the line was cut
		"x=$(foo-mcp)":                                     nil,
		"":                                                 nil,
	} {
		if got := shellCommand(line, "linux"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestSplitLine(t *testing.T) {
	for _, words := range [][]string{{"node", "a b", "it's", "$x", "--a=b", "*", ""}, {"npx", "-y", "@scope/x@1"}} {
		line := QuoteLine(words...)
		if got, plain := SplitLine(line); !plain || !slices.Equal(got, words) {
			t.Errorf("%s: %q, %v; want %q", line, got, plain, words)
		}
	}
	for _, line := range []string{"a; b", "a | b", "a &", "a $x", "a $(b)", "a > b", "A=b c", "a *.js", "a ~/b", "! a", "(a)", "a 'b", ""} {
		if words, plain := SplitLine(line); plain {
			t.Errorf("%s: %q", line, words)
		}
	}
}
