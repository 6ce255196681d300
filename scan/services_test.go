package scan

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// tableOf makes a snapshot of rows that are in order.
func tableOf(rows ...Process) *Snapshot {
	for i := range rows {
		rows[i].Start = int64(rows[i].PID)
	}
	return &Snapshot{Processes: rows}
}

// findAll lets findServices judge every row.
func findAll(t *testing.T, s *Snapshot) []Service {
	var pids []int
	for _, p := range s.Processes {
		pids = append(pids, p.PID)
	}
	findServices(t.Context(), s, s.examinable(pids))
	return s.Host.Services
}

func TestChildrenOfSupervisors(t *testing.T) {
	closed := &Stdin{Type: StdinPipe, Peer: PeerClosed}
	open := &Stdin{Type: StdinPipe, Peer: PeerOpen}
	s := tableOf(
		Process{PID: 1, Args: []string{"/usr/bin/python3", "/usr/bin/supervisord", "-n"}},
		Process{PID: 10, PPID: 1, PGID: 10, Stdin: open, Env: map[string]string{"SUPERVISOR_PROCESS_NAME": "gate", "SUPERVISOR_GROUP_NAME": "gate"}},
		Process{PID: 11, PPID: 1, PGID: 11, Stdin: open, Env: map[string]string{"SUPERVISOR_PROCESS_NAME": "gate_1", "SUPERVISOR_GROUP_NAME": "gates"}},
		// Orphans of a job, adopted by PID 1, with its variables.
		Process{PID: 12, PPID: 1, PGID: 10, Stdin: closed, Env: map[string]string{"SUPERVISOR_PROCESS_NAME": "gate"}},
		Process{PID: 13, PPID: 1, PGID: 13, Stdin: closed, Env: map[string]string{"SUPERVISOR_PROCESS_NAME": "gate"}},
		Process{PID: 14, PPID: 10, PGID: 10, Stdin: open, Env: map[string]string{"SUPERVISOR_PROCESS_NAME": "gate"}},
		Process{PID: 20, PPID: 5, Args: []string{"runsv", "mcp"}},
		Process{PID: 21, PPID: 20},
		Process{PID: 30, PPID: 5, Args: []string{"s6-supervise", "/run/service/mcp"}},
		Process{PID: 31, PPID: 30},
	)
	want := []Service{
		{"supervisord", "gate", 10},
		{"supervisord", "gates:gate_1", 11},
		{"runit", "mcp", 21},
		{"s6", "mcp", 31},
	}
	if got := findAll(t, s); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestAppsOfPM2(t *testing.T) {
	home := t.TempDir()
	pids := filepath.Join(home, "pids")
	if err := os.Mkdir(pids, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"my-gate-0.pid": "10\n",
		"old-1.pid":     "99",
		"junk-2.pid":    "not a number",
		"README":        "10",
	} {
		if err := os.WriteFile(filepath.Join(pids, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	inherited := map[string]string{"pm_id": "0", "name": "my-gate", "PM2_HOME": home}
	for _, c := range []struct {
		name   string
		daemon Process
	}{
		{"daemon", Process{PID: 5, PPID: 1, Args: []string{"PM2 v7.0.4: God Daemon (" + home + ")   "}}},
		{"runtime", Process{PID: 5, PPID: 1, Args: []string{"node", "/usr/local/bin/pm2-runtime", "app.js"}}},
	} {
		s := tableOf(c.daemon,
			Process{PID: 10, PPID: 5, Env: inherited},
			Process{PID: 11, PPID: 10, Env: inherited},
			Process{PID: 12, PPID: 5, Env: inherited},
		)
		if got, want := findAll(t, s), []Service{{"pm2", "my-gate", 10}}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.name, got, want)
		}
	}

	t.Run("the daemon was killed", func(t *testing.T) {
		s := tableOf(Process{PID: 1, Args: []string{"/sbin/init"}}, Process{PID: 10, PPID: 1, Env: inherited})
		if got := findAll(t, s); len(got) > 0 {
			t.Errorf("%v", got)
		}
	})
	t.Run("the folder may not be read", func(t *testing.T) {
		s := tableOf(Process{PID: 5, Args: []string{"PM2 v7.0.4: God Daemon (" + filepath.Join(home, "nothing") + ")"}}, Process{PID: 10, PPID: 5})
		if got := findAll(t, s); got != nil || !slices.Contains(s.Processes[1].Unreadable, "service") {
			t.Errorf("%v, unreadable %v", got, s.Processes[1].Unreadable)
		}
	})
}

// Where no manager keeps anything that is known, and it differs from not knowing.
func TestNoServices(t *testing.T) {
	if got := findAll(t, tableOf(Process{PID: 5}, Process{PID: 10, PPID: 5})); got == nil && newSystemManager(nil).known() {
		t.Error("nil, want an empty list")
	}
}

func TestResolve(t *testing.T) {
	s := tableOf(Process{PID: 10, Unreadable: []string{"env", "service"}}, Process{PID: 11, Unreadable: []string{"service"}})
	s.resolve([]*Process{&s.Processes[0], &s.Processes[1]}, "systemd", map[int]string{11: "unit-11", 12: "unit-12"})
	if want := []Service{{"systemd", "unit-11", 11}}; !slices.Equal(s.Host.Services, want) {
		t.Errorf("%v, want %v", s.Host.Services, want)
	}
	if u := s.Processes[0].Unreadable; !slices.Equal(u, []string{"env"}) {
		t.Errorf("unreadable %v", u)
	}
	if u := s.Processes[1].Unreadable; u != nil {
		t.Errorf("unreadable %v", u)
	}
}
