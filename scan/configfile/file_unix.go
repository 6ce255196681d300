//go:build unix

package configfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// openNonblock does not wait if the file has become a FIFO or a terminal since it was checked.
func openNonblock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
}

// absent reports whether there is nothing at a path, or a file in place of its folder.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// untrusted reports whether a file belongs neither to this user, nor to root, nor to the owner of the home
// folder, who is another user under sudo.
func untrusted(info fs.FileInfo, home string) bool {
	owner := ownerOf(info)
	if owner == 0 || owner == os.Geteuid() {
		return false
	}
	of, err := os.Stat(home)
	return err != nil || ownerOf(of) != owner
}

func ownerOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
