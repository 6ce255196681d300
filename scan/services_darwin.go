package scan

import (
	"bytes"
	"context"
	"os/exec"
	"strconv"
	"time"
)

// systemManager is launchd, PID 1, the parent of its jobs and of every orphan alike.
type systemManager struct{}

func newSystemManager(*Snapshot) systemManager { return systemManager{} }

func (systemManager) known() bool { return true }

// job tells that only launchd knows about a child of its own.
func (systemManager) job(p, _ *Process) (Service, kept) {
	if p.PPID == 1 {
		return Service{}, perhaps
	}
	return Service{}, no
}

// askManagers asks launchd with one run of launchctl(1). It lists the jobs of the user who asks, for
// root those of the machine; about the processes of other users it leaves the doubt.
func askManagers(ctx context.Context, s *Snapshot, doubted []*Process) {
	cmd := exec.CommandContext(ctx, "/bin/launchctl", "list")
	cmd.WaitDelay = 100 * time.Millisecond
	out, err := cmd.Output()
	if err != nil {
		s.problem("launchd did not say which jobs it keeps: launchctl: %v", err)
		return
	}
	jobs := parseJobs(out)
	var answered []*Process
	for _, p := range doubted {
		own := p.UID != nil && s.Host.UID != nil && *p.UID == *s.Host.UID
		if _, ok := jobs[p.PID]; ok || own {
			answered = append(answered, p)
		}
	}
	if len(answered) > 0 {
		s.settle(answered, func(p *Process) (Service, bool) {
			label, ok := jobs[p.PID]
			return Service{Manager: "launchd", Name: label, MainPID: p.PID}, ok
		})
	}
}

// parseJobs parses lines of "PID<tab>status<tab>label" below a heading. A job that does not run has
// "-" for its PID. The labels "application.…" are launchd's for what a user opened, which it does not
// keep.
func parseJobs(out []byte) map[int]string {
	jobs := make(map[int]string)
	for line := range bytes.Lines(out) {
		fields := bytes.SplitN(bytes.TrimSpace(line), []byte("\t"), 3)
		if len(fields) < 3 || bytes.HasPrefix(fields[2], []byte("application.")) {
			continue
		}
		if pid, err := strconv.Atoi(string(fields[0])); err == nil && pid > 0 {
			jobs[pid] = string(fields[2])
		}
	}
	return jobs
}
