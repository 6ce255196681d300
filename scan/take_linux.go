package scan

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

// take reads the table of the procfs mount at o.Root.
func take(ctx context.Context, o Options, s *Snapshot) error {
	path := procPath(o.Root)
	root, err := openRoot(o.Root)
	if err != nil {
		return fmt.Errorf("cannot list the processes: %w", err)
	}
	defer unix.Close(root)
	pids, err := procfs.PIDs(root)
	if err != nil {
		return fmt.Errorf("cannot list the processes: %w", &os.PathError{Op: "read", Path: path, Err: err})
	}
	if len(pids) == 0 {
		return fmt.Errorf("cannot list the processes: %s holds none; is it a procfs mount?", path)
	}

	boot := procfs.ParseBootTime(procfs.ReadSmall(root, "stat"))
	if boot.IsZero() {
		s.problem("%s/stat does not say when the machine started: the ages of processes are unknown", path)
	}
	table := readTable(ctx, root, pids, boot, o.Deadline)
	if err := ctx.Err(); err != nil {
		return err
	}
	table.attach(s, pids, o.Deadline)
	if len(s.Processes) == 0 {
		return fmt.Errorf("cannot list the processes: all %d in %s exited before they were read", len(pids), path)
	}
	nameUsers(ctx, s, o.Deadline)
	readHost(root, boot, s)
	explainHidden(root, filepath.Clean(path), s)
	return nil
}

// procPath returns the path of the procfs mount that was asked for.
func procPath(root string) string { return cmp.Or(root, "/proc") }

// openRoot opens the procfs mount.
func openRoot(root string) (int, error) {
	fd, err := procfs.OpenAt(unix.AT_FDCWD, procPath(root), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: procPath(root), Err: err}
	}
	return fd, nil
}

// readHost fills in the machine from the files below root.
func readHost(root int, boot time.Time, s *Snapshot) {
	uid := os.Geteuid()
	m := procfs.ParseMeminfo(procfs.ReadSmall(root, "meminfo"))
	s.Host = Host{
		OS:                   "linux",
		Name:                 string(bytes.TrimSpace(procfs.ReadSmall(root, "sys/kernel/hostname"))),
		Container:            inContainer(root, s),
		UID:                  &uid,
		MemoryTotalBytes:     m.Total,
		MemoryAvailableBytes: m.Available,
		SwapTotalBytes:       m.SwapTotal,
		SwapFreeBytes:        m.SwapFree,
	}
	if up := s.Taken.Sub(boot); !boot.IsZero() && up > 0 {
		s.Host.UptimeSeconds = int64(up / time.Second)
	}
}

// initPIDNamespace is the target of /proc/PID/ns/pid in the machine's own PID namespace: PROC_PID_INIT_INO of the
// kernel's include/linux/proc_ns.h.
const initPIDNamespace = "pid:[4026531836]"

// inContainer reports whether the table is that of a container, which has its own PID namespace. Kernel threads are
// only visible in the machine's namespace; where they are hidden from this user, our own namespace decides.
// A distribution in WSL has a namespace too, but its PID 1 serves as the machine's init.
func inContainer(root int, s *Snapshot) bool {
	if p := s.find(2); p != nil && p.PPID == 0 && p.Name == "kthreadd" {
		return false
	}
	link := make([]byte, 64)
	n, err := unix.Readlinkat(root, "self/ns/pid", link)
	if err != nil || string(link[:n]) == initPIDNamespace {
		return false
	}
	release := bytes.ToLower(procfs.ReadSmall(root, "sys/kernel/osrelease"))
	return !bytes.Contains(release, []byte("microsoft"))
}

// explainHidden adds a problem when the processes of other users are hidden: a missing parent may then still run.
func explainHidden(root int, path string, s *Snapshot) {
	self := os.Geteuid()
	foreign := slices.ContainsFunc(s.Processes, func(p Process) bool { return p.UID != nil && *p.UID != self })
	first := s.find(1)
	if first != nil && (foreign || self == 0) {
		return
	}
	if option := procfs.ParseHidepid(procfs.ReadSmall(root, "self/mountinfo"), path); option != "" {
		s.problem("%s is mounted with hidepid=%s: the processes of other users are hidden, a missing parent may be alive", path, option)
	} else if first == nil {
		s.problem("pid 1 is not in %s: processes are hidden, a missing parent may be alive", path)
	}
}

// nameUsers fills in the users' names. A look-up in a directory service can hang, so it has the deadline too.
func nameUsers(ctx context.Context, s *Snapshot, deadline time.Duration) {
	names := make(map[int]string)
	for i := range s.Processes {
		if uid := s.Processes[i].UID; uid != nil {
			names[*uid] = ""
		}
	}
	uids := slices.Collect(maps.Keys(names))
	limited, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	found, ok := within(limited, func() map[int]string {
		names := make(map[int]string, len(uids))
		for _, uid := range uids {
			if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
				names[uid] = u.Username
			}
		}
		return names
	})
	if !ok && ctx.Err() == nil {
		s.problem("the names of users could not be looked up within %v", deadline)
	}
	for i := range s.Processes {
		if uid := s.Processes[i].UID; uid != nil {
			s.Processes[i].User = found[*uid]
		}
	}
}
