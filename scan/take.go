package scan

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Options say what table to read and how patiently.
type Options struct {
	// Root is the procfs mount to read, "/proc" when empty. Only Linux uses it: a test gives a
	// tree of its own, a container the mount of its host.
	Root string

	// Now is the moment that the snapshot is stamped with.
	Now time.Time

	// Deadline is how long one read may block before its process is kept without what the read
	// would have told; one second when zero. The whole table takes at most about ten times that.
	// Only Linux uses it: the calls of the other systems cannot be left behind.
	Deadline time.Duration
}

// defaultDeadline is far above what a healthy kernel needs for one small file (microseconds) and
// above what a forking giant holds its lock for (about 150 ms at 10 GiB).
const defaultDeadline = time.Second

// Take reads the process table: who there is, whose child, since when, at what cost and with what
// command line. It is cheap and asks nothing that needs the process's own permission; what costs
// more is [Examine]'s, for the few processes that deserve it.
//
// On Linux the sources are /proc/PID/stat and /proc/PID/cmdline, the owner of /proc/PID, and a
// handful of files about the host; nothing is forked. Elsewhere gopsutil is asked.
//
// A process that ends while it is read is left out. What the system refuses or does not answer in
// time is named in the process's Unreadable, and a sentence in Problems says so. An error means
// that the processes could not be listed at all, or that ctx ended.
func Take(ctx context.Context, o Options) (*Snapshot, error) {
	if o.Deadline <= 0 {
		o.Deadline = defaultDeadline
	}
	s := &Snapshot{Schema: Schema, Kind: Kind, Taken: o.Now}
	if err := take(ctx, o, s); err != nil {
		return nil, err
	}
	return s, nil
}

// problem adds a sentence for the reader of the report.
func (s *Snapshot) problem(format string, args ...any) {
	s.Problems = append(s.Problems, fmt.Sprintf(format, args...))
}

// find returns the process with that PID, or nil. Processes must be in order.
func (s *Snapshot) find(pid int) *Process {
	i, ok := slices.BinarySearchFunc(s.Processes, pid, func(p Process, pid int) int { return p.PID - pid })
	if !ok {
		return nil
	}
	return &s.Processes[i]
}

// PIDList formats PIDs for a sentence: a few of them, and the number of the others.
func PIDList(pids []int) string {
	const shown = 5
	var b strings.Builder
	b.WriteString("pid ")
	for i, pid := range pids {
		if i == shown {
			fmt.Fprintf(&b, " and %d more", len(pids)-shown)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, pid)
	}
	return b.String()
}
