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

// systemManager is systemd where it is the machine's init, else nobody: a container without systemd
// has no manager that a process could be a job of without being its child.
type systemManager struct{ systemd bool }

func newSystemManager(*Snapshot) systemManager {
	// sd_booted(3): the folder exists exactly where systemd is PID 1.
	info, err := os.Lstat("/run/systemd/system")
	return systemManager{systemd: err == nil && info.IsDir()}
}

// known tells that what is not found is known not to be kept, unless job says perhaps.
func (systemManager) known() bool { return true }

// job tells whether p is what systemd started for a unit, from three facts: its control group is
// that of a service, its parent is the manager, and SYSTEMD_EXEC_PID is its own PID, which
// systemd.exec(5) defines for this comparison. Without the last the process may still be the main one
// (a service that forks, a systemd before 248), or an orphan of the service: only systemd knows.
func (m systemManager) job(p, parent *Process) (Service, kept) {
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
		// A desktop application; systemd.io/DESKTOP_ENVIRONMENTS. Its main process is executed
		// by the manager itself.
		return Service{}, no
	}
	return Service{}, perhaps
}

// A unit is a service of systemd.
type unit struct {
	name string // empty when there is none
	user int    // whose manager keeps it, -1 for the machine's
}

// unitOf finds the service that a control group belongs to: the innermost unit of the path, when it is
// a service. Scopes hold processes that systemd did not start: sessions, terminals, containers.
func unitOf(cgroup string) unit {
	found := unit{user: -1}
	for part := range strings.SplitSeq(cgroup, "/") {
		switch {
		case strings.HasSuffix(part, ".scope"):
			found.name = ""
		case strings.HasPrefix(part, "user@") && strings.HasSuffix(part, ".service"):
			found.name = "" // the user's manager, not a job of his
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

// askManagers asks systemd, the machine's and the users', which of the doubted processes it watches.
func askManagers(ctx context.Context, s *Snapshot, doubted []*Process) {
	byUser := make(map[int][]*Process)
	for _, p := range doubted {
		user := unitOf(p.Cgroup).user
		byUser[user] = append(byUser[user], p)
	}
	for _, user := range slices.Sorted(maps.Keys(byUser)) {
		units, err := showUnits(ctx, user)
		if err != nil {
			s.problem("systemd did not say which services it keeps: %v", err)
			continue
		}
		s.settle(byUser[user], func(p *Process) (Service, bool) {
			name, ok := units[p.PID]
			return Service{Manager: "systemd", Name: name, MainPID: p.PID}, ok
		})
	}
}

// systemctlPaths are where it is looked for. PATH is not asked, since we may run as root with
// somebody's PATH.
var systemctlPaths = []string{"/usr/bin/systemctl", "/bin/systemctl", "/run/current-system/sw/bin/systemctl"}

// showUnits starts systemctl(1), once, and returns the names of the services by their main PIDs. The
// manager of another user answers nobody else, not even root, who therefore asks as that user.
func showUnits(ctx context.Context, user int) (map[int]string, error) {
	path := ""
	for _, p := range systemctlPaths {
		if unix.Access(p, unix.X_OK) == nil {
			path = p
			break
		}
	}
	if path == "" {
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
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.SysProcAttr, cmd.Dir = env, as, "/"
	cmd.WaitDelay = 100 * time.Millisecond // for a grandchild that keeps the pipe
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return parseUnits(out), nil
}

// parseUnits parses blocks of "Id=NAME" and "MainPID=NUMBER", parted by empty lines. A unit that
// does not run has the PID 0.
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
