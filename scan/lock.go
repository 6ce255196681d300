package scan

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// ErrLocked tells that another reap of the same user is at work.
var ErrLocked = errors.New("another reap of this user is at work")

// Locked is the lock that [Lock] took.
type Locked struct {
	file *os.File
}

// Lock takes the lock that keeps two reaps of one user apart. The error is [ErrLocked] when another
// process has it, with that one's PID if it is known, and else says what stands in the way.
//
// The lock is on a file in a place that depends on the user alone, not on the environment: cron,
// systemd, launchd and a terminal give a program different ones. It is flock(2) on
// /tmp/mcpdoctor-UID.lock, and LockFileEx on mcpdoctor.lock in the user's local application data on
// Windows. The system releases it when the process ends, however it ends; the file stays. It holds the
// PID of who has the lock, for the other's error only. Lock never waits, and touches no file but a
// regular one of the user's own.
func Lock() (*Locked, error) {
	path, err := lockPath()
	if err != nil {
		return nil, fmt.Errorf("cannot find a place for the lock: %w", err)
	}
	return lockAt(path)
}

func lockAt(path string) (*Locked, error) {
	f, free, err := openLock(path)
	if err != nil {
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	if !free {
		defer f.Close()
		if pid := readPID(f); pid > 0 {
			return nil, fmt.Errorf("%w (pid %d)", ErrLocked, pid)
		}
		return nil, ErrLocked
	}
	// A full disk keeps the PID from being written, not the lock from being held.
	if err := f.Truncate(0); err == nil {
		f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0) //nolint:errcheck // as said
	}
	return &Locked{f}, nil
}

// Close releases the lock.
func (l *Locked) Close() {
	l.file.Truncate(0) //nolint:errcheck // the next holder writes its own
	l.file.Close()
}

// readPID reads who has the lock; it is 0 when that is not known.
func readPID(f *os.File) int {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 20))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}
