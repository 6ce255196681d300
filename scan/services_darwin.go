package scan

import (
	"bytes"
	"context"
	"os/exec"
	"strconv"
	"time"
)

// systemManager is launchd, PID 1, the parent of both its jobs and the orphans.
type systemManager struct{}

func newSystemManager(*Snapshot) systemManager { return systemManager{} }

func (systemManager) known() bool { return true }

func (systemManager) job(p, _ *Process) (Service, supervised) {
	if p.PPID == 1 {
		return Service{}, perhaps
	}
	return Service{}, no
}

// askManagers runs launchctl(1) once. It lists the jobs of our user, as root those of the machine; the processes of
// other users stay unresolved.
func askManagers(ctx context.Context, s *Snapshot, unresolved []*Process) {
	cmd := exec.CommandContext(ctx, "/bin/launchctl", "list")
	cmd.WaitDelay = 100 * time.Millisecond
	out, err := cmd.Output()
	if err != nil {
		s.problem("launchd did not list its jobs: launchctl: %v", err)
		return
	}
	jobs := parseJobs(out)
	var answered []*Process
	for _, p := range unresolved {
		own := p.UID != nil && s.Host.UID != nil && *p.UID == *s.Host.UID
		if _, ok := jobs[p.PID]; ok || own {
			answered = append(answered, p)
		}
	}
	if len(answered) > 0 {
		s.resolve(answered, "launchd", jobs)
	}
}

// parseJobs parses lines of "PID<tab>status<tab>label" below a heading. A job that does not run has the PID "-".
// Labels "application.…" are what a user opened, which launchd does not restart.
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
