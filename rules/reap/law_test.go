package reap

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/terminate"
	"mcpdoctor/testdata/tables"
)

// The laws of reaping, as far as the plan enforces them. The plan trusts no rule: it gets reports that no rule would
// write, which select what must never be signalled. scan/terminate enforces the rest.

const (
	obsidian = "node /srv/node_modules/.bin/obsidian-mcp-server"
	me       = 1000 // the user of mcpdoctor
	self     = 900  // mcpdoctor, started from the shell
	plain    = 800  // an orphan in every plan, lest a test pass because everything is kept
)

// desk is a host whose processes have users, with mcpdoctor and a plain orphan on it.
type desk struct{ *tables.Machine }

func newDesk() desk {
	d := desk{tables.NewMachine()}
	for i := range d.Processes {
		d.Processes[i].UID = user(0)
	}
	d.Processes[2].UID = user(me) // the shell
	d.run(self, 100, time.Second, "mcpdoctor reap --older-than 1m").TTY = "pts/0"
	d.run(plain, 1, 2*time.Hour, obsidian).Stdin = tables.Pipe(scan.PeerClosed)
	return d
}

func user(uid int) *int { return &uid }

func (d desk) run(pid, ppid int, age time.Duration, line string) *scan.Process {
	p := d.Machine.Run(pid, ppid, age, line)
	p.UID = user(me)
	return p
}

func (d desk) proc(pid int) *scan.Process {
	for i := range d.Processes {
		if d.Processes[i].PID == pid {
			return &d.Processes[i]
		}
	}
	panic("no such process")
}

// safe and onRequest are findings that no rule made.
func safe(rule string, pids ...int) rules.Finding {
	return rules.Finding{ID: rule + "-0", Rule: rule, Reap: rules.Reap{Safe: pids}}
}

func onRequest(rule string, pids ...int) rules.Finding {
	return rules.Finding{ID: rule + "-1", Rule: rule, Reap: rules.Reap{OnRequest: pids}}
}

// plan plans what is given, and the plain orphan, which must be planned.
func (d desk) plan(t *testing.T, c Consent, given ...rules.Finding) *Plan {
	t.Helper()
	if c.Self == 0 {
		c.Self = self
	}
	p := d.planAs(c, given...)
	if !slices.Contains(p.PIDs(), plain) {
		t.Fatalf("the plain orphan is not planned: %+v", p.Kept)
	}
	return p
}

func (d desk) planAs(c Consent, given ...rules.Finding) *Plan {
	r := process.Recognise(&d.Snapshot)
	return New(r, &rules.Report{Taken: d.Taken, Host: d.Host, Findings: append(given, safe("orphan", plain))}, c)
}

// only checks that exactly these are planned besides the plain orphan.
func (p *Plan) only(t *testing.T, pids ...int) {
	t.Helper()
	want := append([]int{plain}, pids...)
	slices.Sort(want)
	if got := p.PIDs(); !slices.Equal(got, want) {
		t.Errorf("planned are %v, want %v; kept are %+v", got, want, p.Kept)
	}
}

// keeps checks that a process is kept, for a reason that contains these words.
func (p *Plan) keeps(t *testing.T, pid int, reason string) {
	t.Helper()
	if slices.Contains(p.PIDs(), pid) {
		t.Errorf("pid %d is planned", pid)
	}
	all := slices.Clone(p.Kept)
	for _, d := range p.Instances {
		all = append(all, d.Left...)
	}
	for _, k := range all {
		if slices.Contains(k.PIDs, pid) {
			if !strings.Contains(k.Reason, reason) {
				t.Errorf("pid %d is kept because %q, want %q", pid, k.Reason, reason)
			}
			return
		}
	}
	t.Errorf("pid %d is not listed as kept: %+v", pid, all)
}

func TestLaw1AgeIsCheckedAgain(t *testing.T) {
	d := newDesk()
	d.run(200, 1, 59*time.Minute, obsidian)
	d.run(300, 1, 2*time.Hour, "npm exec obsidian-mcp-server")
	d.run(301, 300, 30*time.Minute, obsidian) // started again by its launcher
	d.run(400, 1, 2*time.Hour, obsidian)
	d.run(401, 400, 10*time.Minute, "git gc")
	d.run(500, 1, -time.Minute, obsidian) // the clock was set back
	given := safe("orphan", 200, 300, 301, 400, 401, 500)

	p := d.plan(t, Consent{OlderThan: time.Hour}, given)
	p.only(t, 400)
	p.keeps(t, 200, "59 min old, younger than 1 h")
	p.keeps(t, 300, "pid 301: it is 30 min old")
	p.keeps(t, 301, "pid 301: it is 30 min old")
	p.keeps(t, 401, "10 min old")
	for _, k := range p.Kept {
		if later := !slices.Contains(k.PIDs, 500); k.Young != later {
			t.Errorf("%v may be ended later: %v", k.PIDs, k.Young)
		}
	}
	p.keeps(t, 500, "younger")

	p = d.plan(t, Consent{}, given)
	p.only(t, 200, 300, 301, 400, 401)
	d.plan(t, Consent{OlderThan: -time.Hour}, given).keeps(t, 500, "younger")
}

// The age counts at the time of the look, whatever the report says.
func TestLaw1AgeIsThatOfNow(t *testing.T) {
	d := newDesk()
	d.run(200, 1, 59*time.Minute, obsidian)
	d.Taken = d.Taken.Add(2 * time.Minute)
	d.plan(t, Consent{OlderThan: time.Hour}, safe("orphan", 200)).only(t, 200)
	d.Taken = d.Taken.Add(-10 * time.Minute)
	d.plan(t, Consent{OlderThan: time.Hour}, safe("orphan", 200)).only(t)
}

func TestLaw1OnlyWhatARuleGaveUp(t *testing.T) {
	d := newDesk()
	d.run(200, 1, time.Hour, obsidian) // not selected
	d.run(300, 1, time.Hour, "npm exec obsidian-mcp-server")
	d.run(301, 300, time.Hour, obsidian)
	d.run(400, 1, time.Hour, obsidian)
	d.run(401, 400, time.Hour, "npm run dev")
	d.run(500, 1, time.Hour, "vim notes.md")

	p := d.plan(t, Consent{}, safe("orphan", 300, 400, 500, 4711))
	p.only(t, 400)
	p.keeps(t, 300, "pid 301: no rule selected it") // terminating a launcher alone makes an orphan
	p.keeps(t, 401, "not known to be part of the server")
	p.keeps(t, 500, "belongs to no recognised server")

	d.plan(t, Consent{}, safe("orphan", 301)).keeps(t, 301, "pid 300: no rule selected it")
	d.plan(t, Consent{}, safe("orphan", 300), safe("stale-generation", 301, 300)).only(t, 300, 301)
}

func TestLaw1OnRequestNeedsTheRuleNamed(t *testing.T) {
	d := newDesk()
	d.run(200, 1, time.Hour, obsidian)
	d.run(300, 1, time.Hour, obsidian)
	given := []rules.Finding{onRequest("stale-generation", 200), safe("leftover-helper", 300)}

	d.plan(t, Consent{}, given...).only(t, 300)
	d.plan(t, Consent{Rules: []string{"orphan"}}, given...).only(t)
	d.plan(t, Consent{Rules: []string{"orphan", "stale-generation"}}, given...).only(t, 200)
	d.plan(t, Consent{Rules: []string{"orphan", "leftover-helper"}}, given...).only(t, 300)
	d.plan(t, Consent{Rules: []string{"orphan", "", "stale", "*"}}, given...).only(t)
}

func TestLaw2NeverPID1(t *testing.T) {
	d := newDesk()
	d.Host.Container = true // where a server may be the first process
	first := d.proc(1)
	first.Args, first.UID = strings.Fields(obsidian), user(me)
	d.proc(50).PPID = 0
	d.proc(plain).PPID = 50
	p := d.plan(t, Consent{}, safe("orphan", 1))
	p.only(t)
	p.keeps(t, 1, "pid 1: it is the first process")
	d.plan(t, Consent{}, safe("orphan", 0, -1)).only(t)
}

func TestLaw2NeverAKernelThread(t *testing.T) {
	d := newDesk()
	for _, pid := range []int{2, 30} {
		p := d.run(pid, 2*(pid/30), time.Hour, "")
		p.Name, p.UID = "kworker/0:1", user(me)
	}
	d.run(200, 1, time.Hour, obsidian)
	d.run(201, 200, time.Hour, "").Name = "kworker/0:2" // or a process that wiped its command line
	p := d.plan(t, Consent{}, safe("orphan", 2, 30, 200, 201))
	p.only(t, 200)
	p.keeps(t, 2, "belongs to no recognised server")
	p.keeps(t, 30, "belongs to no recognised server")
	p.keeps(t, 201, "may be a kernel thread")
}

func TestLaw2NeverItself(t *testing.T) {
	d := newDesk()
	d.proc(self).PPID = 1
	d.proc(self).Args = strings.Fields("mcp-server-doctor reap") // were it taken for a server
	p := d.plan(t, Consent{}, safe("orphan", self))
	p.only(t)
	p.keeps(t, self, "running inside it (below pid 900)")
	// Another process of that name is not protected.
	d.run(200, 1, time.Hour, "mcp-server-doctor reap")
	d.plan(t, Consent{}, safe("orphan", 200)).only(t, 200)
}

func TestLaw2NeverAnAncestor(t *testing.T) {
	const claude = "claude -p --output-format stream-json"
	t.Run("a server that runs a shell", func(t *testing.T) {
		d := newDesk()
		d.run(200, 1, time.Hour, "npm exec @wonderwhy-er/desktop-commander")
		d.run(201, 200, time.Hour, "node /x/node_modules/.bin/desktop-commander")
		d.run(202, 201, time.Hour, "bash")
		d.proc(self).PPID = 202
		d.run(210, 201, time.Hour, "npm run dev") // a helper of the same instance, beside it
		p := d.plan(t, Consent{}, safe("orphan", 200, 201, 202, 210))
		p.only(t)
		for _, pid := range []int{200, 201, 202, 210} {
			p.keeps(t, pid, "running inside it (below pid 200)")
		}
	})
	t.Run("an orphaned headless client, with all that belongs to it", func(t *testing.T) {
		d := newDesk()
		d.run(200, 1, time.Hour, claude)
		d.run(201, 200, time.Hour, claude) // the same program in two layers
		d.run(210, 201, time.Hour, "/bin/bash -c mcpdoctor")
		d.proc(self).PPID = 210
		d.run(220, 200, time.Hour, "github-mcp-server stdio")
		d.run(221, 201, time.Hour, obsidian)
		d.run(222, 201, time.Hour, "sh -c ./servers.sh")
		d.run(223, 222, time.Hour, "python -m mcp_server_git")
		d.run(300, 1, time.Hour, claude) // another of the kind is ended
		d.run(301, 300, time.Hour, obsidian)
		given := safe("orphan", 200, 201, 220, 221, 223, 300, 301)
		p := d.plan(t, Consent{}, given)
		p.only(t, 300, 301)
		p.keeps(t, 200, "running inside it")
		for _, pid := range []int{220, 221, 223} {
			p.keeps(t, pid, "belongs to Claude Code (pid 201), which is kept: mcpdoctor is running inside it")
		}
		// Started from elsewhere, it ends that one too.
		d.proc(self).PPID = 100
		d.plan(t, Consent{}, given).only(t, 200, 201, 220, 221, 223, 300, 301)
	})
	t.Run("an orphaned gateway over the server that runs a shell", func(t *testing.T) {
		d := newDesk()
		d.run(200, 1, time.Hour, "mcp-proxy --port 8000 -- mcp-server-shell")
		d.run(201, 200, time.Hour, "mcp-server-shell")
		d.proc(self).PPID = 201
		d.run(202, 200, time.Hour, "mcp-server-shell")
		p := d.plan(t, Consent{}, safe("orphan", 200, 201, 202))
		p.only(t)
		p.keeps(t, 200, "below pid 200")
		p.keeps(t, 201, "below pid 201")
		p.keeps(t, 202, "belongs to mcp-proxy (pid 200), which is kept")
	})
	t.Run("a hidden parent", func(t *testing.T) {
		d := newDesk()
		d.run(200, 1, time.Hour, claude) // may be above the one that is hidden
		for _, c := range []struct {
			os   string
			ppid int
			all  bool // are kept
		}{
			{"linux", 77777, true}, {"linux", scan.UnknownPPID, true}, {"linux", self, true}, {"linux", 0, false}, {"linux", 100, false},
			{"windows", 77777, false}, // a dead parent keeps its number there
		} {
			d.Host.OS = c.os
			d.proc(self).PPID = c.ppid
			p := d.planAs(Consent{Self: self}, safe("orphan", 200))
			if c.all != (len(p.PIDs()) == 0) {
				t.Errorf("%s, started by %d: planned are %v; kept %+v", c.os, c.ppid, p.PIDs(), p.Kept)
			}
			if c.all {
				p.keeps(t, plain, "the parent of pid 900 cannot be seen")
			}
		}
	})
	t.Run("nothing, if it does not find itself", func(t *testing.T) {
		p := newDesk().planAs(Consent{Self: 4711})
		p.keeps(t, plain, "does not find itself")
	})
}

func TestLaw2NeverAnotherUser(t *testing.T) {
	const root, other = 0, 1001
	build := func(as int) desk {
		d := newDesk()
		d.Host.UID = user(as)
		d.proc(self).UID, d.proc(plain).UID = user(as), user(as)
		d.run(200, 1, time.Hour, obsidian).UID = user(other)
		p := d.run(300, 1, time.Hour, "npm exec obsidian-mcp-server")
		p.UID, p.User = user(as), "dev"
		p = d.run(301, 300, time.Hour, obsidian)
		p.UID, p.User = user(other), "eve"
		d.run(400, 1, time.Hour, obsidian).UID = user(as)
		d.run(401, 400, time.Hour, "npm run dev").UID = user(other)
		d.run(500, 1, time.Hour, obsidian).UID = nil
		return d
	}
	given := safe("orphan", 200, 300, 301, 400, 401, 500)
	for name, as := range map[string]int{"a user": me, "root, without --all-users": root} {
		t.Run(name, func(t *testing.T) {
			p := build(as).plan(t, Consent{}, given)
			p.only(t, 400)
			p.keeps(t, 200, "belongs to the user 1001")
			p.keeps(t, 300, "pid 301: it belongs to the user eve")
			p.keeps(t, 401, "belongs to the user 1001")
			p.keeps(t, 500, "its user is unknown")
		})
	}
	t.Run("a user, with --all-users", func(t *testing.T) { build(me).plan(t, Consent{AllUsers: true}, given).only(t, 400) })
	t.Run("root, with --all-users", func(t *testing.T) {
		build(root).plan(t, Consent{AllUsers: true}, given).only(t, 200, 300, 301, 400, 401, 500)
	})
	t.Run("a saved snapshot belongs to the user who took it", func(t *testing.T) {
		p := build(me).planAs(Consent{}, given)
		p.only(t, 400)
		p.keeps(t, 200, "belongs to the user 1001")
	})
	t.Run("where users have no numbers", func(t *testing.T) {
		d := newDesk()
		for i := range d.Processes {
			d.Processes[i].UID, d.Processes[i].User = nil, `PC\dev`
		}
		d.run(200, 1, time.Hour, obsidian).User = `PC\eve`
		d.proc(200).UID = nil
		d.run(300, 1, time.Hour, obsidian).UID = nil
		p := d.plan(t, Consent{}, safe("orphan", 200, 300))
		p.only(t)
		p.keeps(t, 200, `belongs to the user PC\eve`)
		p.keeps(t, 300, "its user is unknown")
	})
}

func TestLaw2NeverASupervisedProcess(t *testing.T) {
	d := newDesk()
	d.run(200, 1, time.Hour, obsidian) // systemd's job
	d.run(300, 1, time.Hour, "npm exec obsidian-mcp-server")
	d.run(301, 300, time.Hour, obsidian) // a job that its own launcher is not
	d.run(400, 1, time.Hour, "sh /opt/run.sh")
	d.run(401, 400, time.Hour, obsidian) // below a script that is the job
	d.run(500, 1, time.Hour, "PM2 v7.0.4: God Daemon (/home/dev/.pm2)").Args = []string{"PM2 v7.0.4: God Daemon (/home/dev/.pm2)"}
	d.run(501, 500, time.Hour, "node /x/node_modules/.bin/supergateway --stdio foo --port 8000")
	d.run(600, 1, time.Hour, "/usr/bin/python3 /usr/bin/supervisord")
	d.run(601, 600, time.Hour, "sh -c obsidian-mcp-server")
	d.run(602, 601, time.Hour, obsidian)
	d.run(700, 1, time.Hour, "claude -p --output-format stream-json") // a headless client that is a job
	d.run(710, 501, time.Hour, "node /x/foo.mjs")                     // what the kept gateway has below it ends with consent
	d.Host.Services = []scan.Service{
		{Manager: "systemd", Name: "notes.service", MainPID: 200}, {Manager: "systemd", Name: "b.service", MainPID: 301},
		{Manager: "systemd", Name: "run.service", MainPID: 400}, {Manager: "launchd", Name: "agent", MainPID: 700},
	}
	p := d.plan(t, Consent{}, safe("orphan", 200, 300, 301, 401, 501, 601, 602, 700))
	p.only(t)
	p.keeps(t, 200, "supervised by systemd notes.service (pid 200)")
	p.keeps(t, 300, "supervised by systemd b.service (pid 301)")
	p.keeps(t, 401, "supervised by systemd run.service (pid 400)")
	p.keeps(t, 501, "supervised by pm2 (pid 500)")
	p.keeps(t, 601, "supervised by supervisord (pid 600)")
	p.keeps(t, 700, "supervised by launchd agent (pid 700)")
	d.plan(t, Consent{}, safe("spawn-per-request", 710)).only(t, 710)
	// A rule that selected the gateway as well thought of both as one.
	d.plan(t, Consent{}, safe("orphan", 501, 710)).keeps(t, 710, "belongs to supergateway (pid 501), which is kept: it is supervised by pm2")
}

func TestLaw2NeverAClientWithATerminal(t *testing.T) {
	const headless = "claude -p --output-format stream-json"
	t.Run("a client by itself", func(t *testing.T) {
		d := newDesk()
		d.run(200, 1, time.Hour, "claude")
		d.run(300, 1, time.Hour, headless).TTY = "pts/3"
		d.run(400, 1, time.Hour, headless)
		d.run(401, 400, time.Hour, headless).TTY = "pts/3" // the other way round a launcher may have it
		d.run(500, 1, time.Hour, headless).TTY = ""        // not told
		d.run(600, 1, time.Hour, headless)
		p := d.plan(t, Consent{}, safe("orphan", 200, 300, 400, 401, 500, 600))
		p.only(t, 600)
		for _, pid := range []int{200, 300, 400, 401, 500} {
			p.keeps(t, pid, "a client that may be in use")
		}
	})
	t.Run("a program that is only taken for a client", func(t *testing.T) {
		d := newDesk()
		d.run(200, 1, time.Hour, "node my-agent.js")
		d.run(201, 200, time.Hour, obsidian).Stdin = tables.Pipe(scan.PeerOpen, 200)
		d.run(300, 1, time.Hour, "node my-agent.js")
		d.run(301, 300, time.Hour, obsidian).Stdin = tables.Pipe(scan.PeerClosed)
		p := d.plan(t, Consent{}, safe("orphan", 200, 300))
		p.only(t)
		p.keeps(t, 200, "a client that may be in use")
		p.keeps(t, 300, "not a recognised MCP process")
	})
	t.Run("a client below a launcher that started a server too", func(t *testing.T) {
		d := newDesk()
		d.run(200, 1, time.Hour, "npm exec obsidian-mcp-server")
		d.run(201, 200, time.Hour, obsidian)
		d.run(202, 200, time.Hour, "claude").TTY = "pts/3"
		p := d.plan(t, Consent{}, safe("orphan", 200, 201, 202))
		p.only(t)
		p.keeps(t, 202, "pid 202 in it is a client")
	})
	t.Run("a shell that a server has started", func(t *testing.T) {
		d := newDesk()
		d.run(200, 1, time.Hour, obsidian)
		d.run(201, 200, time.Hour, "bash").TTY = "pts/3"
		p := d.plan(t, Consent{}, safe("orphan", 200, 201))
		p.only(t, 200)
		p.keeps(t, 201, "stdin is a terminal")
	})
	t.Run("the servers of a client that is kept", func(t *testing.T) {
		d := newDesk()
		d.run(200, 1, time.Hour, headless).TTY = "pts/3"
		d.run(201, 200, time.Hour, obsidian)
		p := d.plan(t, Consent{}, safe("duplicate-sessions", 200, 201))
		p.only(t)
		p.keeps(t, 201, "belongs to Claude Code (pid 200), which is kept: it is a client")
		// Selected for its own sake, it is another matter.
		d.plan(t, Consent{}, safe("stale-generation", 201)).only(t, 201)
	})
}

func TestLaw2NeverWithoutIdentity(t *testing.T) {
	d := newDesk()
	d.run(200, 1, time.Hour, obsidian).Start = 0
	d.run(300, 1, time.Hour, obsidian).Started = time.Time{}
	d.run(400, 1, time.Hour, "npm exec obsidian-mcp-server").Start = 0
	d.run(401, 400, time.Hour, obsidian)
	d.run(500, 1, time.Hour, obsidian)
	d.run(501, 500, time.Hour, "git gc").Start = 0
	p := d.plan(t, Consent{}, safe("orphan", 200, 300, 400, 401, 500, 501))
	p.only(t, 500)
	p.keeps(t, 200, "start time unreadable")
	p.keeps(t, 300, "its age is unknown")
	p.keeps(t, 401, "pid 400: start time unreadable")
	p.keeps(t, 501, "start time unreadable")

	d.Taken = time.Time{} // a look that does not know when it was
	if p := d.planAs(Consent{Self: self}); len(p.PIDs()) > 0 {
		t.Errorf("planned without a time: %v", p.PIDs())
	}
}

// Groups identify processes, not PIDs.
func TestLaw3GroupsNameProcesses(t *testing.T) {
	d := newDesk()
	p := d.plan(t, Consent{})
	want := d.proc(plain).ID()
	if g := p.Groups(); len(g) != 1 || len(g[0].Stages) != 1 || !slices.Equal(g[0].Stages[0], []scan.ID{want}) || want.Start == 0 {
		t.Errorf("groups are %+v, want %+v", g, want)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var read Plan // a plan read back names no process
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	for _, g := range read.Groups() {
		if id := g.Stages[0][0]; id.Start != 0 {
			t.Errorf("a plan that was read back names %+v", id)
		}
	}
}

func TestLaw4TheServerFirstThenUpwardsThenWhatItStarted(t *testing.T) {
	const chrome = "/opt/google/chrome/chrome --headless --enable-automation --user-data-dir=/home/dev/.cache/ms-playwright-mcp/mcp-chrome-1"
	d := newDesk()
	d.run(200, 1, time.Hour, "npm exec @playwright/mcp")
	d.run(201, 200, time.Hour, "sh -c playwright-mcp")
	d.run(202, 201, time.Hour, "node /x/node_modules/.bin/playwright-mcp")
	d.run(203, 202, time.Hour, "node /x/node_modules/.bin/playwright-mcp --worker")
	d.run(210, 202, time.Hour, chrome)
	d.run(211, 210, time.Hour, "/opt/google/chrome/chrome --type=renderer")
	d.run(300, 1, time.Hour, chrome) // a browser alone is its own server
	d.run(301, 300, time.Hour, "/opt/google/chrome/chrome --type=renderer")
	d.run(302, 301, time.Hour, "/opt/google/chrome/chrome --type=gpu")
	p := d.plan(t, Consent{}, safe("orphan", 200, 201, 202, 203, 210, 211), safe("leftover-helper", 300, 301, 302))
	var got [][][]int
	for _, g := range p.Groups() {
		var stages [][]int
		for _, stage := range g.Stages {
			var pids []int
			for _, id := range stage {
				pids = append(pids, id.PID)
			}
			stages = append(stages, pids)
		}
		got = append(got, stages)
	}
	want := [][][]int{{{203, 202}, {201, 200}, {211, 210}}, {{300}, {302, 301}}, {{plain}}}
	if !slices.EqualFunc(got, want, func(a, b [][]int) bool { return slices.EqualFunc(a, b, slices.Equal[[]int]) }) {
		t.Errorf("stages are %v, want %v", got, want)
	}
}

// confirm plans what is given at two looks, between which the table changes, and returns the confirmed plan.
func (d desk) confirm(t *testing.T, first, second []rules.Finding, change func(later desk)) *Plan {
	t.Helper()
	was := d.plan(t, Consent{OlderThan: time.Minute}, first...)
	later := desk{&tables.Machine{Snapshot: d.Snapshot}}
	later.Processes, later.Taken = slices.Clone(d.Processes), d.Taken.Add(2*time.Second)
	change(later)
	r := process.Recognise(&later.Snapshot)
	rep := rules.Judge(r, rules.Options{}) // for its reasons
	rep.Findings = append(second, safe("orphan", plain))
	p := New(r, rep, Consent{OlderThan: time.Minute, Self: self})
	p.Confirm(was)
	return p
}

// remove takes processes out of the table, as if they had exited.
func (d desk) remove(pids ...int) {
	d.Processes = slices.DeleteFunc(d.Processes, func(p scan.Process) bool { return slices.Contains(pids, p.PID) })
}

// became checks the outcome of an instance that the first look planned.
func (p *Plan) became(t *testing.T, pid int, o terminate.Outcome, reason string) {
	t.Helper()
	for _, d := range p.Instances {
		if !slices.ContainsFunc(d.Processes, func(s Target) bool { return s.PID == pid }) {
			continue
		}
		if d.Outcome != o || !strings.Contains(d.Reason, reason) {
			t.Errorf("pid %d is %s because %q, want %s and %q", pid, d.Outcome, d.Reason, o, reason)
		}
		for _, s := range d.Processes {
			if s.Outcome != o {
				t.Errorf("pid %d is %s in an instance that is %s", s.PID, s.Outcome, o)
			}
		}
		return
	}
	t.Errorf("pid %d is in no instance: %+v", pid, p.Instances)
}

func TestLaw5SkippedAtTheSecondLookWhenItHasAnOwner(t *testing.T) {
	d := newDesk()
	d.run(150, 100, 3*time.Hour, "claude").TTY = "pts/0"
	d.run(200, 1, time.Hour, obsidian).Stdin = tables.Pipe(scan.PeerClosed)
	given := []rules.Finding{safe("orphan", 200)}
	p := d.confirm(t, given, nil, func(later desk) {
		later.proc(200).PPID, later.proc(200).Stdin = 150, tables.Pipe(scan.PeerOpen, 150)
	})
	p.only(t)
	p.became(t, 200, Skipped, "not leaked at the second look: its client Claude Code (pid 150) holds its stdin")
	if p.Summary.Skipped != 1 || len(p.Groups()) != 1 {
		t.Errorf("summary is %+v, groups are %+v", p.Summary, p.Groups())
	}
	// Nothing has changed: both stay planned.
	d.confirm(t, given, given, func(desk) {}).only(t, 200)
}

func TestLaw5SkippedAtTheSecondLookWhenALawKeepsIt(t *testing.T) {
	d := newDesk()
	d.run(200, 1, time.Hour, obsidian)
	given := []rules.Finding{safe("orphan", 200)}
	p := d.confirm(t, given, given, func(later desk) {
		later.Host.Services = []scan.Service{{Manager: "systemd", Name: "x.service", MainPID: 200}}
	})
	p.only(t)
	p.became(t, 200, Skipped, "supervised by systemd x.service (pid 200)")
	p = d.confirm(t, given, given, func(later desk) {
		for i := range later.Processes { // the clock was set back
			later.Processes[i].Started = later.Processes[i].Started.Add(90 * time.Minute)
		}
		later.proc(plain).Started = d.Taken.Add(-time.Hour)
	})
	p.only(t)
	p.became(t, 200, Skipped, "younger than 60 s")
}

func TestLaw5SkippedAtTheSecondLookWhenThePIDWasReused(t *testing.T) {
	d := newDesk()
	d.run(200, 1, time.Hour, obsidian)
	given := []rules.Finding{safe("orphan", 200)}
	p := d.confirm(t, given, given, func(later desk) { later.proc(200).Start++ }) // as old, for the clock's sake
	p.only(t)
	p.keeps(t, 200, "pid 200 was not found to be leaked at the first look")
	p.became(t, 200, terminate.Gone, "exited by itself")
}

func TestLaw5SkippedAtTheSecondLookWhatIsNewInIt(t *testing.T) {
	d := newDesk()
	d.run(200, 1, time.Hour, "npm exec obsidian-mcp-server")
	d.run(201, 200, time.Hour, obsidian)
	d.run(300, 1, time.Hour, obsidian)
	d.run(301, 300, time.Hour, "git gc")
	d.run(400, 1, time.Hour, obsidian) // only the second look selects it
	first := []rules.Finding{safe("orphan", 200, 201, 300, 301)}
	second := []rules.Finding{safe("orphan", 200, 202, 300, 301, 302, 400)}
	p := d.confirm(t, first, second, func(later desk) {
		later.remove(201)
		later.run(202, 200, time.Hour, obsidian) // its launcher has started it again
		later.run(302, 300, time.Hour, "git prune")
	})
	p.only(t, 300, 301)
	p.keeps(t, 202, "pid 202 was not found to be leaked at the first look")
	p.became(t, 200, Skipped, "pid 202 was not found to be leaked at the first look")
	p.keeps(t, 302, "not there at the first look")
	p.keeps(t, 400, "pid 400 was not found to be leaked at the first look")
}

func TestLaw5SkippedAtTheSecondLookOrGone(t *testing.T) {
	d := newDesk()
	d.run(200, 1, time.Hour, obsidian)
	d.run(300, 1, time.Hour, obsidian)
	d.run(400, 1, time.Hour, "npm exec obsidian-mcp-server")
	d.run(401, 400, time.Hour, obsidian)
	d.run(500, 1, time.Hour, obsidian)
	given := safe("orphan", 200, 300, 400, 401, 500)
	p := d.confirm(t, []rules.Finding{given}, []rules.Finding{given}, func(later desk) {
		later.remove(200, 400)
		later.proc(300).State, later.proc(300).Args = "Z", nil
		later.proc(401).PPID = 1
		later.proc(500).Args = strings.Fields("vim notes.md") // execve(2)
	})
	p.only(t, 401)
	p.became(t, 200, terminate.Gone, "exited by itself")
	p.became(t, 300, terminate.Gone, "exited by itself")
	p.became(t, 500, Skipped, "belongs to no recognised server")
}

// A script above a server may be the job of a service manager that could not be asked.
func TestLaw6WhatCannotBeDecidedIsKept(t *testing.T) {
	d := newDesk()
	d.run(400, 1, time.Hour, "sh /opt/run.sh").Unreadable = []string{"service"}
	d.run(401, 400, time.Hour, obsidian)
	for _, consent := range []Consent{{}, {Rules: []string{"orphan"}}} {
		d.plan(t, consent, safe("orphan", 401)).keeps(t, 401, "pid 400 above it may be supervised")
	}
}

func TestLaw6WhatCannotBeReadIsKept(t *testing.T) {
	// What the rules do not call safe.
	d := newDesk()
	d.run(200, 1, time.Hour, obsidian).Unreadable = []string{"stdin"}
	d.run(300, 1, time.Hour, obsidian).Stdin = tables.Pipe(scan.PeerUnknown)
	p := d.run(400, 1, time.Hour, obsidian)
	p.Stdin, p.Unreadable = tables.Pipe(scan.PeerClosed), []string{"service"}
	p = d.run(500, 1, time.Hour, obsidian)
	p.Stdin, p.Unreadable = tables.Pipe(scan.PeerClosed), []string{"listen"}
	p = d.run(600, 1, time.Hour, obsidian)
	p.Stdin, p.Started = tables.Pipe(scan.PeerClosed), time.Time{}
	r := process.Recognise(&d.Snapshot)
	New(r, rules.Judge(r, rules.Options{}), Consent{Self: self}).only(t)
	asked := New(r, rules.Judge(r, rules.Options{}), Consent{Self: self, Rules: []string{"orphan"}})
	asked.only(t, 200, 300, 500)
	asked.keeps(t, 400, "it may be supervised: the service manager could not be asked")

	// What the plan keeps whatever a rule says.
	d = newDesk()
	d.run(200, 1, time.Hour, obsidian)
	d.run(201, 200, time.Hour, "").Unreadable = []string{"args"}
	d.run(300, 1, time.Hour, "sh -c obsidian-mcp-server").Stdin = tables.Pipe(scan.PeerClosed)
	d.run(301, 300, time.Hour, obsidian).Stdin = tables.Pipe(scan.PeerOpen)
	plan := d.plan(t, Consent{}, safe("orphan", 200, 201, 300, 301))
	plan.only(t, 200)
	plan.keeps(t, 201, "command line is unreadable")
	plan.keeps(t, 301, "which process holds it is unknown")
}

// Two servers below one launcher need not have one client.
func TestLaw6WhatCanStillBeReachedIsKept(t *testing.T) {
	d := newDesk()
	d.run(150, 100, time.Hour, "claude").TTY = "pts/0"
	d.run(200, 1, time.Hour, "sh -c ./servers.sh").Stdin = tables.Pipe(scan.PeerClosed)
	d.proc(200).Args = []string{"sh", "-c", "obsidian-mcp-server & github-mcp-server stdio"}
	d.run(201, 200, time.Hour, obsidian).Stdin = tables.Pipe(scan.PeerClosed)
	d.run(202, 200, time.Hour, "github-mcp-server stdio").Stdin = tables.Pipe(scan.PeerOpen, 150)
	given := safe("orphan", 200, 201, 202)
	p := d.plan(t, Consent{}, given)
	p.only(t)
	p.keeps(t, 201, "pid 202: its stdin is held by pid 150")

	d.proc(202).Stdin.Holders = []int{200, plain} // held by the launcher itself, and by another orphan
	d.plan(t, Consent{}, given).only(t, 200, 201, 202)
	d.proc(202).Stdin.Holders = []int{4711}
	d.plan(t, Consent{}, given).keeps(t, 200, "held by pid 4711")
	// If a living gateway holds both, the rule decides.
	d.proc(200).Stdin, d.proc(201).Stdin = tables.Pipe(scan.PeerOpen, 150), tables.Pipe(scan.PeerOpen, 150)
	d.plan(t, Consent{}, given).only(t, 200, 201, 202)
}
