package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// systemManager is systemd where it is the machine's init. Elsewhere a process can only be a job of its parent.
type systemManager struct{ systemd bool }

func newSystemManager(*Snapshot) systemManager {
	// sd_booted(3): the folder exists if and only if systemd is PID 1.
	info, err := os.Lstat("/run/systemd/system")
	return systemManager{systemd: err == nil && info.IsDir()}
}

// known reports whether a process is known not to be a job when job says no.
func (systemManager) known() bool { return true }

// job reports whether systemd started p for a unit: its control group is that of a service, its parent is the
// manager, and SYSTEMD_EXEC_PID, which systemd.exec(5) defines for this comparison, is its PID. Without the last
// it may still be the main process (a service that forks, systemd before 248) or an orphan of the service; only
// systemd knows.
func (m systemManager) job(p, parent *Process) (Service, supervised) {
	manager := p.PPID == 1 || parent != nil && parent.Name == "systemd"
	if !m.systemd || !manager {
		return Service{}, no
	}
	if slices.Contains(p.Unreadable, "cgroup") {
		return Service{}, perhaps
	}
	unit := unitOf(p.Cgroup)
	if unit.name == "" {
		return Service{}, no
	}
	if p.Env["SYSTEMD_EXEC_PID"] == strconv.Itoa(p.PID) {
		return Service{Manager: "systemd", Name: unit.name, MainPID: p.PID}, yes
	}
	if unit.user >= 0 && strings.HasPrefix(unit.name, "app-") {
		// A desktop application; see systemd.io/DESKTOP_ENVIRONMENTS. The manager itself executes its main
		// process.
		return Service{}, no
	}
	return Service{}, perhaps
}

// A unit is a service of systemd.
type unit struct {
	name string // empty when there is none
	user int    // whose manager runs it, -1 for the machine's
}

// unitOf returns the innermost unit of a control group's path, if it is a service. Scopes contain processes that
// systemd did not start: sessions, terminals, containers.
func unitOf(cgroup string) unit {
	found := unit{user: -1}
	for part := range strings.SplitSeq(cgroup, "/") {
		switch {
		case strings.HasSuffix(part, ".scope"):
			found.name = ""
		case strings.HasPrefix(part, "user@") && strings.HasSuffix(part, ".service"):
			found.name = "" // the user's manager is no job
			uid, err := strconv.Atoi(part[len("user@") : len(part)-len(".service")])
			if err == nil && uid >= 0 {
				found.user = uid
			}
		case strings.HasSuffix(part, ".service"):
			found.name = part
		}
	}
	return found
}

// askManagers asks the machine's systemd and those of users which of the processes are main processes.
func askManagers(ctx context.Context, s *Snapshot, unresolved []*Process) {
	byUser := make(map[int][]*Process)
	for _, p := range unresolved {
		user := unitOf(p.Cgroup).user
		byUser[user] = append(byUser[user], p)
	}
	for _, user := range slices.Sorted(maps.Keys(byUser)) {
		units, err := showUnits(ctx, user)
		if err != nil {
			s.problem("systemd did not list its services: %v", err)
			continue
		}
		s.resolve(byUser[user], "systemd", units)
	}
}

// systemctlPaths are tried in order. PATH is not used, since it may be another user's while we run as root.
var systemctlPaths = []string{"/usr/bin/systemctl", "/bin/systemctl", "/run/current-system/sw/bin/systemctl"}

// showUnits runs systemctl(1) once and returns the names of the services by their main PIDs. A user's manager
// answers only that user, so root asks as that user.
func showUnits(ctx context.Context, user int) (map[int]string, error) {
	i := slices.IndexFunc(systemctlPaths, func(path string) bool { return unix.Access(path, unix.X_OK) == nil })
	if i < 0 {
		return nil, errors.New("there is no systemctl")
	}
	args := []string{"show", "--type=service", "--property=Id,MainPID", "*"}
	env := []string{"LC_ALL=C", "SYSTEMD_PAGER=", "PATH=/usr/bin:/bin"}
	var as *syscall.SysProcAttr
	if user >= 0 {
		folder := filepath.Join("/run/user", strconv.Itoa(user))
		args = append([]string{"--user"}, args...)
		env = append(env, "XDG_RUNTIME_DIR="+folder, "DBUS_SESSION_BUS_ADDRESS=unix:path="+folder+"/bus")
		if user != os.Geteuid() {
			var st unix.Stat_t
			if err := unix.Stat(folder, &st); err != nil {
				return nil, fmt.Errorf("%s: %w", folder, err)
			}
			as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: st.Gid}}
		}
	}
	cmd := exec.CommandContext(ctx, systemctlPaths[i], args...)
	cmd.Env, cmd.SysProcAttr, cmd.Dir = env, as, "/"
	cmd.WaitDelay = 100 * time.Millisecond // for a descendant that keeps the pipe open
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("systemctl: %w", err)
	}
	return parseUnits(out), nil
}

// parseUnits parses blocks of "Id=NAME" and "MainPID=NUMBER", separated by empty lines. A unit that does not run
// has the PID 0.
func parseUnits(out []byte) map[int]string {
	units := make(map[int]string)
	for block := range bytes.SplitSeq(out, []byte("\n\n")) {
		id, pid := "", 0
		for line := range bytes.Lines(block) {
			key, value, _ := strings.Cut(strings.TrimSpace(string(line)), "=")
			switch key {
			case "Id":
				id = value
			case "MainPID":
				pid, _ = strconv.Atoi(value)
			}
		}
		if id != "" && pid > 0 {
			units[pid] = id
		}
	}
	return units
}
