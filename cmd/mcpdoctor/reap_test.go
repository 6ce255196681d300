package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpdoctor/rules/look"
	"mcpdoctor/scan"
	"mcpdoctor/scan/lockfile"
)

// bench is a machine with a client at work, to which a test adds processes. Only those that the test makes orphans may
// be signalled.
type bench struct {
	*machine
	t           testing.TB
	user, shell *task
	cron        *task
	client      *task
	server      *task
	interactive bool
	stdin       io.Reader
	locked      error
}

const (
	everything = "node /srv/mcp/node_modules/.bin/mcp-server-everything"
	obsidian   = "node /home/dev/.npm-global/bin/obsidian-mcp-server"
)

// onBench runs a subtest in a bubble of testing/synctest.
func onBench(t *testing.T, name string, test func(t *testing.T, b *bench)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, newBench(t)) })
	})
}

func newBench(t testing.TB) *bench {
	b := &bench{t: t, machine: newMachine(), stdin: strings.NewReader("")}
	b.user = b.start(b.init, "/usr/lib/systemd/systemd --user")
	b.user.uid, b.user.subreaper, b.user.name, b.user.cgroup = 1000, true, "systemd", "/user.slice/user-1000.slice/user@1000.service/init.scope"
	b.shell = b.start(b.user, "-bash")
	b.shell.setsid()
	b.shell.tty, b.shell.cgroup = "pts/0", "/user.slice/user-1000.slice/session-3.scope"
	b.shell.setStdin(descriptor{kind: scan.StdinTTY})
	b.cron = b.start(b.init, "/usr/sbin/cron -f")
	b.client = b.start(b.shell, "claude")
	b.client.purposes = []*purpose{{what: "a person uses it"}}
	b.server = b.serve(b.client, everything)
	b.lookalikes()
	b.advance(100 * time.Hour)
	return b
}

// lookalikes starts processes that are in use and share a trait with orphans.
func (b *bench) lookalikes() {
	alive := func(up *task, line, what string) *task {
		p := b.start(up, line)
		p.setsid()
		p.uid, p.purposes = 1000, []*purpose{{what: what}}
		p.setStdin(descriptor{kind: scan.StdinNull})
		p.setStdout(descriptor{kind: scan.StdinFile})
		return p
	}
	dead := func() descriptor { return descriptor{kind: scan.StdinPipe, pipe: &pipe{kind: scan.StdinPipe}} }
	alive(b.user, "github-mcp-server http --port 8082", "a daemon").listens = []string{"tcp:127.0.0.1:8082"}
	d := alive(b.user, everything+" streamableHttp", "a daemon whose launcher is gone")
	d.listens = []string{"tcp:127.0.0.1:3001"}
	d.setStdin(dead())
	alive(b.user, "mcp-server-fetch", "it works on an answer").setStdin(dead())
	alive(b.init, "node build.js", "a build").setStdin(dead())
	alive(b.init, "tail -F /var/log/mcp-server.log", "a person reads it")
	sh := alive(b.shell, "sh -c 'printf x | mcp-server-sqlite'", "a script waits for an answer")
	b.serve(sh, "mcp-server-sqlite").purposes[0].neededBy = nil
	worker := alive(b.user, "python worker.py", "a worker of a client that is gone")
	b.serve(worker, "python3 -m mcp_server_git").purposes[0].neededBy = worker
}

// serve starts a stdio server that its client uses.
func (m *machine) serve(client *task, line string) *task {
	p := m.start(client, line)
	m.connect(client, p, scan.StdinSocket)
	p.purposes = []*purpose{{what: "its client uses it", neededBy: client}}
	return p
}

// connect puts a pipe in each direction between a client and a server.
func (m *machine) connect(client, server *task, kind scan.StdinType) {
	in, out := &pipe{kind: kind}, &pipe{kind: kind}
	server.setStdin(descriptor{kind: kind, pipe: in})
	server.setStdout(descriptor{kind: kind, pipe: out})
	client.addWriter(in)
	client.addReader(out)
}

// orphan makes a server with its launchers, whose client exited when they were started, age ago.
func (b *bench) orphan(age time.Duration, lines ...string) []*task {
	present := b.present
	b.present -= age
	client := b.start(b.shell, "claude")
	client.purposes = []*purpose{{what: "a person uses it"}}
	out := []*task{b.serve(client, lines[0])}
	for _, line := range lines[1:] {
		up := out[len(out)-1]
		p := b.start(up, line)
		p.purposes, up.exitsWithChildren = up.purposes, true
		out = append(out, p)
	}
	b.exit(client, "killed")
	b.present = present
	return out
}

// reap runs the command.
func (b *bench) reap(ctx context.Context, args ...string) result {
	b.t.Helper()
	self := b.start(b.cron, "mcpdoctor "+strings.Join(args, " "))
	self.uid = b.observer.uid
	var out, err bytes.Buffer
	w := &world{
		in: b.stdin, out: &out, err: &err, getenv: func(string) string { return "" },
		now: b.wall, machine: b, openProcess: b.openProcess, self: self.pid,
		lock:   func() (func(), error) { return func() {}, b.locked },
		person: func() bool { return b.interactive }, root: func() bool { return b.observer.uid == 0 },
	}
	b.machine.goLive()
	code := run(ctx, append([]string{"reap"}, args...), w)
	for _, mistake := range b.mistakes {
		b.t.Error(mistake)
	}
	return result{code, out.String(), err.String()}
}

// expect checks the exit code and that the output contains words.
func (b *bench) expect(r result, code int, words ...string) {
	b.t.Helper()
	if r.code != code {
		b.t.Errorf("exit code %d, want %d\n%s%s\n%s", r.code, code, r.out, r.err, b.table())
	}
	for _, w := range words {
		if !strings.Contains(r.out+r.err, w) {
			b.t.Errorf("%q is not said:\n%s%s", w, r.out, r.err)
		}
	}
}

// expectSignals checks which signals were sent, as "SIGTERM 4711".
func (b *bench) expectSignals(want ...string) {
	b.t.Helper()
	got := []string{}
	for _, s := range b.signals {
		if s.signal != "SIGCONT" || s.to.state == "T" {
			got = append(got, fmt.Sprintf("%s %d", s.signal, s.to.pid))
		}
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("signals are %v, want %v", got, want)
	}
}

func sigterms(tasks ...*task) []string {
	var out []string
	for _, p := range tasks {
		out = append(out, fmt.Sprintf("SIGTERM %d", p.pid))
	}
	return out
}

func TestReapFromCron(t *testing.T) {
	onBench(t, "an old one and a young one", func(t *testing.T, b *bench) {
		old := b.orphan(2*time.Hour, everything)[0]
		young := b.orphan(10*time.Minute, everything)[0]
		r := b.reap(t.Context(), "--older-than", "1h")
		b.expect(r, 0, fmt.Sprintf("terminated mcp-server-everything (pid %d)", old.pid), "1 instance (1 process", ") terminated", "younger than 1 h")
		b.expectSignals(sigterms(old)...)
		if !old.exited || young.exited || b.server.exited {
			t.Error(b.table())
		}
	})
	onBench(t, "nothing to do", func(t *testing.T, b *bench) {
		if r := b.reap(t.Context(), "--older-than", "1h"); r != (result{}) {
			t.Errorf("it is not quiet: %+v", r)
		}
	})
	onBench(t, "only young ones", func(t *testing.T, b *bench) {
		b.orphan(30*time.Minute, everything)
		if r := b.reap(t.Context(), "--older-than", "1h"); r != (result{}) {
			t.Errorf("it is not quiet: %+v", r)
		}
	})
	onBench(t, "one line for each", func(t *testing.T, b *bench) {
		for range 3 {
			b.orphan(2*time.Hour, obsidian)
		}
		r := b.reap(t.Context(), "--older-than", "1h")
		if b.expect(r, 0, "3 instances ("); strings.Count(r.out, "terminated obsidian-mcp-server") != 3 {
			t.Error(r.out)
		}
	})
}

// Identity: only the process that was looked at is signalled.
func TestReapIdentity(t *testing.T) {
	onBench(t, "the PID is given to another between look and signal", func(t *testing.T, b *bench) {
		p := b.orphan(2*time.Hour, everything)[0]
		var heir *task
		b.beforeOpen = func() {
			b.exit(p, "by itself")
			b.nextPID = p.pid
			heir = b.serve(b.client, everything)
		}
		r := b.reap(t.Context(), "--older-than", "1h", "--json")
		b.expect(r, 0, `"outcome": "gone"`)
		b.expectSignals()
		if heir.pid != p.pid || heir.exited {
			t.Errorf("the heir is %v, ended %t", heir, heir.exited)
		}
	})
	onBench(t, "the PID is given to another between SIGTERM and SIGKILL", func(t *testing.T, b *bench) {
		p := b.orphan(2*time.Hour, everything)[0]
		p.termDelay = -1
		b.after(4*time.Second, func() {
			b.exit(p, "by itself")
			b.nextPID = p.pid
			b.serve(b.client, everything)
		})
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0, "1 instance (")
		b.expectSignals(sigterms(p)...)
	})
	onBench(t, "it vanishes between the looks", func(t *testing.T, b *bench) {
		p := b.orphan(2*time.Hour, everything)[0]
		b.after(time.Second, func() { b.exit(p, "by itself") })
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0)
		b.expectSignals()
	})
	onBench(t, "another with its PID is there at the second look", func(t *testing.T, b *bench) {
		p := b.orphan(2*time.Hour, everything)[0]
		b.after(time.Second, func() {
			b.exit(p, "by itself")
			b.nextPID = p.pid
			b.orphan(90*time.Minute, everything)
		})
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0)
		b.expectSignals()
	})
}

// What is in use again at the second look is skipped.
func TestReapSpares(t *testing.T) {
	onBench(t, "a worker holds its stdin again", func(t *testing.T, b *bench) {
		p := b.orphan(2*time.Hour, everything)[0]
		b.after(time.Second, func() {
			b.client.addWriter(p.stdin.pipe)
			p.purposes = []*purpose{{what: "a client holds it"}}
		})
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0, "skipped", "not leaked at the second look")
		b.expectSignals()
	})
	onBench(t, "it listens, and a client attaches", func(t *testing.T, b *bench) {
		p := b.orphan(2*time.Hour, everything)[0]
		b.after(time.Second, func() {
			p.listens, p.busyConnections = []string{"tcp:127.0.0.1:4001"}, 1
			p.purposes = []*purpose{{what: "a client is attached"}}
		})
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0, "skipped")
		b.expectSignals()
	})
	onBench(t, "it can be looked into no longer", func(t *testing.T, b *bench) {
		p := b.orphan(2*time.Hour, everything)[0]
		b.after(time.Second, func() {
			p.unreadable = []string{"stdin", "listen"}
			p.purposes = []*purpose{{what: "unknown"}}
		})
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0, "skipped")
		b.expectSignals()
	})
}

// Clocks: what was too young at the first look is kept, whatever the clocks do before the second.
func TestReapClocks(t *testing.T) {
	for name, change := range map[string]func(*bench){
		"set forward by hours":  func(b *bench) { b.clockSet += 5 * time.Hour },
		"set back by hours":     func(b *bench) { b.clockSet -= 5 * time.Hour },
		"asleep for hours":      func(b *bench) { b.suspend(5 * time.Hour) },
		"asleep, then set back": func(b *bench) { b.suspend(5 * time.Hour); b.clockSet -= 5 * time.Hour },
	} {
		onBench(t, name, func(t *testing.T, b *bench) {
			old, young := b.orphan(2*time.Hour, everything)[0], b.orphan(50*time.Minute, obsidian)[0]
			b.after(time.Second, func() { change(b) })
			b.expect(b.reap(t.Context(), "--older-than", "1h"), 0, "1 instance (")
			b.expectSignals(sigterms(old)...)
			if young.exited {
				t.Error("the young one was ended")
			}
		})
	}
}

// How processes react to signals.
func TestReapBehaviours(t *testing.T) {
	chain := []string{"=npm exec @modelcontextprotocol/server-everything", "sh -c 'mcp-server-everything'", everything}
	onBench(t, "launchers end when their child has", func(t *testing.T, b *bench) {
		c := b.orphan(2*time.Hour, chain...)
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0, "1 instance (3 processes")
		b.expectSignals(sigterms(c[2])...)
	})
	onBench(t, "launchers stay, and do not forward SIGTERM", func(t *testing.T, b *bench) {
		c := b.orphan(2*time.Hour, chain...)
		c[0].exitsWithChildren, c[1].exitsWithChildren, c[0].forwardsTerm = false, false, true
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0, "1 instance (3 processes")
		b.expectSignals(sigterms(c[2], c[1], c[0])...)
	})
	onBench(t, "it ignores SIGTERM", func(t *testing.T, b *bench) {
		p := b.orphan(2*time.Hour, everything)[0]
		p.termDelay = -1
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0, "killed mcp-server-everything")
		b.expectSignals(fmt.Sprintf("SIGTERM %d", p.pid), fmt.Sprintf("SIGKILL %d", p.pid))
	})
	onBench(t, "it takes a while", func(t *testing.T, b *bench) {
		p := b.orphan(2*time.Hour, everything)[0]
		p.termDelay = 4 * time.Second
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0, "terminated mcp-server-everything")
		b.expectSignals(sigterms(p)...)
	})
	onBench(t, "stopped", func(t *testing.T, b *bench) {
		p := b.orphan(2*time.Hour, everything)[0]
		p.state = "T"
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0, "terminated mcp-server-everything")
		if len(b.signals) != 2 || b.signals[1].signal != "SIGCONT" {
			t.Errorf("signals are %v", b.signals)
		}
	})
	onBench(t, "it starts another on SIGTERM", func(t *testing.T, b *bench) {
		p := b.orphan(2*time.Hour, everything)[0]
		var left *task
		p.onTerm = func() {
			left = b.start(p, everything)
			left.purposes = p.purposes
		}
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0, "too young")
		b.expectSignals(sigterms(p)...)
		if left == nil || left.exited || left.parent != b.user {
			t.Errorf("what it left is %v", left)
		}
	})
	onBench(t, "it cannot be killed", func(t *testing.T, b *bench) {
		p := b.orphan(2*time.Hour, everything)[0]
		p.termDelay, p.unkillable = -1, true
		ok := b.orphan(2*time.Hour, obsidian)[0]
		if b.expect(b.reap(t.Context(), "--older-than", "1h"), 1, "still running", "1 instance ("); !ok.exited {
			t.Error("the other one was not ended")
		}
	})
	onBench(t, "it may not be signalled", func(t *testing.T, b *bench) {
		p := b.orphan(2*time.Hour, everything)[0]
		p.signalErr = errors.New("operation not permitted")
		ok := b.orphan(2*time.Hour, obsidian)[0]
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 1, "refused", "operation not permitted", "1 instance (")
		b.expectSignals(sigterms(ok)...)
	})
}

func TestReapAsks(t *testing.T) {
	for _, c := range []struct {
		name, stdin string
		args        []string
		code        int
		terminates  bool
	}{
		{"yes", "y\n", nil, 0, true},
		{"yes, as a word", "Yes\n", nil, 0, true},
		{"no", "n\n", nil, 1, false},
		{"an empty line", "\n", nil, 1, false},
		{"something else", "yeah\n", nil, 1, false},
		{"no answer", "", nil, 2, false},
		{"--yes", "", []string{"--yes"}, 0, true},
	} {
		onBench(t, c.name, func(t *testing.T, b *bench) {
			p := b.orphan(2*time.Hour, everything)[0]
			b.interactive, b.stdin = true, strings.NewReader(c.stdin)
			r := b.reap(t.Context(), append([]string{"--older-than", "1h"}, c.args...)...)
			if b.expect(r, c.code); p.exited != c.terminates {
				t.Errorf("ended is %t\n%s%s", p.exited, r.out, r.err)
			}
			if asked := strings.Contains(r.err, "Terminate 1 process? [y/N]"); asked == (c.args != nil) {
				t.Errorf("asked is %t", asked)
			}
		})
	}
	onBench(t, "Ctrl-C", func(t *testing.T, b *bench) {
		p := b.orphan(2*time.Hour, everything)[0]
		in, typed := io.Pipe()
		b.interactive, b.stdin = true, in
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Hour, cancel)
		b.expect(b.reap(ctx, "--older-than", "1h"), 1)
		b.expectSignals()
		typed.Close()
		if p.exited {
			t.Error("it was ended")
		}
	})
	onBench(t, "nothing to ask about", func(t *testing.T, b *bench) {
		b.interactive = true
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0)
	})
	onBench(t, "what became owned while the person thought about it", func(t *testing.T, b *bench) {
		p := b.orphan(2*time.Hour, everything)[0]
		in, typed := io.Pipe()
		b.interactive, b.stdin = true, in
		time.AfterFunc(10*time.Minute, func() { io.WriteString(typed, "y\n") })
		b.after(5*time.Minute, func() {
			b.client.addWriter(p.stdin.pipe)
			p.purposes = []*purpose{{what: "a client holds it"}}
		})
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0, "skipped")
		b.expectSignals()
	})
}

// A run that only shows opens no process.
func TestReapShows(t *testing.T) {
	snapshot := filepath.Join(t.TempDir(), "s.json")
	for _, args := range [][]string{
		{},
		{"-v"},
		{"--json"},
		{"--dry-run"},
		{"--older-than", "1h", "--dry-run"},
		{"--older-than", "0s", "--dry-run", "--yes", "--rule", "orphan"},
		{"--older-than", "0s", "--yes", "--from", snapshot},
	} {
		onBench(t, "reap "+strings.Join(args, " "), func(t *testing.T, b *bench) {
			p := b.orphan(2*time.Hour, everything)[0]
			s, err := look.Once(t.Context(), b, b.wall(), look.Options{})
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(s.Snapshot)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(snapshot, text, 0o600); err != nil {
				t.Fatal(err)
			}
			b.expect(b.reap(t.Context(), args...), 0, "mcp-server-everything")
			if b.opened > 0 || p.exited {
				t.Errorf("%d processes were opened", b.opened)
			}
		})
	}
}

func TestReapRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		args   []string
		locked error
		words  string
	}{
		{"too many", []string{"--older-than", "1h", "--max", "2"}, nil, "3 processes would be terminated, more than 2: nothing was terminated"},
		{"no number", []string{"--older-than", "1h", "--max", "0"}, nil, "--max must be at least 1"},
		{"all users without root", []string{"--older-than", "1h", "--all-users"}, nil, "--all-users is for root"},
		{"no such age", []string{"--older-than", "yesterday"}, nil, "90s, 10m, 1h30m or 2d"},
		{"no such rule", []string{"--older-than", "1h", "--rule", "nonsense"}, nil, "no such rule"},
		{"another is at work", []string{"--older-than", "1h"}, fmt.Errorf("%w (pid 4711)", lockfile.ErrLocked), "another reap of this user is at work (pid 4711)"},
		{"no lock", []string{"--older-than", "1h"}, errors.New("cannot lock it: read-only file system"), "read-only file system"},
		{"a log that cannot be written", []string{"--older-than", "1h", "--log", "/nowhere/at/all"}, nil, "cannot open the log"},
		{"a log of nothing", []string{"--from", "-", "--log", "x"}, nil, "there is nothing to log"},
	} {
		onBench(t, c.name, func(t *testing.T, b *bench) {
			for range 3 {
				b.orphan(2*time.Hour, everything)
			}
			b.locked = c.locked
			r := b.reap(t.Context(), c.args...)
			b.expect(r, 2, c.words)
			checkErrorForm(t, c.name, r.err)
			if b.opened > 0 || r.out != "" {
				t.Errorf("%d processes were opened; %q", b.opened, r.out)
			}
		})
	}
}

func TestReapConsent(t *testing.T) {
	listening := func(b *bench) *task {
		p := b.orphan(2*time.Hour, obsidian)[0]
		p.listens = []string{"tcp:127.0.0.1:4001"}
		return p
	}
	onBench(t, "what is on request is kept", func(t *testing.T, b *bench) {
		listening(b)
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0)
		b.expectSignals()
	})
	onBench(t, "its rule is named", func(t *testing.T, b *bench) {
		p := listening(b)
		// The look-alikes that the rule selects on request are included in the consent.
		b.forbidden = func(to *task, _ string) string { return "" }
		b.expect(b.reap(t.Context(), "--older-than", "1h", "--rule", "orphan"), 0)
		if !p.exited || b.client.exited || b.server.exited {
			t.Error(b.table())
		}
	})
	onBench(t, "another rule is named", func(t *testing.T, b *bench) {
		listening(b)
		b.orphan(2*time.Hour, everything)
		b.expect(b.reap(t.Context(), "--older-than", "1h", "--rule", "stale-generation"), 0)
		b.expectSignals()
	})
	onBench(t, "another user's, as root", func(t *testing.T, b *bench) {
		b.observer.uid = 0
		b.orphan(2*time.Hour, everything)
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0)
		b.expectSignals()
	})
	onBench(t, "all users', as root", func(t *testing.T, b *bench) {
		b.observer.uid = 0
		p := b.orphan(2*time.Hour, everything)[0]
		b.expect(b.reap(t.Context(), "--older-than", "1h", "--all-users"), 0)
		b.expectSignals(sigterms(p)...)
	})
	onBench(t, "another user's", func(t *testing.T, b *bench) {
		b.observer.uid = 1001
		b.orphan(2*time.Hour, everything)
		b.expect(b.reap(t.Context(), "--older-than", "1h"), 0)
		b.expectSignals()
	})
}

func TestReapInterrupted(t *testing.T) {
	chain := []string{"=npm exec @modelcontextprotocol/server-everything", "sh -c 'mcp-server-everything'", everything}
	for _, c := range []struct {
		name  string
		after time.Duration
		code  int
		sent  func(tasks []*task) []string
		words string
	}{
		{"while it waits for the second look", time.Second, 1, func([]*task) []string { return nil }, ""},
		{"after the first signal", 3 * time.Second, 1, func(c []*task) []string { return sigterms(c[2]) }, "interrupted"},
		{"after all were asked", 6 * time.Second, 1, func(c []*task) []string { return sigterms(c[2], c[1], c[0]) }, "interrupted"},
	} {
		onBench(t, c.name, func(t *testing.T, b *bench) {
			tasks := b.orphan(2*time.Hour, chain...)
			for _, p := range tasks {
				p.termDelay, p.exitsWithChildren = -1, false
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(c.after, cancel)
			b.expect(b.reap(ctx, "--older-than", "1h"), c.code, c.words)
			b.expectSignals(c.sent(tasks)...)
		})
	}
}

func TestReapWritesDown(t *testing.T) {
	log := filepath.Join(t.TempDir(), "reaped.jsonl")
	for round := range 2 {
		onBench(t, fmt.Sprint("the log, round ", round+1), func(t *testing.T, b *bench) {
			b.orphan(2*time.Hour, everything)
			refused := b.orphan(2*time.Hour, obsidian)[0]
			refused.signalErr = errors.New("operation not permitted")
			b.expect(b.reap(t.Context(), "--older-than", "1h", "--log", log), 1)
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			if len(lines) != 2*(round+1) {
				t.Fatalf("%d lines:\n%s", len(lines), text)
			}
			for i, want := range []string{"ended", "refused"} {
				var line struct {
					Outcome string `json:"outcome"`
				}
				if err := json.Unmarshal([]byte(lines[2*round+i]), &line); err != nil || line.Outcome != want {
					t.Errorf("line %d is %s (%v), want %s", i, lines[2*round+i], err, want)
				}
			}
		})
	}
	onBench(t, "JSON", func(t *testing.T, b *bench) {
		p := b.orphan(2*time.Hour, everything)[0]
		r := b.reap(t.Context(), "--older-than", "1h", "--json")
		var plan struct {
			Kind      string `json:"kind"`
			Acted     bool   `json:"acted"`
			Instances []struct {
				RootPID int    `json:"root_pid"`
				Outcome string `json:"outcome"`
			} `json:"instances"`
			Summary struct {
				Ended int `json:"ended"`
			} `json:"summary"`
		}
		if err := json.Unmarshal([]byte(r.out), &plan); err != nil {
			t.Fatalf("%v: %s", err, r.out)
		}
		b.expect(r, 0)
		if plan.Kind != "mcpdoctor.reap" || !plan.Acted || plan.Summary.Ended != 1 ||
			len(plan.Instances) != 1 || plan.Instances[0].Outcome != "ended" || plan.Instances[0].RootPID != p.pid {
			t.Errorf("the plan is %+v", plan)
		}
	})
}
