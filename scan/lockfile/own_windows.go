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

// tryLock locks a byte far behind the content: others cannot read a locked one.
func tryLock(f *os.File) (bool, error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

func openOwn(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|os.O_CREATE, 0o600)
	if err != nil {
		return nil, errors.Unwrap(err) // the caller adds the path
	}
	return f, nil
}
