package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpdoctor/scan"
	"mcpdoctor/scan/config"
	"mcpdoctor/testdata/tables"
)

// fakeMachine answers from a table, and writes down what it was asked.
type fakeMachine struct {
	*tables.Machine
	asked   []string
	found   config.Found
	examine func(*scan.Process) // what an examination fills in
	after   func(question string)
}

func (m *fakeMachine) note(question string, pids []int) {
	m.asked = append(m.asked, strings.TrimSpace(question+" "+strings.Trim(fmt.Sprint(pids), "[]")))
	if m.after != nil {
		m.after(question)
	}
}

func (m *fakeMachine) Take(_ context.Context, now time.Time) (*scan.Snapshot, error) {
	if m.Machine == nil {
		return nil, errors.New("no processes")
	}
	s := m.Snapshot
	s.Taken, s.Processes = now, slices.Clone(s.Processes)
	return &s, nil
}

func (m *fakeMachine) Examine(_ context.Context, s *scan.Snapshot, pids, _ []int) {
	m.note("examine", pids)
	for i := range s.Processes {
		if m.examine != nil && slices.Contains(pids, s.Processes[i].PID) {
			m.examine(&s.Processes[i])
		}
	}
}

func (m *fakeMachine) Configuration(context.Context, []config.Folder, []config.Named) config.Found {
	m.note("configuration", nil)
	return m.found
}

func (m *fakeMachine) Versions(_ context.Context, _ *scan.Snapshot, programs map[int]string) {
	var pids []int
	for pid := range programs {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	m.note("versions", pids)
}

func (m *fakeMachine) Services(_ context.Context, _ *scan.Snapshot, pids []int) {
	m.note("services", pids)
}
func (m *fakeMachine) Holders(_ context.Context, _ *scan.Snapshot, pids []int) {
	m.note("holders", pids)
}
func (m *fakeMachine) PSS(_ context.Context, _ *scan.Snapshot, pids []int) { m.note("pss", pids) }

const orphaned = "node /srv/node_modules/.bin/obsidian-mcp-server"

// Each question is asked once about each process for which it is open, and only then.
func TestOnceAsksWhatIsOpen(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(*fakeMachine)
		o     Options
		want  string
	}{
		{name: "nothing that has to do with MCP", build: func(*fakeMachine) {}, want: "configuration"},
		{
			name: "a server below its client decides itself",
			build: func(m *fakeMachine) {
				m.Run(150, 100, time.Hour, "claude").TTY = "pts/0"
				m.Run(200, 150, time.Hour, orphaned)
				m.examine = func(p *scan.Process) { p.Stdin = tables.Pipe(scan.PeerOpen) }
			},
			want: "examine 150 200, configuration",
		},
		{
			name: "an adopted server: who holds its stdin?",
			build: func(m *fakeMachine) {
				m.Run(200, 1, time.Hour, orphaned)
				m.examine = func(p *scan.Process) { p.Stdin = tables.Pipe(scan.PeerOpen) }
			},
			want: "examine 200, configuration, holders 200",
		},
		{
			name: "a closed stdin, and a supervisor that was not asked",
			build: func(m *fakeMachine) {
				m.Run(200, 1, time.Hour, orphaned)
				m.examine = func(p *scan.Process) {
					p.Stdin, p.Unreadable = tables.Pipe(scan.PeerClosed), []string{"service"}
				}
			},
			want: "examine 200, configuration, services 200, holders 200",
		},
		{
			name: "what only a configuration makes a server is examined too, and once",
			build: func(m *fakeMachine) {
				m.Run(200, 1, time.Hour, "node /opt/own/notes.js")
				m.found = config.Found{Servers: []config.Server{{Client: "Cursor", Name: "notes", Transport: config.Stdio, Command: "node", Args: []string{"/opt/own/notes.js"}}}}
				m.examine = func(p *scan.Process) { p.Stdin = tables.Pipe(scan.PeerOpen) }
			},
			want: "configuration, examine 200, holders 200",
		},
		{
			name:  "the memory of chosen processes",
			build: func(m *fakeMachine) { m.Run(200, 100, time.Hour, "sleep 100") },
			o:     Options{PSSOf: []int{200}},
			want:  "configuration, pss 200",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &fakeMachine{Machine: tables.NewMachine()}
			c.build(m)
			if _, err := Once(t.Context(), m, tables.Noon, c.o); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(m.asked, ", "); got != c.want {
				t.Errorf("asked %s; want %s", got, c.want)
			}
		})
	}
}

// When the time is up, what is still open is left open.
func TestOnceEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := &fakeMachine{Machine: tables.NewMachine(), after: func(question string) { cancel() }}
	m.Run(200, 1, time.Hour, orphaned)
	s, err := Once(ctx, m, tables.Noon, Options{PSS: true})
	if err != nil || s.Recognised == nil || !slices.Equal(m.asked, []string{"examine 200"}) {
		t.Errorf("asked %v, error %v", m.asked, err)
	}
}

func TestOnceWithoutATable(t *testing.T) {
	if _, err := Once(t.Context(), &fakeMachine{}, tables.Noon, Options{}); err == nil {
		t.Error("a look that saw no process is no look")
	}
}

// A server that may be shutting down is looked at twice, and only what both looks saw has settled.
func TestTwice(t *testing.T) {
	m := &fakeMachine{Machine: tables.NewMachine(), examine: func(p *scan.Process) { p.Stdin = tables.Pipe(scan.PeerClosed) }}
	m.Run(200, 1, time.Second, orphaned)
	m.Run(201, 1, time.Second, orphaned)
	clock := func() time.Time { return tables.Noon }
	waits := 0
	s, err := Twice(t.Context(), m, clock, Options{}, func(context.Context) error {
		waits++
		m.Processes = slices.DeleteFunc(m.Processes, func(p scan.Process) bool { return p.PID == 201 })
		return nil
	})
	if err != nil || waits != 1 || len(s.Settled) != 1 {
		t.Fatalf("waited %d times, settled %v, error %v", waits, s.Settled, err)
	}
	for id := range s.Settled {
		if id.PID != 200 {
			t.Errorf("pid %d has settled", id.PID)
		}
	}
	m.examine = func(p *scan.Process) { p.Stdin = tables.Pipe(scan.PeerOpen, 100) }
	if s, err = Twice(t.Context(), m, clock, Options{}, func(context.Context) error { return errors.New("waited") }); err != nil || s.Settled != nil {
		t.Errorf("nothing was in doubt, but settled %v, error %v", s, err)
	}
}
