package configfile_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpdoctor/scan/config"
	"mcpdoctor/scan/configfile"
)

var update = flag.Bool("update", false, "write the expected listings anew")

// testdata holds, for each system, a home and a project with a file of every client. What they say
// is listed in expected.txt.
const testdata = "../../testdata/config"

func readSystem(t *testing.T, system string) (config.Found, string) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join(testdata, system))
	if err != nil {
		t.Fatal(err)
	}
	found := configfile.Read(t.Context(), configfile.Options{
		System: system, Home: filepath.Join(root, "home"),
		Folders: []config.Folder{{Path: filepath.Join(root, "project"), Client: "Claude Code"}},
	})
	return found, root + string(filepath.Separator)
}

// TestClients reads a file of every client on every system.
func TestClients(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			found, root := readSystem(t, system)
			if problems := found.Problems(); len(problems) > 0 {
				t.Errorf("problems: %v", problems)
			}
			var b strings.Builder
			for _, s := range found.Servers {
				fmt.Fprintln(&b, listing(s, root))
			}
			if strings.Contains(b.String(), "SECRET-ENV") || strings.Contains(b.String(), "SECRET-HEADER") {
				t.Error("the value of a variable or header was kept")
			}
			file := filepath.Join(testdata, system, "expected.txt")
			if *update {
				if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Split(b.String(), "\n")
			for i, line := range strings.Split(string(want), "\n") {
				if i >= len(got) || got[i] != line {
					t.Fatalf("line %d of %s:\n got %q\nwant %q", i+1, file, at(got, i), line)
				}
			}
			if wanted := strings.Count(string(want), "\n"); len(got)-1 != wanted {
				t.Errorf("%d servers, want %d", len(got)-1, wanted)
			}
		})
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// listing is a server as expected.txt has it: what is known of it, without the machine's folders.
func listing(s config.Server, root string) string {
	parts := []string{s.Client, s.Name, string(s.Transport), filepath.ToSlash(strings.TrimPrefix(s.File, root))}
	if s.Project != "" {
		parts = append(parts, "project="+filepath.ToSlash(strings.TrimPrefix(s.Project, root)))
	}
	if s.Command != "" {
		parts = append(parts, fmt.Sprintf("%q", append([]string{s.Command}, s.Args...)))
	}
	for _, f := range [][2]string{{"cwd", s.CWD}, {"url", s.URL}} {
		if f[1] != "" {
			parts = append(parts, f[0]+"="+f[1])
		}
	}
	if s.Disabled {
		parts = append(parts, "disabled")
	}
	return strings.Join(parts, " | ")
}

// TestEveryPlaceHasAFile requires an example for every place on Linux, and on the other systems for each that
// differs.
func TestEveryPlaceHasAFile(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		found, root := readSystem(t, system)
		for _, p := range found.Places {
			rel, inside := strings.CutPrefix(p.Path, root)
			rel = filepath.ToSlash(rel)
			own := strings.HasPrefix(rel, "home/AppData/") || strings.HasPrefix(rel, "home/Library/") || system == "linux"
			if !inside || !own {
				continue
			}
			if p.State != config.Present || p.Servers == 0 {
				t.Errorf("%s: %s of %s is %s with %d servers", system, rel, p.Client, p.State, p.Servers)
			}
		}
	}
}

func TestVariablesMoveFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "xdg/opencode/opencode.json"), `{"mcp":{"a":{"command":["a-mcp"]}}}`)
	write(t, filepath.Join(dir, "codex/config.toml"), "[mcp_servers.b]\ncommand = 'b-mcp'\n")
	write(t, filepath.Join(dir, "claude/.claude.json"), `{"mcpServers":{"c":{"command":"c-mcp"}}}`)
	write(t, filepath.Join(dir, "cline/data/settings/cline_mcp_settings.json"), `{"mcpServers":{"d":{"command":"d-mcp"}}}`)
	write(t, filepath.Join(dir, "home/.codex/config.toml"), "[mcp_servers.not-read]\ncommand = 'x'\n")
	env := map[string]string{
		"XDG_CONFIG_HOME": filepath.Join(dir, "xdg"), "CODEX_HOME": filepath.Join(dir, "codex"), "CLAUDE_CONFIG_DIR": filepath.Join(dir, "claude"),
		"CLINE_DIR": filepath.Join(dir, "cline"), "APPDATA": "relative/is/ignored",
	}
	found := configfile.Read(t.Context(), configfile.Options{System: "linux", Home: filepath.Join(dir, "home"), Env: func(name string) string { return env[name] }})
	if got := names(found); got != "a b c d" {
		t.Errorf("servers %q, want a b c d", got)
	}
}

// TestProjects reads the project files of the folders in ~/.claude.json, those of its own client only.
func TestProjects(t *testing.T) {
	dir := t.TempDir()
	project := filepath.Join(dir, "project")
	text, err := json.Marshal(map[string]any{"projects": map[string]any{project: map[string]any{}, "relative": map[string]any{}}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, ".claude.json"), string(text))
	write(t, filepath.Join(project, ".mcp.json"), `{"mcpServers":{"mine":{"command":"x"}}}`)
	write(t, filepath.Join(project, ".cursor/mcp.json"), `{"mcpServers":{"not-mine":{"command":"x"}}}`)
	found := configfile.Read(t.Context(), configfile.Options{System: "linux", Home: dir})
	if len(found.Servers) != 1 || found.Servers[0].Name != "mine" || found.Servers[0].Project != project {
		t.Errorf("servers %+v", found.Servers)
	}
}

// TestSharedFile attributes a file that several clients read to the one that works there, and reads it once.
func TestSharedFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".mcp.json"), `{"mcpServers":{"shared":{"command":"x"}}}`)
	for _, client := range []string{"Claude Code", "Copilot CLI", "CodeBuddy", "no client of the table"} {
		found := configfile.Read(t.Context(), configfile.Options{System: "linux", Folders: []config.Folder{{Path: dir, Client: client}, {Path: dir, Client: "Cursor"}}})
		want := client
		if client == "no client of the table" {
			want = "Claude Code"
		}
		if len(found.Servers) != 1 || found.Servers[0].Client != want {
			t.Errorf("working client %s: %+v", client, found.Servers)
		}
	}
}

func TestNamedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "servers.json")
	write(t, file, `{"mcpServers":{"one":{"command":"uvx","args":["mcp-server-time"]}}}`)
	found := configfile.Read(t.Context(), configfile.Options{System: "windows", Named: []config.Named{{Path: file, Client: "mcpo"}, {Path: "relative.json", Client: "mcpo"}}})
	if len(found.Servers) != 1 || found.Servers[0].Client != "mcpo" || !found.Servers[0].Named || len(found.Places) != 1 {
		t.Errorf("servers %+v, places %+v", found.Servers, found.Places)
	}
}

// TestEntries reads the shapes of entries, and what is not a server.
func TestEntries(t *testing.T) {
	for _, c := range []struct{ entry, want string }{
		{`{"command":"a","args":["b","--port",8080,true,null,{}]}`, `stdio | ["a" "b" "--port" "8080" "true"]`},
		{`{"command":["a","b"],"args":["c"]}`, `stdio | ["a" "b" "c"]`},
		{`{"command":{"path":"a","args":["b"]}}`, `stdio | ["a" "b"]`},
		{`{"command":"a","url":"http://localhost/sse"}`, `stdio | ["a"]`},
		{`{"command":"a","type":"sse"}`, `stdio | ["a"]`},
		{`{"url":"http://localhost/mcp"}`, `http | url=http://localhost/mcp`},
		{`{"url":"http://localhost/v1/sse/"}`, `sse | url=http://localhost/v1/sse/`},
		{`{"url":"http://localhost/sse","type":"streamableHttp"}`, `http | url=http://localhost/sse`},
		{`{"url":"http://localhost/x","transport":"SSE"}`, `sse | url=http://localhost/x`},
		{`{"httpUrl":"http://localhost/sse"}`, `http | url=http://localhost/sse`},
		{`{"command":"a","enabled":false}`, `stdio | ["a"] | disabled`},
		{`{"command":"a","disabled":true}`, `stdio | ["a"] | disabled`},
		{`{"command":"a","disabled":"true"}`, `stdio | ["a"]`},
		{`{"command":"a","cwd":"/x"}`, `stdio | ["a"] | cwd=/x`},
		{`{"command":""}`, ``},
		{`{"command":[]}`, ``},
		{`{"command":7}`, ``},
		{`{"args":["b"]}`, ``},
		{`{}`, ``},
		{`[]`, ``},
		{`"a"`, ``},
		{`null`, ``},
	} {
		file := filepath.Join(t.TempDir(), "f.json")
		write(t, file, `{"mcpServers":{"x":`+c.entry+`}}`)
		found := configfile.Read(t.Context(), configfile.Options{System: "windows", Named: []config.Named{{Path: file, Client: "c"}}})
		got := ""
		for _, s := range found.Servers {
			got += strings.Replace(listing(s, file[:len(file)-len("f.json")]), "c | x | ", "", 1)
		}
		if got = strings.Replace(got, " | f.json", "", 1); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.entry, got, c.want)
		}
	}
}

// TestTrouble reads what is not a valid file.
func TestTrouble(t *testing.T) {
	huge := strings.Repeat(" ", 8<<20) + "{}"
	deep := strings.Repeat(`{"a":`, 100_000)
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		p := string(c - 1)
		bomb += fmt.Sprintf("%c: &%c [*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s]\n", c, c, p, p, p, p, p, p, p, p, p, p)
	}
	for _, c := range []struct{ name, text, want string }{
		{"json", "{\n\n  \"mcpServers\": {\"a\": }\n}", "broken: invalid JSON (line 3)"},
		{"json", "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}", "broken: invalid JSON (line 1)"},
		{"json", `{"mcpServers":{}}{"secret":"x"}`, "broken: invalid JSON (line 1)"},
		{"json", "\x00\xff\x00", "broken: invalid JSON (line 1)"},
		{"json", "", "read"},
		{"json", "\ufeff{}", "read"},
		{"json", " \n// nothing but words\n", "broken: invalid JSON (line 3)"},
		{"json", "[]", "read"},
		{"json", `{"mcpServers":[]}`, "read"},
		{"json", `{"mcpServers":"x"}`, "read"},
		{"json", huge, "refused: larger than 8 MB"},
		{"json", deep, "refused: nested too deeply"},
		{"json", strings.Repeat("[", 7<<20), "refused: larger than 1 MB"},
		{"toml", "a = 1\nb = = 2\n", "broken: invalid TOML (line 2)"},
		{"toml", "[mcp_servers.a]\ncommand = \"secret-value\n", "broken: invalid TOML (line 2)"},
		{"toml", "a = " + strings.Repeat("[", 200_000), "refused: nested too deeply"},
		{"toml", "a" + strings.Repeat(".a", 100_000) + " = 1\n", "refused: nested too deeply"},
		{"toml", "[a" + strings.Repeat(" . \"a\"", 100_000) + "]\n", "refused: nested too deeply"},
		{"yaml", "a: 1\n b: [\n", "broken: invalid YAML (line 2)"},
		{"yaml", "a: *unknown\n", "broken: invalid YAML"},
		{"yaml", bomb, "refused: too many aliases"},
		{"yaml", "a: &a [*a]\n", "refused: nested too deeply"},
		{"yaml", strings.Repeat("[", 200_000), "refused: nested too deeply"},
		{"yaml", strings.Repeat("a: 1\n", 300_000), "refused: larger than 1 MB"},
	} {
		file := filepath.Join(t.TempDir(), "file."+c.name)
		write(t, file, c.text)
		begun := time.Now()
		p := place(t, file)
		if got := said(p); got != c.want {
			t.Errorf("%.40q: %s, want %s", c.text, got, c.want)
		}
		if d := time.Since(begun); d > 5*time.Second {
			t.Errorf("%.40q took %s", c.text, d)
		}
	}
	if p := place(t, t.TempDir()); said(p) != "broken: a folder, not a file" {
		t.Errorf("folder: %s", said(p))
	}
	if p := place(t, filepath.Join(t.TempDir(), "nothing.json")); said(p) != "absent" {
		t.Errorf("nothing: %s", said(p))
	}
}

func TestProblems(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.json")
	write(t, file, "{\n\"mcpServers\": {,}\n}")
	found := configfile.Read(t.Context(), configfile.Options{System: "windows", Named: []config.Named{{Path: file, Client: "c"}, {Path: t.TempDir(), Client: "c"}}})
	want := []string{file + ":2: invalid JSON", found.Places[1].Path + ": a folder, not a file"}
	if got := found.Problems(); !slices.Equal(got, want) {
		t.Errorf("problems %q, want %q", got, want)
	}
}

// TestLate does not wait if the time is over at the start.
func TestLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		found := configfile.Read(ctx, configfile.Options{Home: t.TempDir()})
		if len(found.Servers) > 0 {
			t.Errorf("servers %v", found.Servers)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	root, err := filepath.Abs(filepath.Join(testdata, "linux"))
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		o    configfile.Options
	}{
		{"nothing there", configfile.Options{System: "linux", Home: b.TempDir()}},
		{"every client", configfile.Options{System: "linux", Home: filepath.Join(root, "home"), Folders: []config.Folder{{Path: filepath.Join(root, "project")}}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				configfile.Read(b.Context(), c.o)
			}
		})
	}
}

func place(t *testing.T, path string) config.Place {
	t.Helper()
	found := configfile.Read(t.Context(), configfile.Options{System: "windows", Named: []config.Named{{Path: path, Client: "c"}}})
	if len(found.Places) != 1 { // Windows has no place outside of a home
		t.Fatalf("places %+v", found.Places)
	}
	return found.Places[0]
}

func said(p config.Place) string {
	s := string(p.State)
	if p.Reason != "" {
		s += ": " + p.Reason
	}
	if p.Line > 0 {
		s += fmt.Sprintf(" (line %d)", p.Line)
	}
	return s
}

func names(f config.Found) string {
	var out []string
	for _, s := range f.Servers {
		out = append(out, s.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
