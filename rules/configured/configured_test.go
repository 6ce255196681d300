package configured_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/configured"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/config"
	"mcpdoctor/testdata/tables"
)

// TestConfiguredCommands compares one configured command with one process.
func TestConfiguredCommands(t *testing.T) {
	const (
		no     = ""
		yes    = "certain"
		likely = "likely" // more words follow than are configured
	)
	for _, c := range []struct {
		entry   string // its words, separated by "|"
		process string
		want    string

		cwd, project, folder string // of the entry, of its project, and of the process
		parent               string // the command of the process's parent; a terminal's shell if empty
		os                   string
	}{
		// Word for word.
		{entry: "notes-server|--vault|/home/me/notes", process: "notes-server|--vault|/home/me/notes", parent: "init", want: yes},
		{entry: "notes-server", process: "/usr/local/bin/notes-server", parent: "claude", want: yes},
		{entry: "/opt/notes/bin/notes-server", process: "notes-server", parent: "claude", want: yes},
		{entry: "/opt/notes/bin/notes-server", process: "/opt/notes/bin/notes-server", want: yes},
		{entry: "notes-server|--vault|a", process: "notes-server|--vault|b", parent: "claude", want: no},
		{entry: "notes-server|--vault|a|--read-only", process: "notes-server|--vault|a", parent: "claude", want: no},
		{entry: "notes-server|--vault|a", process: "notes-server|--vault|a|--session|7", parent: "claude", want: likely},
		{entry: "notes-server", process: "notes-server|--help", parent: "claude", want: no},
		{entry: "notes-server --vault a", process: "notes-server|--vault|a", parent: "claude", want: yes},
		{entry: "node|/srv/notes/index.js|--stdio", process: "/usr/bin/node|/srv/notes/index.js|--stdio", want: yes},
		{entry: "node|/srv/notes/index.js", process: "node|/srv/other/index.js", want: no},
		{entry: "node|--no-warnings|/srv/notes/index.js", process: "node|--no-warnings|/srv/notes/index.js", want: yes},
		{entry: "python|-m|notes.server", process: "/usr/bin/python3.12|-m|notes.server", parent: "claude", want: yes},
		{entry: "python|-m|notes.server", process: "python|-m|notes.client", parent: "claude", want: no},
		{entry: "python|-c|from notes import serve; serve()", process: "python|-c|from notes import serve; serve()", parent: "claude", want: yes},
		{entry: "python|-c|from notes import serve; serve()", process: "python|-c|from notes import serve; other()", parent: "claude", want: no},
		{entry: "java|-jar|/opt/spring-1.0.0.jar", process: "java|-jar|/opt/spring-1.0.0.jar", want: yes},
		{entry: "docker|run|-i|--rm|-e|TOKEN|acme/notes", process: "docker|run|-i|--rm|-e|TOKEN|acme/notes", want: yes},
		{entry: "docker|run|-i|--rm|-v|/a:/data|acme/notes", process: "docker|run|-i|--rm|-v|/b:/data|acme/notes", want: no},

		// A script that names its interpreter; a launcher that rewrites its line; what it starts.
		{entry: "notes-server|--stdio", process: "node|/usr/local/bin/notes-server|--stdio", parent: "init", want: yes},
		{entry: "notes-server|--stdio", process: "/home/me/.venv/bin/python|/home/me/.venv/bin/notes-server|--stdio", parent: "init", want: yes},
		{entry: "npx|-y|notes-tool|a", process: "npm exec notes-tool a", want: yes},
		{entry: "npx|-y|notes-tool@latest|a b", process: "npm exec notes-tool@latest a b", want: yes},
		{entry: "npx|-y|notes-tool|a", process: "node|/usr/bin/npx|-y|notes-tool|a", want: yes},
		{entry: "npx|-y|notes-tool|a", process: "npm exec notes-tool b", want: no},
		{entry: "npx|-y|@acme/notes|a", process: "node|/home/me/.npm/_npx/0f/node_modules/.bin/notes|a", want: yes},
		{entry: "npx|-y|notes-tool|a", process: "sh|-c|notes-tool a", parent: "claude", want: yes},
		{entry: "uvx|notes-tool|a", process: "uv|tool|uvx|notes-tool|a", want: yes},
		{entry: "uvx|--from|git+https://example.com/notes|notes-tool|a", process: "/home/me/.cache/uv/archive-v0/x/bin/python|/home/me/.cache/uv/archive-v0/x/bin/notes-tool|a", want: yes},
		{entry: "uv|--directory|/srv/notes|run|server.py", process: "uv|--directory|/srv/notes|run|server.py", want: yes},
		{entry: "uv|--directory|/srv/notes|run|server.py", process: "/srv/notes/.venv/bin/python3|server.py", folder: "/srv/notes", want: yes},
		{entry: "uv|--directory|/srv/notes|run|server.py", process: "/srv/notes/.venv/bin/python3|server.py", folder: "/srv/shop", want: no},
		{entry: "python|server.py|--directory|/srv/notes", process: "python|server.py|--directory|/srv/notes", folder: "/srv/shop", want: no},
		{entry: "cmd|/c|npx|-y|notes-tool", process: `cmd.exe|/c|npx|-y|notes-tool`, parent: "claude", os: "windows", want: yes},
		{entry: `C:\Tools\notes.exe|--data|C:\Data`, process: `c:\tools\Notes.exe|--data|c:/data`, os: "windows", want: yes},

		// A name that other programs have as well.
		{entry: "npx|-y|@acme/redis-server", process: "redis-server", want: no},
		{entry: "npx|-y|@postgres/mcp", process: "postgres", want: no},
		{entry: "uvx|notes-tool", process: "notes-tool", want: no},
		{entry: "node|/srv/notes/index.js", process: "npx|-y|/srv/notes/index.js", want: no},

		// Scripts that differ only in their folder.
		{entry: "python|server.py", process: "python|server.py", cwd: "/srv/notes", folder: "/srv/notes", want: yes},
		{entry: "python|server.py", process: "python|server.py", cwd: "/srv/notes", folder: "/srv/shop", want: no},
		{entry: "python|server.py", process: "python|server.py", project: "/srv/notes", folder: "/srv/notes", want: yes},
		{entry: "python|./server.py", process: "python|/srv/notes/server.py", project: "/srv/notes", want: yes},
		{entry: "python|server.py", process: "python|server.py", want: no},
		{entry: "python|server.py", process: "python|server.py", folder: "/srv/shop", want: no},
		{entry: "python|server.py", process: "python|server.py", folder: "/srv/shop", parent: "claude", want: yes},
		{entry: "python|server.py", process: "python|server.py", cwd: "/srv/notes", folder: "/private/srv/notes", parent: "claude", want: yes},
		{entry: "./bin/notes", process: "./bin/notes", project: "/srv/notes", folder: "/srv/notes", want: yes},
		{entry: "./bin/notes", process: "./bin/notes", project: "/srv/notes", folder: "/srv/shop", want: no},

		// Variables.
		{entry: "python|~/notes/server.py", process: "python|/home/me/notes/server.py", want: yes},
		{entry: "node|${HOME}/notes/index.js", process: "node|/home/me/notes/index.js", want: yes},
		{entry: "node|${workspaceFolder}/tools/index.js", process: "node|/srv/notes/tools/index.js", project: "/srv/notes", want: yes},
		{entry: "node|${workspaceFolder}/tools/index.js", process: "node|/srv/shop/tools/index.js", project: "/srv/notes", want: no},
		{entry: "node|${CLAUDE_PLUGIN_ROOT}/index.js", process: "node|/etc/clients/index.js", want: yes},
		{entry: "node|${SOMEWHERE}/index.js", process: "node|/srv/notes/index.js", want: no},
		{entry: "node|${SOMEWHERE}/index.js", process: "node|/srv/notes/index.js", parent: "claude", want: yes},
		{entry: "notes-server|--token|${env:TOKEN}", process: "notes-server|--token|abc", parent: "init", want: yes},
		{entry: "notes-server|--token=${input:token}|x", process: "notes-server|--token=abc|x", parent: "init", want: yes},
		{entry: "notes-server|--token|$TOKEN", process: "notes-server|--other|abc", parent: "claude", want: no},
		{entry: "notes-server|%DATA%\\x", process: `notes-server.exe|C:\Data\x`, parent: "claude", os: "windows", want: yes},

		// An interpreter, a launcher or an everyday tool alone.
		{entry: "node", process: "node", want: no},
		{entry: "python", process: "python|manage.py|runserver", want: no},
		{entry: "python3|-u", process: "python3|-u", want: no},
		{entry: "npx", process: "npx|-y|anything", want: no},
		{entry: "npx|-y", process: "npx|-y|anything", want: no},
		{entry: "docker", process: "docker|ps", want: no},
		{entry: "docker|run", process: "docker|run|-it|ubuntu", want: no},
		{entry: "uv|run", process: "uv|run|pytest", want: no},
		{entry: "bash", process: "bash", want: no},
		{entry: "bash|-l", process: "bash|-l", want: no},
		{entry: "sh|-c", process: "sh|-c|make", want: no},
		{entry: "vim|server.py", process: "vim|server.py", folder: "/srv", project: "/srv", want: no},
		{entry: "code|.", process: "code|.", want: no},
		{entry: "git|status", process: "git|status", want: no},
		{entry: "claude", process: "claude", want: no},
		{entry: "${SERVER}|a", process: "anything|a", want: no},
		{entry: "node|${SCRIPT}", process: "node|/srv/app.js", want: no},
	} {
		t.Run(c.entry+" and "+c.process, func(t *testing.T) {
			os, parent := c.os, c.parent
			if os == "" {
				os = "linux"
			}
			if parent == "" {
				parent = "-zsh"
			}
			s := configuredTable(os, configuredProc{1, 0, "init", ""}, configuredProc{10, 1, parent, ""}, configuredProc{20, 10, c.process, c.folder})
			words := strings.Split(c.entry, "|")
			seen := process.Recognise(s)
			configured.Attribute(seen, config.Found{Home: "/home/me", Servers: []config.Server{{
				Client: "Cursor", Name: "my notes", File: "/etc/clients/mcp.json", Transport: config.Stdio, Command: words[0], Args: words[1:], CWD: c.cwd, Project: c.project,
			}}}, nil)
			got := ""
			for _, srv := range rules.Judge(seen, rules.Options{}).Servers {
				if slices.Contains(srv.PIDs, 20) && srv.Server == "my notes" {
					got = strings.TrimSuffix(srv.RecognisedBy, ", by configured")
				}
			}
			if got != c.want {
				t.Errorf("recognised: %q, want %q", got, c.want)
			}
		})
	}
}

// TestConfiguredChain gives the name of an entry to all processes of an instance, and keeps their identity.
func TestConfiguredChain(t *testing.T) {
	s := configuredTable("linux",
		configuredProc{1, 0, "init", ""}, configuredProc{10, 1, "claude", "/srv/app"},
		configuredProc{20, 10, "npm exec @acme/desk a", ""}, configuredProc{21, 20, "sh|-c|commander a", ""}, configuredProc{22, 21, "node|/home/me/.npm/_npx/0f/node_modules/.bin/commander|a", ""},
		configuredProc{30, 10, "python|server.py", "/srv/app"}, configuredProc{31, 30, "python|worker.py", "/srv/app"},
		configuredProc{40, 1, "node|/opt/agent.js", ""}, configuredProc{41, 40, "python|server.py", "/srv/app"},
	)
	seen := process.Recognise(s)
	var looked [][]int
	configured.Attribute(seen, config.Found{Servers: []config.Server{
		{Client: "Cursor", Name: "theirs", Command: "npx", Args: []string{"-y", "@acme/desk", "a"}},
		{Client: "Claude Code", Name: "desk", Command: "npx", Args: []string{"-y", "@acme/desk", "a"}},
		{Client: "Claude Code", Name: "app", File: "/home/me/.claude.json", Command: "python", Args: []string{"server.py"}, Project: "/srv/app"},
	}}, func(pids []int) { looked = append(looked, pids) })
	r := rules.Judge(seen, rules.Options{})
	got := map[string][][]int{}
	for _, srv := range r.Servers {
		got[srv.Server] = append(got[srv.Server], srv.PIDs)
		if srv.RecognisedBy != "certain, by configured" {
			t.Errorf("%s was recognised %s", srv.Server, srv.RecognisedBy)
		}
	}
	want := map[string][][]int{"desk": {{20, 21, 22}}, "app": {{30, 31}, {41}}}
	if len(got) != len(want) || !slices.EqualFunc(got["desk"], want["desk"], slices.Equal) || !slices.EqualFunc(got["app"], want["app"], slices.Equal) {
		t.Errorf("servers %v, want %v", got, want)
	}
	var clients []string
	for _, c := range r.Clients {
		clients = append(clients, c.Name)
	}
	if !slices.Contains(clients, "agent") { // a program that starts a configured server is a client
		t.Errorf("clients %v", clients)
	}
	var all []int
	for _, pids := range looked {
		all = append(all, pids...)
	}
	slices.Sort(all)
	if slices.Contains(all, 10) || slices.Contains(all, 1) || !slices.Contains(all, 30) || !slices.Contains(all, 41) || len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("looked at %v: only what was not known before, each once", looked)
	}
}

// TestConfiguredGateway keeps the name of a gateway, by which rules know it, and does not make a server of a client.
func TestConfiguredGateway(t *testing.T) {
	s := configuredTable("linux", configuredProc{1, 0, "init", ""}, configuredProc{10, 1, "claude", ""},
		configuredProc{20, 10, "npm exec supergateway --stdio notes-server --port 8000", ""}, configuredProc{21, 20, "node|/home/me/.npm/_npx/0f/node_modules/.bin/supergateway|--stdio|notes-server|--port|8000", ""})
	seen := process.Recognise(s)
	configured := configured.Attribute(seen, config.Found{Servers: []config.Server{
		{Client: "Claude Code", Name: "remote", Command: "npx", Args: []string{"-y", "supergateway", "--stdio", "notes-server", "--port", "8000"}},
		{Client: "Cursor", Name: "me", Command: "claude"},
	}}, nil)
	r := rules.Judge(seen, rules.Options{})
	if len(r.Servers) != 0 || len(r.Gateways) != 1 || r.Gateways[0].Name != "supergateway" || len(r.Clients) != 1 {
		t.Errorf("servers %v, gateways %v, clients %v", r.Servers, r.Gateways, r.Clients)
	}
	if got := configured.Report().Servers; got[0].Instances != 1 || got[0].PIDs[0] != 20 || got[1].Instances != 0 {
		t.Errorf("configuration %+v", got)
	}
}

// TestFolders finds the folders that may contain project files, and files on command lines.
func TestFolders(t *testing.T) {
	s := configuredTable("linux", configuredProc{1, 0, "init", "/"}, configuredProc{10, 1, "claude|--mcp-config|mcp.json", "/srv/app"}, configuredProc{11, 1, "claude", "/srv/app"}, configuredProc{12, 1, "codex", "/srv/other"},
		configuredProc{13, 1, "claude", "/home/other"}, configuredProc{14, 1, `claude|--mcp-config|{"mcpServers":{}}`, ""}, configuredProc{15, 1, "mcpo|--config|/etc/mcpo.json", ""})
	me, other := 1000, 1001
	s.Host.UID = &me
	s.Processes[4].UID = &other
	seen := process.Recognise(s)
	if got, want := configured.Folders(seen), []config.Folder{{Path: "/srv/app", Client: "Claude Code"}, {Path: "/srv/other", Client: "Codex"}}; !slices.Equal(got, want) {
		t.Errorf("folders %v, want %v", got, want)
	}
	if got, want := configured.Named(seen), []config.Named{{Path: "/srv/app/mcp.json", Client: "Claude Code"}, {Path: "/etc/mcpo.json", Client: "mcpo"}}; !slices.Equal(got, want) {
		t.Errorf("named %v, want %v", got, want)
	}
}

// TestConfiguredTwice attributes the same configuration again.
func TestConfiguredTwice(t *testing.T) {
	s := configuredTable("linux", configuredProc{1, 0, "init", ""}, configuredProc{10, 1, "claude", "/srv/app"}, configuredProc{20, 10, "python|server.py", "/srv/app"})
	found := config.Found{Servers: []config.Server{{Client: "Claude Code", Name: "app", Command: "python", Args: []string{"server.py"}, Project: "/srv/app"}}}
	seen := process.Recognise(s)
	for range 3 {
		configured.Attribute(seen, found, nil)
		if r := rules.Judge(seen, rules.Options{}); len(r.Servers) != 1 || r.Servers[0].Server != "app" {
			t.Fatalf("servers %+v", r.Servers)
		}
	}
}

// configuredProc is a process with its words, separated by "|", and its working directory.
type configuredProc struct {
	pid, ppid  int
	words, cwd string
}

var lookedAt = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func configuredTable(os string, procs ...configuredProc) *scan.Snapshot {
	s := &scan.Snapshot{Schema: scan.Schema, Kind: scan.Kind, Taken: lookedAt, Host: scan.Host{OS: os, Services: []scan.Service{}}}
	for _, p := range procs {
		began := lookedAt.Add(-time.Hour + time.Duration(p.pid)*time.Minute/10)
		s.Processes = append(s.Processes, scan.Process{PID: p.pid, PPID: p.ppid, Start: began.UnixMilli(), Started: began, Args: strings.Split(p.words, "|"), CWD: p.cwd, TTY: "pts/0"})
	}
	return s
}

// TestConfiguredCases configures what runs in the cases. The name of a server must not change the findings, above all
// not what is safe to terminate.
func TestConfiguredCases(t *testing.T) {
	named := 0
	tables.EachCase(t, "../../testdata/snapshots", func(t *testing.T, c *tables.Case) {
		plain := rules.Judge(process.Recognise(&c.Snapshot), rules.Options{})
		var found config.Found
		for _, srv := range plain.Servers {
			for _, p := range c.Snapshot.Processes {
				if p.PID == srv.RootPID && len(p.Args) > 0 {
					words := strings.Fields(strings.Join(p.Args, " "))
					found.Servers = append(found.Servers, config.Server{Client: "Cursor", Name: "mine", Transport: config.Stdio, Command: words[0], Args: words[1:], CWD: p.CWD})
				}
			}
		}
		seen := process.Recognise(&c.Snapshot)
		configured.Attribute(seen, found, nil)
		with := rules.Judge(seen, rules.Options{})
		if a, b := subjects(plain), subjects(with); a != b {
			t.Errorf("findings without and with a configuration:\n%s\n%s", a, b)
		}
		for _, srv := range with.Servers {
			if srv.Server == "mine" {
				named++
			}
		}
	})
	if named < 100 {
		t.Errorf("%d servers were recognised by configuration, want at least 100 of the cases'", named)
	}
}

func subjects(r *rules.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintln(&b, f.Rule, f.Severity, f.PIDs, f.Reap)
	}
	return b.String()
}
