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

// link reads a symbolic link of the process: "cwd", "exe", "ns/net". A path longer than 4 KiB is
// cut. Reading a link never touches the file that it leads to, so that it cannot block on a dead file
// system.
func (h handle) link(name string) (string, error) {
	n, err := unix.Readlinkat(h.root, name, h.buf[:min(4096, len(h.buf))])
	if err != nil {
		return "", err
	}
	return string(h.buf[:n]), nil
}

// fds are the open descriptors of a process: its /proc/PID/fd, opened.
type fds struct {
	dir   int
	names []string // in the order of the numbers
}

// openFDs lists the open descriptors.
func (h handle) openFDs() (fds, error) {
	dir, err := openAt(h.root, "fd", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return fds{}, err
	}
	f := fds{dir: dir}
	for {
		n, err := unix.ReadDirent(dir, h.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			f.close()
			return fds{}, err
		}
		// Only an answer without an entry is the last one: getdents(2) returns what it has when a signal
		// comes, and Go's scheduler sends itself signals all the time.
		if n <= 0 {
			return f, nil
		}
		_, _, f.names = unix.ParseDirent(h.buf[:n], -1, f.names)
	}
}

// threadFDs lists the descriptors of a process by another of its threads than the first.
func (h handle) threadFDs(pid int) (fds, error) {
	tasks, err := openAt(h.root, "task", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return fds{}, err
	}
	defer unix.Close(tasks)
	tids, err := listPIDs(tasks)
	if err != nil {
		return fds{}, err
	}
	for _, tid := range tids {
		if tid == pid {
			continue
		}
		thread, err := openAny(tasks, tid, h.buf)
		if err != nil {
			continue // ended meanwhile
		}
		f, err := thread.openFDs()
		thread.close()
		if err == nil {
			return f, nil
		}
	}
	return fds{}, errOther
}

func (f fds) close() { unix.Close(f.dir) }

// target reads what a descriptor is open to: "pipe:[4711]", "socket:[4711]", "/dev/null", or a path,
// of which the beginning is enough.
func (f fds) target(fd string) (string, error) {
	var buf [64]byte
	n, err := unix.Readlinkat(f.dir, fd, buf[:])
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// mode tells how the process may use a descriptor: the bits of the owner in the mode of the link
// /proc/PID/fd/N say it, as proc_pid_fd(5) explains.
func (f fds) mode(fd string) (read, write bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstatat(f.dir, fd, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, false, err
	}
	return st.Mode&unix.S_IRUSR != 0, st.Mode&unix.S_IWUSR != 0, nil
}
