//go:build unix

package lockfile

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// appendOwn opens or creates a file for appending.
func appendOwn(path string) (*os.File, error) { return openOwn(path, unix.O_WRONLY|unix.O_APPEND) }

// openOwn opens or creates the file at path. Others may be able to write in its directory: only a regular
// file of this user is opened.
func openOwn(path string, mode int) (*os.File, error) {
	// O_NONBLOCK is for a FIFO that was put there after the check.
	flags := mode | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	if err == nil {
		err = check(&st)
	}
	var fd int
	switch err {
	case nil:
		fd, err = unix.Open(path, flags, 0)
	case unix.ENOENT:
		// Without O_EXCL the kernel may refuse what is there, with EACCES (fs.protected_regular).
		fd, err = unix.Open(path, flags|unix.O_CREAT|unix.O_EXCL, 0o600)
	}
	if err != nil {
		return nil, err
	}
	if err = unix.Fstat(fd, &st); err == nil {
		err = check(&st)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// check returns an error unless the file is a regular one of this user with a single name: a second one
// would make it another of the user's files, linked there.
func check(st *unix.Stat_t) error {
	kind := "something"
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		if int(st.Uid) == os.Geteuid() {
			if st.Nlink > 1 {
				return errors.New("a hard link to another file is there, which must be removed first")
			}
			return nil
		}
		kind = "a file"
	case unix.S_IFDIR:
		kind = "a directory"
	case unix.S_IFLNK:
		kind = "a symbolic link"
	case unix.S_IFIFO:
		kind = "a FIFO"
	case unix.S_IFSOCK:
		kind = "a socket"
	}
	return fmt.Errorf("%s of uid %d is there, which must be removed first", kind, st.Uid)
}
