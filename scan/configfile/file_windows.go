package configfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// openNonblock only opens files that were checked: they are on a disk.
func openNonblock(path string) (*os.File, error) { return os.Open(path) }

// absent reports whether there is nothing at a path, or the path is not valid.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.Errno(123)) // ERROR_INVALID_NAME
}

// untrusted is always false: the system keeps users out of each other's folders.
func untrusted(fs.FileInfo, string) bool { return false }
