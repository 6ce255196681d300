package lockfile

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// defaultPath asks the system, by the user's token, not the environment. Other users cannot write there.
func defaultPath() (string, error) {
	dir, err := windows.KnownFolderPath(windows.FOLDERID_LocalAppData, windows.KF_FLAG_DEFAULT)
	return filepath.Join(dir, "mcpdoctor.lock"), err
}

// openLocked opens or creates the file at path and locks it if it is free.
func openLocked(path string) (f *os.File, free bool, err error) {
	f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, errors.Unwrap(err) // the caller adds the path
	}
	// The locked byte is far behind the content: a locked one cannot be read by others.
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
