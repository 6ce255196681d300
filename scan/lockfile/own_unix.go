//go:build unix

package lockfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// defaultPath is in /tmp, which every user can write to, even one who is not logged in (and has no
// /run/user/UID) or has no home. Others can write there too, which is why openOwn checks what it opens.
// Root uses a directory of its own.
func defaultPath() (string, error) {
	uid := os.Geteuid()
	for _, dir := range []string{"/run", "/var/run"} {
		if info, err := os.Lstat(dir); uid == 0 && err == nil && info.IsDir() && info.Mode().Perm()&0o022 == 0 && ownerOf(info) == 0 {
			return dir + "/mcpdoctor.lock", nil
		}
	}
	return "/tmp/mcpdoctor-" + strconv.Itoa(uid) + ".lock", nil
}

func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// openOwn opens or creates a file of this user. Its directory may be writable to others.
func openOwn(path string, flags int) (*os.File, error) {
	flags |= syscall.O_NOFOLLOW | syscall.O_NONBLOCK // the latter for a FIFO that was put there after the check
	err := check(os.Lstat(path))
	if errors.Is(err, fs.ErrNotExist) {
		// Without O_EXCL the kernel may refuse what is there, with EACCES (fs.protected_regular).
		flags, err = flags|os.O_CREATE|os.O_EXCL, nil
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, errors.Unwrap(err) // the caller adds the path
	}
	if err = check(f.Stat()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

var kinds = map[fs.FileMode]string{
	0: "a file", fs.ModeDir: "a directory", fs.ModeSymlink: "a symbolic link", fs.ModeNamedPipe: "a FIFO", fs.ModeSocket: "a socket",
}

// check returns an error unless the file is a regular one of this user with a single name. With a second one
// it could be another file of the user, linked there.
func check(info fs.FileInfo, err error) error {
	if err != nil {
		return err
	}
	owner, kind := ownerOf(info), info.Mode().Type()
	switch {
	case kind != 0 || owner != os.Geteuid():
		return fmt.Errorf("%s of uid %d is there, which must be removed first", cmp.Or(kinds[kind], "something"), owner)
	case info.Sys().(*syscall.Stat_t).Nlink > 1:
		return errors.New("a hard link to another file is there, which must be removed first")
	}
	return nil
}

func ownerOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
