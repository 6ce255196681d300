package process

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpdoctor/rules/command"
	"mcpdoctor/scan"
)

// example is one line of testdata/commands.
type example struct {
	where, os, role, program string
	process                  scan.Process
}

// examples reads testdata/commands, whose format servers.txt describes.
func examples(tb testing.TB) []example {
	tb.Helper()
	files, err := filepath.Glob("../../testdata/commands/*.txt")
	if err != nil || len(files) == 0 {
		tb.Fatal("no examples: ", err)
	}
	var all []example
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		number := 0
		for s := bufio.NewScanner(strings.NewReader(string(text))); s.Scan(); {
			number++
			line := s.Text()
			if line == "" || line[0] == '#' {
				continue
			}
			columns := strings.SplitN(line, "  ", 4)
			if len(columns) != 4 {
				tb.Fatalf("%s:%d: want 4 columns", name, number)
			}
			e := example{where: fmt.Sprintf("%s:%d", filepath.Base(name), number), role: columns[1], program: columns[2]}
			var shown bool
			e.os, shown = strings.CutSuffix(columns[0], "-ps")
			switch {
			case shown || e.os == "windows":
				e.process.Cmdline = columns[3]
			case strings.HasPrefix(columns[3], "["):
				if err := json.Unmarshal([]byte(columns[3]), &e.process.Args); err != nil {
					tb.Fatalf("%s: %v", e.where, err)
				}
			default:
				e.process.Args = cutVector(columns[3])
			}
			all = append(all, e)
		}
	}
	return all
}

// cutVector cuts a line at its spaces. Quotes keep together what is between them, when they are at
// both ends of a word.
func cutVector(line string) (words []string) {
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		if quote := line[0]; quote == '\'' || quote == '"' {
			if end := strings.IndexByte(line[1:], quote); end >= 0 && (end+2 == len(line) || line[end+2] == ' ') {
				words, line = append(words, line[1:end+1]), line[end+2:]
				continue
			}
		}
		word, rest, _ := strings.Cut(line, " ")
		words, line = append(words, word), rest
	}
	return words
}

func TestExamples(t *testing.T) {
	counts := map[string]int{}
	for _, e := range examples(t) {
		r := Classify(&e.process, e.os)
		role := string(r.Role)
		if role == "" {
			role = "-"
		}
		counts[e.role]++
		if role != e.role || e.program != "-" && r.Command.Program != e.program {
			t.Errorf("%s: is %s %q, want %s %q\n%q %s\n%+v", e.where, role, r.Command.Program, e.role, e.program, e.process.Args, e.process.Cmdline, r)
		}
		if r.Role != "" && (r.Name == "" || r.By == "" || r.Confidence == "") {
			t.Errorf("%s: incomplete: %+v", e.where, r)
		}
		if (r.Target != "") != (r.Role == RoleLauncher) {
			t.Errorf("%s: a %s with target %q", e.where, r.Role, r.Target)
		}
	}
	t.Log(counts)
}

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		os, line string
		want     command.Command
	}{
		{"linux", "npx -y @modelcontextprotocol/server-filesystem@2026.8.31 /tmp", command.Command{
			Launchers: []string{"npx"}, Kind: command.KindPackage, Program: "@modelcontextprotocol/server-filesystem", Version: "2026.8.31", Args: []string{"/tmp"}}},
		{"linux", "sh -c 'uvx --from chroma-mcp==0.2.6 chroma-mcp --a b'", command.Command{
			Launchers: []string{"sh", "uvx"}, Kind: command.KindPackage, Program: "chroma-mcp", Version: "0.2.6", Args: []string{"--a", "b"}, From: "chroma-mcp"}},
		{"linux", "node /srv/foo-mcp/dist/index.js --x", command.Command{
			Runtime: "node", Kind: command.KindScript, Program: "foo-mcp", Path: "/srv/foo-mcp/dist/index.js", Args: []string{"--x"}}},
		{"linux", "docker run -i --rm -e TOKEN --name=x ghcr.io/github/github-mcp-server:v0.5 stdio", command.Command{
			Launchers: []string{"docker run"}, Kind: command.KindImage, Program: "ghcr.io/github/github-mcp-server", Version: "v0.5", Args: []string{"stdio"}}},
		{"linux", "env A=b nice -n 5 python3 -X utf8 -m mcp_server_git -v", command.Command{
			Launchers: []string{"env", "nice"}, Runtime: "python", Kind: command.KindModule, Program: "mcp_server_git", Args: []string{"-v"}}},
		{"windows", `cmd /c "C:\Program Files\nodejs\npx.cmd" -y foo-mcp@1`, command.Command{
			Launchers: []string{"cmd", "npx"}, Kind: command.KindPackage, Program: "foo-mcp", Version: "1"}},
		{"windows", `C:\Tools\github-mcp-server.exe stdio`, command.Command{
			Kind: command.KindBinary, Program: "github-mcp-server", Path: `C:\Tools\github-mcp-server.exe`, Args: []string{"stdio"}}},
		{"linux", "bash", command.Command{}},
		{"linux", "", command.Command{}},
		{"linux", "python -c 'import mcp'", command.Command{Runtime: "python"}},
	} {
		got := command.ParseLine(c.line, c.os)
		if len(got.Args) == 0 {
			got.Args = nil
		}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", c.line, got, c.want)
		}
	}
}

func TestFlag(t *testing.T) {
	c := command.Command{Args: []string{"--port", "8080", "--stateful", "--sessionTimeout=15000", "-x", "--", "--late", "1"}}
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
		a, b := command.ParseLine(c.a, "linux").Identity(), command.ParseLine(c.b, "linux").Identity()
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
		if got := command.SameProgram(command.ParseLine(c.a, "linux"), command.ParseLine(c.b, "linux")); got != c.want {
			t.Errorf("%s ~ %s: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func FuzzResolve(f *testing.F) {
	for _, e := range examples(f) {
		f.Add(strings.Join(e.process.Args, "\x00") + e.process.Cmdline)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, os := range [...]string{"linux", "darwin", "windows", ""} {
			for _, p := range [...]scan.Process{{Cmdline: line}, {Args: strings.Split(line, "\x00")}, {Args: []string{"sh", "-c", line}}, {Args: []string{"cmd", "/c", line}}} {
				r := Classify(&p, os)
				r.Command.Identity()
				r.Targets(os)
				command.SameProgram(r.Command, command.ParseLine(line, os))
			}
		}
	})
}
