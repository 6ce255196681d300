// Package lockfile lets only one reap of a user run at a time, and opens files in directories that others can
// write to.
package lockfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// ErrLocked means that another reap of the same user is running.
var ErrLocked = errors.New("another reap of this user is at work")

// A Lock is held until it is released or the process exits.
type Lock struct {
	file *os.File
}

// Acquire takes the lock that lets only one reap of a user run at a time. If another process has it, the error
// is [ErrLocked] with the PID of that process. Acquire never waits.
//
// The path of the file depends on the user alone, not on the environment, which differs between cron,
// systemd, launchd and a terminal. The lock is flock(2) on /tmp/mcpdoctor-UID.lock (in /run for root), and
// LockFileEx on mcpdoctor.lock in the user's local application data on Windows. The system releases it
// when the process exits; the file stays. It contains the holder's PID, for error messages only.
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

// openLocked opens or creates the file at path and locks it if it is free.
func openLocked(path string) (f *os.File, free bool, err error) {
	const tries = 10
	for range tries {
		f, err = openOwn(path, os.O_RDWR)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) { // removed or created meanwhile
			continue
		}
		if err != nil {
			return nil, false, err
		}
		free, err = tryLock(f)
		if err == nil && (!free || hasName(path, f)) {
			return f, free, nil
		}
		f.Close()
		if err != nil {
			return nil, false, err
		}
		err = errors.New("another program keeps removing it")
	}
	return nil, false, err
}

// hasName reports whether path still names the open file: a cleaner of /tmp may have removed it, and
// another process may have locked a new one.
func hasName(path string, f *os.File) bool {
	named, err := os.Lstat(path)
	if err != nil {
		return false
	}
	opened, err := f.Stat()
	return err == nil && os.SameFile(named, opened)
}

// readPID returns the PID of the holder, 0 if it is not known.
func readPID(f *os.File) (pid int) {
	fmt.Fscan(io.NewSectionReader(f, 0, 20), &pid) //nolint:errcheck // then it is 0
	return pid
}

// Append opens the file at path for appending and creates it, readable by its owner only, if there is none.
// It opens only a regular file of this user with a single name: in a directory that others can write to,
// anything else may be a link to another file, or block.
func Append(path string) (*os.File, error) {
	f, err := openOwn(path, os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}
