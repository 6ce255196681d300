package scan

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Options are the options of [Take].
type Options struct {
	// Root is the procfs mount to read, "/proc" when empty, such as that of a container's host. Linux only.
	Root string

	// Now is the time of the snapshot.
	Now time.Time

	// Deadline is how long a read may block before its process is kept without the result; one second when
	// zero. The whole table takes at most about ten times as long. Linux only: the calls of other systems
	// cannot be abandoned.
	Deadline time.Duration
}

// defaultDeadline is far more than a healthy kernel needs for a small file (microseconds), and more than the time
// for which fork(2) of a large process holds its memory lock (about 150 ms at 10 GiB).
const defaultDeadline = time.Second

// Take reads the process table: identity, parent, age, cost and command line of every process. It is cheap and needs
// no permission for the processes; [Examine] reads what costs more.
//
// On Linux it reads /proc/PID/stat, /proc/PID/cmdline, the owner of /proc/PID, and a few files about the host, and
// forks nothing. Elsewhere it uses gopsutil.
//
// A process that exits meanwhile is left out. What the system refuses, or does not return in time, is named in the
// process's Unreadable and explained in Problems. An error means that the processes could not be listed, or that
// ctx is done.
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

// within returns the result of f, or false when ctx is done first; f then runs on by itself.
func within[T any](ctx context.Context, f func() T) (v T, ok bool) {
	done := make(chan T, 1)
	go func() { done <- f() }()
	select {
	case v := <-done:
		return v, true
	case <-ctx.Done():
		return v, false
	}
}

// problem adds a sentence for the reader of the report.
func (s *Snapshot) problem(format string, args ...any) {
	s.Problems = append(s.Problems, fmt.Sprintf(format, args...))
}

// problemOf adds a sentence about pids, unless there are none. The first verb of format is their list.
func (s *Snapshot) problemOf(pids []int, format string, args ...any) {
	if len(pids) > 0 {
		s.problem(format, append([]any{PIDList(pids)}, args...)...)
	}
}

// find returns the process with that PID, or nil. Processes must be ordered.
func (s *Snapshot) find(pid int) *Process {
	i, ok := slices.BinarySearchFunc(s.Processes, pid, func(p Process, pid int) int { return p.PID - pid })
	if !ok {
		return nil
	}
	return &s.Processes[i]
}

// PIDList formats PIDs for a sentence: the first few, and the number of the others.
func PIDList(pids []int) string {
	const shown = 5
	list := "pid "
	for i, pid := range pids[:min(shown, len(pids))] {
		if i > 0 {
			list += ", "
		}
		list += strconv.Itoa(pid)
	}
	if len(pids) > shown {
		list += fmt.Sprintf(" and %d more", len(pids)-shown)
	}
	return list
}
