package scan

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// A handle is an open /proc/PID. The kernel ties it to the process and not to the number: once the
// process is gone every look-up through it fails, also when the PID was given to another. One
// comparison of the start time through the handle therefore vouches for all that is read through it.
type handle struct {
	reader // of the files in it
}

var errOther = errors.New("the PID belongs to another process, or its process is dead")

// openHandle opens the process that id names, below the directory root of a procfs mount. The
// handle reads into buf.
func openHandle(root int, id ID, buf []byte) (handle, error) {
	h, err := openAny(root, id.PID, buf)
	if err != nil {
		return handle{}, err
	}
	content, err := h.read("stat", len(buf), nil)
	if err == nil {
		var st procStat
		if st, err = parseStat(content); err == nil && (st.start != id.Start || st.state == 'Z' || st.state == 'X') {
			err = errOther
		}
	}
	if err != nil {
		h.close()
		return handle{}, err
	}
	return h, nil
}

// openAny opens the process that has the PID now.
func openAny(root, pid int, buf []byte) (handle, error) {
	dir, err := openAt(root, strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY)
	return handle{reader{root: dir, buf: buf}}, err
}

func (h handle) close() { unix.Close(h.root) }

// link reads a symbolic link of the process: "cwd", "exe", "fd/0", "ns/net". A path longer than 4 KiB
// is cut. Reading never touches the file that is linked to, so that it cannot block on a dead file
// system.
func (h handle) link(name string) (string, error) {
	var buf [4096]byte
	n, err := unix.Readlinkat(h.root, name, buf[:])
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// fds lists the open descriptors of the process.
func (h handle) fds() ([]string, error) {
	dir, err := openAt(h.root, "fd", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	var names []string
	for {
		n, err := unix.ReadDirent(dir, h.buf)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, err
		case n <= 0:
			return names, nil
		}
		_, _, names = unix.ParseDirent(h.buf[:n], -1, names)
	}
}

// openedTo tells how the process may use a descriptor: the bits of the owner in the mode of the link
// /proc/PID/fd/N say it, as proc_pid_fd(5) explains.
func (h handle) openedTo(fd string) (read, write bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstatat(h.root, "fd/"+fd, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, false, err
	}
	return st.Mode&unix.S_IRUSR != 0, st.Mode&unix.S_IWUSR != 0, nil
}
