//go:build unix

package scan

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// lockPath is in the one directory that is there and writable for every user, also for one who is
// not logged in (/run/user/UID is not there then) or has no home. Others can write in it too, so that
// openLock looks before it touches. Root has a directory of its own, in which nobody can be in the way.
func lockPath() (string, error) {
	if os.Geteuid() == 0 {
		for _, dir := range []string{"/run", "/var/run"} {
			var st unix.Stat_t
			if unix.Lstat(dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Uid == 0 && st.Mode&0o022 == 0 {
				return dir + "/mcpdoctor.lock", nil
			}
		}
	}
	return "/tmp/mcpdoctor-" + strconv.Itoa(os.Geteuid()) + ".lock", nil
}

// openLock opens the file at path, makes it if there is none, and locks it if it is free.
func openLock(path string) (f *os.File, free bool, err error) {
	const tries = 10
	for range tries {
		f, err = openOwn(path, unix.O_RDWR)
		if err == unix.ENOENT || err == unix.EEXIST { // it went or came meanwhile
			continue
		}
		if err != nil {
			return nil, false, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == unix.EWOULDBLOCK {
			return f, false, nil
		}
		if err == nil && at(path, f) {
			return f, true, nil
		}
		f.Close()
		if err != nil {
			return nil, false, err
		}
		err = errors.New("it is removed again and again")
	}
	return nil, false, err
}

// at tells that the open file is still the one that has the name: a cleaner of /tmp may have removed
// it, and another process may have locked a new one.
func at(path string, f *os.File) bool {
	named, err := os.Lstat(path)
	if err != nil {
		return false
	}
	opened, err := f.Stat()
	return err == nil && os.SameFile(named, opened)
}
