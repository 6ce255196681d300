package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpdoctor/scan"
)

// bench is a machine with one living client and its server, beside which others can be put. Nobody but
// the orphans may ever be signalled.
type bench struct {
	*machine
	t                 testing.TB
	user, shell, cron *task
	client, server    *task
	person            bool
	in                string
	locked            error
}

const node = "node /srv/mcp/node_modules/.bin/mcp-server-everything"

func newBench(t testing.TB) *bench {
	b := &bench{t: t, machine: newMachine()}
	b.user = b.start(b.init, "/usr/lib/systemd/systemd --user")
	b.user.uid, b.user.subreaper, b.user.name, b.user.cgroup = 1000, true, "systemd", "/user.slice/user-1000.slice/user@1000.service/init.scope"
	b.shell = b.start(b.user, "-bash")
	b.shell.own()
	b.shell.tty, b.shell.stdin.kind, b.shell.cgroup = "pts/0", scan.StdinTTY, "/user.slice/user-1000.slice/session-3.scope"
	b.cron = b.start(b.init, "/usr/sbin/cron -f")
	b.client = b.start(b.shell, "claude")
	b.client.purposes = []*purpose{{what: "a person uses it"}}
	b.server = b.serve(b.client, node)
	b.play(100 * time.Hour)
	return b
}

// serve starts a stdio server below a client, with a purpose of the client's.
func (m *machine) serve(client *task, line string) *task {
	p := m.start(client, line)
	m.connect(client, p, scan.StdinSocket)
	p.purposes = []*purpose{{what: "its client uses it", of: client}}
	return p
}

// connect puts two wires between a client and a server.
func (m *machine) connect(client, server *task, kind scan.StdinType) {
	in, out := &wire{kind: kind}, &wire{kind: kind}
	server.read(input{kind: kind, wire: in})
	server.write(input{kind: kind, wire: out})
	client.hold(in)
	client.hear(out)
}

// orphan makes a server whose client was killed so long ago, and which does not notice.
func (b *bench) orphan(line string, age time.Duration) *task {
	present := b.present
	b.present -= age
	client := b.start(b.shell, "claude")
	client.purposes = []*purpose{{what: "a person uses it"}}
	p := b.serve(client, line)
	b.end(client, "killed")
	b.present = present
	return p
}

// reap runs the command, in a bubble that the caller has made.
func (b *bench) reap(ctx context.Context, args ...string) result {
	b.t.Helper()
	self := b.start(b.cron, "mcpdoctor "+strings.Join(args, " "))
	self.uid = b.eyes.uid
	var out, err bytes.Buffer
	w := &world{
		in: strings.NewReader(b.in), out: &out, err: &err, getenv: func(string) string { return "" },
		now: b.wall, look: b.look, hold: b.hold, self: self.pid,
		lock:   func() (func(), error) { return func() {}, b.locked },
		person: func() bool { return b.person }, root: func() bool { return b.eyes.uid == 0 },
	}
	b.machine.run()
	code := run(ctx, append([]string{"reap"}, args...), w)
	for _, mistake := range b.mistakes {
		b.t.Error(mistake)
	}
	return result{code, out.String(), err.String()}
}

// TestReap is the plain case: from cron, two orphans of different ages.
func TestReap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		old, young := b.orphan(node, 2*time.Hour), b.orphan(node, 10*time.Minute)
		r := b.reap(t.Context(), "--older-than", "1h")
		if r.code != 0 || !old.ended || young.ended || b.server.ended {
			t.Errorf("exit code %d, old ended %t, young ended %t\n%s%s\n%s", r.code, old.ended, young.ended, r.out, r.err, b.table())
		}
		t.Log(r.out)
	})
}
