package configfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// openWithoutWaiting opens a file for reading. What is no file on a disk was found out before.
func openWithoutWaiting(path string) (*os.File, error) { return os.Open(path) }

// notThere tells that nothing lies at a path, also when its name cannot be one.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.Errno(123)) // ERROR_INVALID_NAME
}

// foreign is never known here: folders of other users are closed by the system.
func foreign(fs.FileInfo, string) bool { return false }
