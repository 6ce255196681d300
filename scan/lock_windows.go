package scan

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// lockPath asks the system, by the user's token, and not the environment. Nobody else can write there.
func lockPath() (string, error) {
	dir, err := windows.KnownFolderPath(windows.FOLDERID_LocalAppData, windows.KF_FLAG_DEFAULT)
	return filepath.Join(dir, "mcpdoctor.lock"), err
}

// openLock opens the file at path, makes it if there is none, and locks it if it is free.
func openLock(path string) (f *os.File, free bool, err error) {
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, errors.Unwrap(err) // the path is told by who calls
	}
	// What is locked is a byte far behind the content, since nobody else could read one that is.
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1})
	switch {
	case err == nil:
		return f, true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return f, false, nil
	}
	f.Close()
	return nil, false, err
}
