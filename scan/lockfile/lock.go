// Package lockfile lets only one reap run at a time, and opens files in directories that others can write
// to.
package lockfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// ErrLocked means that another reap of the same user is running.
var ErrLocked = errors.New("another reap of this user is at work")

// A Lock is held until it is released or the process exits.
type Lock struct {
	file *os.File
}

// Acquire takes the lock that lets only one reap of a user run at a time. The error is [ErrLocked], with
// the PID of the holder if it is known, when another process has it. Acquire never waits.
//
// The path of the file depends on the user alone, not on the environment, which differs between cron,
// systemd, launchd and a terminal. The lock is flock(2) on /tmp/mcpdoctor-UID.lock (in /run for root), and
// LockFileEx on mcpdoctor.lock in the user's local application data on Windows. The system releases it
// when the process exits; the file stays. It contains the holder's PID, for error messages only. No file
// is touched but a regular one of the user's own.
func Acquire() (*Lock, error) {
	path, err := defaultPath()
	if err != nil {
		return nil, fmt.Errorf("cannot find a place for the lock: %w", err)
	}
	return acquire(path)
}

func acquire(path string) (*Lock, error) {
	f, free, err := openLocked(path)
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
	// On a full disk the PID is missing, but the lock is held.
	if err := f.Truncate(0); err == nil {
		f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0) //nolint:errcheck // as said
	}
	return &Lock{f}, nil
}

// Release releases the lock.
func (l *Lock) Release() {
	l.file.Truncate(0) //nolint:errcheck // the next holder writes its own
	l.file.Close()
}

// readPID returns the PID of the holder, 0 when it is not known.
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
