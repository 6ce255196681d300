//go:build unix

package lockfile

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// defaultPath is in /tmp, which every user can write to, even one who is not logged in (and has no
// /run/user/UID) or has no home. Others can write there too, which is why openOwn checks what it opens.
// Root uses a directory of its own.
func defaultPath() (string, error) {
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

// openLocked opens or creates the file at path and locks it if it is free.
func openLocked(path string) (f *os.File, free bool, err error) {
	const tries = 10
	for range tries {
		f, err = openOwn(path, unix.O_RDWR)
		if err == unix.ENOENT || err == unix.EEXIST { // it was removed or created meanwhile
			continue
		}
		if err != nil {
			return nil, false, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == unix.EWOULDBLOCK {
			return f, false, nil
		}
		if err == nil && hasName(path, f) {
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

// hasName reports whether path still names the open file: a cleaner of /tmp may have removed it, and
// another process may have locked a new one.
func hasName(path string, f *os.File) bool {
	named, err := os.Lstat(path)
	if err != nil {
		return false
	}
	opened, err := f.Stat()
	return err == nil && os.SameFile(named, opened)
}
