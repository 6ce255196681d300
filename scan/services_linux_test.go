package scan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSystemdJob(t *testing.T) {
	const system, user = "/system.slice/gate.service", "/user.slice/user-7.slice/user@7.service/app.slice/"
	self := map[string]string{"SYSTEMD_EXEC_PID": "10", "INVOCATION_ID": "x"}
	inherited := map[string]string{"SYSTEMD_EXEC_PID": "9", "INVOCATION_ID": "x"}
	init := Process{PID: 1, Name: "systemd"}
	manager := Process{PID: 7, Name: "systemd", Args: []string{"/usr/lib/systemd/systemd", "--user"}}
	shell := Process{PID: 5, Name: "bash"}
	for _, c := range []struct {
		name   string
		parent Process
		p      Process
		want   supervised
	}{
		{"main process", init, Process{Cgroup: system, Env: self}, yes},
		{"main process of the user's", manager, Process{Cgroup: user + "gate.service", Env: self}, yes},
		{"a daemon that forked, or an orphan of one", init, Process{Cgroup: system, Env: inherited}, perhaps},
		{"environment not to be seen", init, Process{Cgroup: system, Unreadable: []string{"env"}}, perhaps},
		{"control group not to be seen", init, Process{Unreadable: []string{"cgroup"}}, perhaps},
		{"orphan of the user's service", manager, Process{Cgroup: user + "gate.service", Env: inherited}, perhaps},
		{"child of the main process", shell, Process{Cgroup: system, Env: inherited}, no},
		{"orphan of a session", init, Process{Cgroup: "/user.slice/user-7.slice/session-3.scope", Env: inherited}, no},
		{"orphan of a desktop application", manager, Process{Cgroup: user + "app-code-1.scope"}, no},
		{"orphan of an application that is a service", manager, Process{Cgroup: user + "app-code@1.service", Env: inherited}, no},
		{"application that is a service", manager, Process{Cgroup: user + "app-code@1.service", Env: self}, yes},
	} {
		c.p.PID, c.p.PPID = 10, c.parent.PID
		if _, got := (systemManager{systemd: true}).job(&c.p, &c.parent); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if _, got := (systemManager{}).job(&c.p, &c.parent); got != no {
			t.Errorf("%s, without systemd: %v", c.name, got)
		}
	}
}

// fakeSystemctl lets a script play systemctl.
func fakeSystemctl(t *testing.T, script string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "systemctl")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	real := systemctlPaths
	systemctlPaths = []string{path}
	t.Cleanup(func() { systemctlPaths = real })
}

func doubted() *Snapshot {
	return tableOf(
		Process{PID: 10, PPID: 1, Cgroup: "/system.slice/gate.service", Unreadable: []string{"service"}},
		Process{PID: 11, PPID: 1, Cgroup: "/system.slice/gate.service", Unreadable: []string{"service"}},
		Process{PID: 12, PPID: 1, Cgroup: "/system.slice/gate.service"},
	)
}

func TestServicesAsksSystemd(t *testing.T) {
	fakeSystemctl(t, `[ "$*" = "show --type=service --property=Id,MainPID *" ] || exit 1
printf 'Id=gate.service\nMainPID=10\n\nId=ssh.service\nMainPID=12\n'`)
	s := doubted()
	Services(t.Context(), s, []int{10, 11, 12}, patient)
	// 12 was in no doubt, and nobody asked about it.
	if want := []Service{{"systemd", "gate.service", 10}}; !slices.Equal(s.Host.Services, want) {
		t.Errorf("%v, want %v; problems %v", s.Host.Services, want, s.Problems)
	}
	for _, p := range s.Processes {
		if p.Unreadable != nil {
			t.Errorf("pid %d is still in doubt: %v", p.PID, p.Unreadable)
		}
	}
}

func TestServicesStayUnknown(t *testing.T) {
	for name, script := range map[string]string{"fails": "exit 1", "hangs": "exec sleep 600"} {
		t.Run(name, func(t *testing.T) {
			fakeSystemctl(t, script)
			s := doubted()
			Services(t.Context(), s, []int{10, 11}, ExamineOptions{Deadline: 100 * time.Millisecond})
			if s.Host.Services != nil || len(s.Problems) != 1 || !strings.Contains(s.Problems[0], "systemd") {
				t.Errorf("services %v, problems %v", s.Host.Services, s.Problems)
			}
			if !slices.Contains(s.Processes[0].Unreadable, "service") {
				t.Error("the doubt has gone")
			}
		})
	}
}

// Without a doubt nothing is started.
func TestServicesWithoutDoubt(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "started")
	fakeSystemctl(t, "touch "+mark)
	s := doubted()
	Services(t.Context(), s, []int{12}, ExamineOptions{})
	if _, err := os.Stat(mark); err == nil {
		t.Error("systemctl was started")
	}
}
