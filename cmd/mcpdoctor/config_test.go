package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/configured"
	"mcpdoctor/scan"
)

// atHome is a world with a user's folder that has these files, and with a client that works in its
// "app" and has started the server of a private script.
func atHome(t *testing.T, files map[string]string) (*world, string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("NOT TESTED HERE: the client that the fake home needs is a process of a Unix; on Windows only rules and scan/config are tested")
	}
	home := t.TempDir()
	for name, text := range files {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{getenv: func(name string) string {
		if name == "HOME" {
			return home
		}
		return ""
	}}
	w.machine = homeMachine{getenv: w.getenv, savedMachine: func(at time.Time) (*scan.Snapshot, error) {
		started := at.Add(-time.Hour)
		app := filepath.Join(home, "app")
		return &scan.Snapshot{Schema: scan.Schema, Kind: scan.Kind, Taken: at, Host: scan.Host{OS: "linux", Services: []scan.Service{}}, Processes: []scan.Process{
			{PID: 1, Args: []string{"/sbin/init"}, Start: 1, Started: started},
			{PID: 70, PPID: 1, Args: []string{"claude"}, Start: 2, Started: started, CWD: app, TTY: "pts/0"},
			{PID: 80, PPID: 70, Args: []string{"python", "server.py"}, Start: 3, Started: started, CWD: app},
		}}, nil
	}}
	return w, home
}

var someFiles = map[string]string{
	"app/.mcp.json":       `{"mcpServers": {"fixtures": {"command": "python", "args": ["server.py"], "env": {"TOKEN": "hunter2"}}}}`,
	".cursor/mcp.json":    `{"mcpServers": {"linear": {"url": "https://mcp.linear.app/sse", "headers": {"Authorization": "Bearer hunter2"}}}}`,
	".codex/config.toml":  "[mcp_servers.a]\ncommand = = hunter2\n",
	".kiro/settings/x":    "not looked at",
	".claude/plugins/cfg": "not looked at",
}

func TestConfig(t *testing.T) {
	w, home := atHome(t, someFiles)
	r := doctorIn(t, w, "", "config")
	for _, want := range []string{
		"2 configured servers in 2 clients; 1 instance running.\n",
		"Claude Code  " + home + "/app/.mcp.json\n", "  fixtures  1 ", "python server.py\n",
		"Cursor  " + home + "/.cursor/mcp.json\n", "https://mcp.linear.app/sse (sse)\n", "INFO servers are reached over SSE\n",
		"note    " + home + "/.codex/config.toml:2: invalid TOML\n",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is missing in\n%s", want, r.out)
		}
	}
	if r.code != 0 || r.err != "" || strings.Contains(r.out, "hunter2") || strings.Contains(r.out, "TOKEN") {
		t.Errorf("exit code %d, %s\n%s", r.code, r.err, r.out)
	}
	if strings.Contains(r.out, "absent") {
		t.Error("places are listed without -v")
	}
	r = doctorIn(t, w, "", "config", "-v")
	for _, want := range []string{"All files\n", "absent", home + "/.gemini/settings.json\n", "broken: invalid TOML, line 2"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("-v: %q is missing in\n%s", want, r.out)
		}
	}
}

func TestConfigJSON(t *testing.T) {
	w, home := atHome(t, someFiles)
	r := doctorIn(t, w, "", "config", "--json")
	var c configured.Report
	if err := json.Unmarshal([]byte(r.out), &c); err != nil {
		t.Fatal(err)
	}
	if c.Schema != 1 || c.Kind != "mcpdoctor.config" || c.Tool.Name != "mcpdoctor" || len(c.Servers) != 2 || len(c.Problems) != 1 || len(c.Places) < 50 {
		t.Errorf("%+v", c)
	}
	if s := c.Servers[0]; s.Client != "Claude Code" || s.Name != "fixtures" || s.Project != home+"/app" || s.Instances != 1 || s.PIDs[0] != 80 {
		t.Errorf("%+v", s)
	}
	if strings.Contains(r.out, "hunter2") || r.code != 0 {
		t.Errorf("exit code %d\n%s", r.code, r.out)
	}
}

// TestScanConfigured names what runs as its user does, and says which file is broken. A
// snapshot from elsewhere is judged without this machine's files.
func TestScanConfigured(t *testing.T) {
	w, _ := atHome(t, someFiles)
	r := doctorIn(t, w, "", "scan", "--json")
	var report rules.Report
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Servers) != 1 || report.Servers[0].Server != "fixtures" || report.Servers[0].RecognisedBy != "certain, by configured" {
		t.Errorf("servers %+v", report.Servers)
	}
	if len(report.Problems) != 1 || !strings.HasSuffix(report.Problems[0], "/.codex/config.toml:2: invalid TOML") {
		t.Errorf("problems %q", report.Problems)
	}
	saved := doctorIn(t, w, "", "snapshot")
	r = doctorIn(t, w, saved.out, "scan", "--from", "-", "--json")
	report = rules.Report{}
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Servers) != 0 {
		t.Errorf("--from: servers %+v", report.Servers)
	}
}

func TestConfigFlags(t *testing.T) {
	w, _ := atHome(t, nil)
	for args, code := range map[string]int{
		"config": 0, "config --json": 0, "config -v": 0, "config --verbose --color never": 0, "config --help": 0,
		"config extra": 2, "config --bogus": 2, "config --color blue": 2, "config --from x": 2,
	} {
		r := doctorIn(t, w, "", strings.Fields(args)...)
		if r.code != code {
			t.Errorf("mcpdoctor %s: exit code %d, want %d\n%s%s", args, r.code, code, r.out, r.err)
		}
		if code == 2 {
			checkErrorForm(t, args, r.err)
		}
	}
	if r := doctorIn(t, w, "", "config"); r.out != "No MCP servers are configured. -v lists every file that was looked for.\n" {
		t.Errorf("nothing configured: %q", r.out)
	}
}

// TestConfigLive reads the files and the processes that there really are.
func TestConfigLive(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	r := doctorIn(t, &world{machine: localMachine{os.Getenv}}, "", "config", "--json")
	var c configured.Report
	if err := json.Unmarshal([]byte(r.out), &c); err != nil || r.code != 0 || len(c.Places) == 0 {
		t.Errorf("exit code %d, %v: %s%s", r.code, err, r.out, r.err)
	}
}
