package configured_test

import (
	"slices"
	"strings"
	"testing"

	"mcpdoctor/rules"
	"mcpdoctor/rules/configured"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/config"
)

// mine returns how process 20 was recognised if it has the name of the entry, else "".
func mine(seen *process.Recognised) string {
	for _, srv := range rules.Judge(seen, rules.Options{}).Servers {
		if slices.Contains(srv.PIDs, 20) && srv.Server == "mine" {
			return srv.RecognisedBy
		}
	}
	return ""
}

// someJobs are running jobs of all kinds that have nothing to do with MCP.
var someJobs = []string{
	"pg_dump|prod", "/usr/bin/pg_dump|prod", "certbot|renew", "/usr/bin/python3|/usr/bin/certbot|renew", "ffmpeg|-i|in.mp4|out.mkv", "borgmatic|--verbosity|1",
	"rsync|-a|/srv|/backup", "tar|czf|/backup/srv.tgz|/srv", "git|fetch|--all", "ssh|build|make", "java|-jar|/opt/app.jar", "bash|/opt/deploy.sh", "bash|deploy.sh",
	"/opt/deploy.sh", "sh|-c|sleep 5; /opt/deploy.sh prod", "sh|-c|/opt/deploy.sh prod", "bash|-lc|node /srv/app/worker.js", "python3|-c|from jobs import nightly; nightly()",
	"node|-e|require('/srv/app/worker').run()", "node|/srv/app/worker.js", "python3|/opt/nightly_worker.py", "python3|-m|app.main", "python|manage.py|runworker",
	"/srv/app/bin/worker|--queue|default", "worker", "worker|--queue|default", "npx|-y|some-worker|default", "uvx|some-worker", "uv|run|worker.py", "go|run|.",
	"deno|task|start", "make|serve", "npm|start", "docker|run|--rm|-i|acme/worker", "php|artisan|queue:work", "env|A=b|worker|default", "nice|worker|default",
}

// TestPlantedProject has a cloned repository whose file says that the jobs of this machine are its servers, and a client
// that works in it. No job becomes a server, in any folder and below any parent.
func TestPlantedProject(t *testing.T) {
	const clone = "/home/me/src/clone"
	for _, job := range someJobs {
		words := strings.Split(job, "|")
		planted := config.Server{Client: "Claude Code", Name: "mine", File: clone + "/.mcp.json", Project: clone, Transport: config.Stdio, Command: words[0], Args: words[1:]}
		for _, folder := range []string{"", "/", "/home/me", "/srv/app", clone + "-2", clone} {
			for name, above := range map[string][]configuredProc{
				"a shell":               {{11, 1, "-zsh", ""}},
				"a script":              {{11, 1, "python|/opt/all.py", ""}},
				"init":                  nil,
				"cron":                  {{11, 1, "/usr/sbin/cron", ""}},
				"another client":        {{11, 1, "codex", clone}},
				"the client elsewhere":  {{11, 1, "claude", "/srv/app"}},
				"a command of a client": {{11, 10, "/bin/zsh|-c|source x && eval '...'", clone}},
			} {
				up := 1
				if len(above) > 0 {
					up = 11
				}
				procs := append([]configuredProc{{1, 0, "init", ""}, {10, 1, "claude", clone}}, above...)
				seen := process.Recognise(configuredTable("linux", append(procs, configuredProc{20, up, job, folder})...))
				configured.Attribute(seen, config.Found{Home: "/home/me", Servers: []config.Server{planted}}, nil)
				got := mine(seen)
				// An orphan that runs a file of the project in its folder may be its server.
				own := folder == clone && name == "init" && slices.Contains([]string{"python|manage.py|runworker", "uv|run|worker.py", "php|artisan|queue:work"}, job)
				if own && strings.HasPrefix(got, "possible") {
					continue
				}
				if got != "" || own {
					t.Errorf("%s below %s in %q: recognised %q", job, name, folder, got)
				}
			}
		}
	}
}

// TestProjectServers recognises the servers of a project's file.
func TestProjectServers(t *testing.T) {
	const project = "/srv/shop"
	entry := func(words ...string) config.Server {
		return config.Server{Client: "Claude Code", Name: "mine", File: project + "/.mcp.json", Project: project, Transport: config.Stdio, Command: words[0], Args: words[1:]}
	}
	alive := []configuredProc{{1, 0, "init", ""}, {10, 1, "claude", project}}
	gone := alive[:1]
	for _, c := range []struct {
		name  string
		entry config.Server
		procs []configuredProc
		want  string
	}{
		{"below its client", entry("python", "server.py"), append(alive[:2:2], configuredProc{20, 10, "python|server.py", project}), "certain, by configured"},
		{"below its client, which works further down", entry("python", "server.py"), []configuredProc{{1, 0, "init", ""}, {10, 1, "claude", project + "/web"}, {20, 10, "python|server.py", project}}, "certain, by configured"},
		{"below its launcher", entry("uv", "run", "server.py"), append(alive[:2:2], configuredProc{11, 10, "uv|run|server.py", project}, configuredProc{20, 11, "python|server.py", project}), "certain, by configured"},
		{"an absolute path below its client", entry("node", "/opt/shop/x.js"), append(alive[:2:2], configuredProc{20, 10, "node|/opt/shop/x.js", project}), "certain, by configured"},
		{"a program of the system below its client", entry("pg_dump", "prod"), append(alive[:2:2], configuredProc{20, 10, "pg_dump|prod", project}), "possible, by configured"},
		{"a script of shell below its client", entry("bash", "/opt/deploy.sh"), append(alive[:2:2], configuredProc{20, 10, "bash|/opt/deploy.sh", project}), "possible, by configured"},
		{"a known server behind a shell below its client", entry("sh", "-c", "npx -y desk-mcp"), append(alive[:2:2], configuredProc{20, 10, "sh|-c|npx -y desk-mcp", project}), "likely, by convention"},
		{"a name alone below its client", entry("server"), append(alive[:2:2], configuredProc{20, 10, "server", project}), "possible, by configured"},
		{"left in its folder", entry("python", "server.py"), append(gone[:1:1], configuredProc{20, 1, "python|server.py", project}), "possible, by configured"},
		{"a binary left in its folder", entry("./bin/shop"), append(gone[:1:1], configuredProc{20, 1, "./bin/shop", project}), "possible, by configured"},
		{"left elsewhere", entry("python", "server.py"), append(gone[:1:1], configuredProc{20, 1, "python|server.py", "/srv/other"}), ""},
		{"a script from elsewhere", entry("python", "/opt/server.py"), append(gone[:1:1], configuredProc{20, 1, "python|/opt/server.py", project}), ""},
		{"a module", entry("python", "-m", "server"), append(gone[:1:1], configuredProc{20, 1, "python|-m|server", project}), ""},
		{"more words", entry("python", "server.py"), append(gone[:1:1], configuredProc{20, 1, "python|server.py|migrate", project}), ""},
		{"not left", entry("python", "server.py"), append(gone[:1:1], configuredProc{11, 1, "-zsh", project}, configuredProc{20, 11, "python|server.py", project}), ""},
		{"the name of a server that is known", entry("npx", "-y", "desk-mcp"), append(gone[:1:1], configuredProc{20, 1, "npm exec desk-mcp", project}), "likely, by convention"},
		{"no name elsewhere", entry("npx", "-y", "desk-mcp"), append(gone[:1:1], configuredProc{20, 1, "npm exec desk-mcp", "/srv/other"}), ""},
	} {
		seen := process.Recognise(configuredTable("linux", c.procs...))
		for range 2 { // the result is the same
			configured.Attribute(seen, config.Found{Home: "/home/me", Servers: []config.Server{c.entry}}, nil)
			if got := mine(seen); got != c.want {
				t.Errorf("%s: recognised %q, want %q", c.name, got, c.want)
			}
		}
	}
	for _, wide := range []string{"/", "/home/me", "/home"} { // not a project
		e := entry("python", "server.py")
		e.Project, e.File = wide, strings.TrimRight(wide, "/")+"/.mcp.json"
		seen := process.Recognise(configuredTable("linux", configuredProc{1, 0, "init", ""}, configuredProc{20, 1, "python|server.py", wide}))
		configured.Attribute(seen, config.Found{Home: "/home/me", Servers: []config.Server{e}}, nil)
		if got := mine(seen); got != "" {
			t.Errorf("in %s: recognised %q", wide, got)
		}
	}
}

// TestHonestFile has a user's own file, and jobs that only look like its servers.
func TestHonestFile(t *testing.T) {
	const folder = "/srv/notes"
	for _, c := range []struct {
		entry, cwd  string
		job, folder string // the same words when empty
		parent      string
		want        bool
	}{
		// An entry with a working directory.
		{entry: "node|/srv/notes/x.js", cwd: folder, folder: folder, want: true},
		{entry: "node|/srv/notes/x.js", cwd: folder, folder: "/srv/other"},
		{entry: "node|/srv/notes/x.js", cwd: folder},
		{entry: "npx|-y|notes-tool", cwd: folder, job: "npm exec notes-tool", folder: folder, want: true},
		{entry: "npx|-y|notes-tool", cwd: folder, job: "npm exec notes-tool", folder: "/srv/other"},

		// A program that depends on the folder in which it is started.
		{entry: "python|-m|server", folder: folder},
		{entry: "python|-m|server", cwd: folder, folder: folder, want: true},
		{entry: "python|-m|server", folder: folder, parent: "claude", want: true},
		{entry: "python|-m|app.main", folder: folder},
		{entry: "python|-m|app.main", cwd: folder, folder: "/srv/other", job: "python3|-m|app.main"},
		{entry: "./server", folder: folder},
		{entry: "./server", cwd: folder, folder: folder, want: true},
		{entry: "./server", cwd: folder, folder: "/srv/other"},
		{entry: "bin/server|--stdio", folder: folder},
		{entry: "go|run|.", folder: folder},
		{entry: "go|run|.", cwd: folder, folder: folder, want: true},
		{entry: "go|run|.", folder: folder, parent: "claude", want: true},
		{entry: "go|run|./cmd/server", folder: folder},
		{entry: "deno|task|start", folder: folder},
		{entry: "deno|task|start", cwd: folder, folder: "/srv/other"},
		{entry: "deno|task|start", folder: folder, parent: "claude", want: true},
		{entry: "uv|run|python|-m|worker", folder: folder},
		{entry: "uv|run|python|-m|worker", cwd: folder, folder: folder, want: true},
		{entry: "uv|run|worker", folder: folder},
		{entry: "uv|run|worker|--all", folder: folder, parent: "init"},
		{entry: "uv|--directory|/srv/notes|run|worker", want: true},
		{entry: "poetry|run|worker|--all", folder: folder},
		{entry: "pnpm|exec|worker|--all", folder: folder},
		{entry: "cargo|run|--bin|worker", folder: folder},
		{entry: "dotnet|run|--project|Worker", folder: folder},
		{entry: "npx|.", folder: folder, job: "npm exec ."},
		{entry: "npx|tsx|server.ts", folder: folder},
		{entry: "uvx|--from|.|worker", folder: folder},
		{entry: "node|server.js", folder: folder},
		{entry: "node|server.js", cwd: folder, folder: folder, want: true},
		{entry: "node|dist/index.js", folder: folder},
		{entry: "node|node_modules/some-worker/index.js", folder: folder},
		{entry: "npm|start", folder: folder},
		{entry: "npm|run|serve", folder: folder, parent: "init"},
		{entry: "make|serve", folder: folder},
		{entry: "php|artisan|queue:work", folder: folder},
		{entry: "java|-cp|build|Main", folder: folder},
		{entry: "python|${WORK}/worker.py", job: "python|/srv/notes/worker.py", folder: folder, parent: "init"},

		// A name, alone and with arguments: another program may have it, in another folder.
		{entry: "server", folder: folder},
		{entry: "server", parent: "init"},
		{entry: "server", cwd: folder, folder: folder, parent: "init"},
		{entry: "server", parent: "claude", want: true},
		{entry: "worker|${QUEUE}", job: "worker|default", parent: "init"},
		{entry: "worker|--queue|default"},
		{entry: "worker|--queue|default", parent: "init", want: true},
		{entry: "worker|--queue|default", job: "worker|--queue|default|--once", parent: "init"},
		{entry: "/opt/notes/bin/server|--stdio", job: "/srv/app/bin/server|--stdio", parent: "init"},
		{entry: "/opt/notes/bin/server|--stdio", job: "server|--stdio", parent: "init"},
		{entry: "/opt/notes/bin/server|--stdio", want: true},
		{entry: "/opt/notes/bin/server", want: true},

		// Paths and packages identify what is started in any folder.
		{entry: "node|/srv/notes/x.js", want: true},
		{entry: "node|/srv/notes/x.js", parent: "python|/opt/agent.py", want: true},
		{entry: "node|/srv/notes/x.js", job: "node|/srv/notes/x.js|migrate"},
		{entry: "java|-jar|/opt/notes.jar", want: true},
		{entry: "npx|-y|notes-tool", job: "npm exec notes-tool", want: true},
		{entry: "npx|-y|notes-tool", job: "node|/srv/app/node_modules/.bin/notes-tool"},
		{entry: "npx|-y|notes-tool", job: "node|/srv/app/node_modules/.bin/notes-tool", parent: "init", want: true},
		{entry: "npx|-y|notes-tool", job: "sh|-c|notes-tool"},
		{entry: "deno|run|-A|npm:notes-tool", want: true},
		{entry: "docker|run|-i|acme/notes", want: true},

		// Programs of the system, and code on command lines.
		{entry: "pg_dump|prod"}, {entry: "pg_dump|prod", parent: "init"}, {entry: "/usr/bin/pg_dump|prod", parent: "init"}, {entry: "/opt/pg/bin/pg_dump|prod", parent: "init"},
		{entry: "ffmpeg|-i|in.mp4|out.mkv", parent: "init"}, {entry: "certbot|renew", parent: "init"}, {entry: "certbot|renew", job: "/usr/bin/python3|/usr/bin/certbot|renew", parent: "init"},
		{entry: "/usr/bin/python3|/usr/bin/certbot|renew", parent: "init"}, {entry: "borgmatic|--verbosity|1", parent: "init"}, {entry: "rsync|-a|/srv|/backup", parent: "init"},
		{entry: "tar|czf|/backup/a.tgz|/srv", parent: "init"}, {entry: "git|daemon|--export-all", parent: "init"}, {entry: "ssh|-N|build", parent: "init"},
		{entry: "docker|run|--rm|-i|certbot/certbot|renew", parent: "init"}, {entry: "docker|exec|-i|db|pg_dump|prod", parent: "init"}, {entry: "/usr/bin/nightly|--all", parent: "init"},
		{entry: "sh|-c|/opt/notes/run.sh --all", parent: "init"}, {entry: "sh|-c|worker --all", parent: "init"}, {entry: "bash|-lc|node /srv/notes/x.js", parent: "init"},
		{entry: "env|A=b|sh|-c|/opt/notes/run.sh --all", parent: "init"}, {entry: "python3|-c|from jobs import nightly; nightly()", parent: "init"}, {entry: "node|-e|require('/srv/app/x').run()", parent: "init"},
		{entry: "node|/srv/notes/x.js", parent: "/usr/sbin/cron"}, {entry: "node|/srv/notes/x.js", parent: "/usr/sbin/crond|-n"}, {entry: "npx|-y|notes-tool", job: "npm exec notes-tool", parent: "watchexec|npx"},
	} {
		job, parent := c.job, c.parent
		if job == "" {
			job = c.entry
		}
		if parent == "" {
			parent = "-zsh"
		}
		words := strings.Split(c.entry, "|")
		seen := process.Recognise(configuredTable("linux", configuredProc{1, 0, "init", ""}, configuredProc{10, 1, parent, ""}, configuredProc{20, 10, job, c.folder}))
		configured.Attribute(seen, config.Found{Home: "/home/me", Servers: []config.Server{{
			Client: "Cursor", Name: "mine", File: "/home/me/.cursor/mcp.json", Transport: config.Stdio, Command: words[0], Args: words[1:], CWD: c.cwd,
		}}}, nil)
		if got := mine(seen); (got != "") != c.want || c.want && got != "certain, by configured" {
			t.Errorf("entry %s in %q and %s in %q below %s: recognised %q", c.entry, c.cwd, job, c.folder, parent, got)
		}
	}
}

// TestConfiguredShell recognises a line of shell by what it started.
func TestConfiguredShell(t *testing.T) {
	for _, c := range []struct{ entry, line, below string }{
		{"npx|-y|notes-tool|a", "sh|-c|notes-tool a", "node|/home/me/.npm/_npx/0f/node_modules/.bin/notes-tool|a"},
		{"sh|-c|cd /srv/notes && node /srv/notes/x.js", "sh|-c|cd /srv/notes && node /srv/notes/x.js", "node|/srv/notes/x.js"},
		{"cmd|/c|npx|-y|notes-tool", "cmd|/c|npx|-y|notes-tool", "npm exec notes-tool"},
	} {
		words := strings.Split(c.entry, "|")
		seen := process.Recognise(configuredTable("linux", configuredProc{1, 0, "init", ""}, configuredProc{20, 1, c.line, ""}, configuredProc{21, 20, c.below, ""}))
		configured.Attribute(seen, config.Found{Servers: []config.Server{{Client: "Cursor", Name: "mine", Transport: config.Stdio, Command: words[0], Args: words[1:]}}}, nil)
		if servers := rules.Judge(seen, rules.Options{}).Servers; len(servers) != 1 || !slices.Equal(servers[0].PIDs, []int{20, 21}) || mine(seen) != "certain, by configured" {
			t.Errorf("%s: %+v", c.entry, servers)
		}
	}
}

// TestNamedFile applies a file on a command line only to that program's own children.
func TestNamedFile(t *testing.T) {
	named := config.Server{Client: "Claude Code", Name: "mine", File: "/tmp/mcp.json", Named: true, Transport: config.Stdio, Command: "node", Args: []string{"/opt/worker.js"}}
	for parent, want := range map[string]string{"claude": "certain, by configured", "-zsh": "", "init": "", "codex": ""} {
		seen := process.Recognise(configuredTable("linux", configuredProc{1, 0, "init", ""}, configuredProc{10, 1, parent, ""}, configuredProc{20, 10, "node|/opt/worker.js", ""}))
		configured.Attribute(seen, config.Found{Servers: []config.Server{named}}, nil)
		if got := mine(seen); got != want {
			t.Errorf("below %s: recognised %q, want %q", parent, got, want)
		}
	}
}

// TestConfiguredStdin requires a stdin that can carry MCP, if it is known.
func TestConfiguredStdin(t *testing.T) {
	for stdin, want := range map[scan.StdinType]string{scan.StdinPipe: "certain, by configured", scan.StdinSocket: "certain, by configured", scan.StdinNull: "", scan.StdinTTY: "", scan.StdinFile: ""} {
		for _, parent := range []string{"claude", "init", "-zsh"} {
			s := configuredTable("linux", configuredProc{1, 0, "init", ""}, configuredProc{10, 1, parent, ""}, configuredProc{20, 10, "node|/opt/notes/x.js", ""})
			seen := process.Recognise(s)
			configured.Attribute(seen, config.Found{Servers: []config.Server{{Client: "Claude Code", Name: "mine", Transport: config.Stdio, Command: "node", Args: []string{"/opt/notes/x.js"}}}}, func(pids []int) {
				if slices.Contains(pids, 20) {
					s.Processes[2].Stdin = &scan.Stdin{Type: stdin}
				}
			})
			if got := mine(seen); got != want {
				t.Errorf("%s below %s: recognised %q, want %q", stdin, parent, got, want)
			}
		}
	}
}
