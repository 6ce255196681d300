//go:build unix

package scan

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// appendOwn opens or makes a file for writing at its end.
func appendOwn(path string) (*os.File, error) { return openOwn(path, unix.O_WRONLY|unix.O_APPEND) }

// openOwn opens or makes the file at path. Who else can write in its directory can have put anything
// there: nothing is opened but a regular file of this user.
func openOwn(path string, mode int) (*os.File, error) {
	// O_NONBLOCK is for what was put there between the look and the opening: a FIFO without a reader.
	flags := mode | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	if err == nil {
		err = ours(&st)
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
		err = ours(&st)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// ours says what is wrong with a file that is not a regular one of this user, known under one name
// only: a second name would mean that it is another of the user's files, linked there.
func ours(st *unix.Stat_t) error {
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
