//go:build unix

package configfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// openWithoutWaiting opens a file for reading, without waiting for anybody should it have become a
// pipe or a terminal since it was looked at.
func openWithoutWaiting(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
}

// notThere tells that nothing lies at a path, also when a file stands where its folder should be.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// foreign tells that a file belongs to somebody whom the user has no reason to trust: neither to the
// user, nor to root, nor to the owner of the home folder, who is another one under sudo.
func foreign(info fs.FileInfo, home string) bool {
	owner, ok := ownerOf(info)
	if !ok || owner == 0 || int(owner) == os.Geteuid() {
		return false
	}
	of, err := os.Stat(home)
	if err != nil {
		return true
	}
	uid, ok := ownerOf(of)
	return !ok || uid != owner
}

func ownerOf(info fs.FileInfo) (uid uint32, ok bool) {
	if s, is := info.Sys().(*syscall.Stat_t); is {
		return s.Uid, true
	}
	return 0, false
}
