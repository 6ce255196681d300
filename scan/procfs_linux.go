package scan

import (
	"errors"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// The files of procfs are read with bare system calls. An os.File would add an allocation, a
// finalizer and a try at the poller to each of thousands of reads that take microseconds.

// maxCmdline is where a longer command line is cut. The kernel allows megabytes, and any user can
// make one; nothing that tells one server from another stands so far behind.
const maxCmdline = 128 << 10

// gone tells that the process ended while it was looked at.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH)
}

// openAt opens a path below the directory dir.
func openAt(dir int, path string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, path, flags|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// readAt reads the file at a path below the directory dir. It reads into buf, which it lengthens
// as long as the file goes on, up to max bytes, and returns the buffer and what was read of it. A
// file that is shorter than the buffer costs one read: procfs fills what it is given.
func readAt(dir int, path string, buf []byte, max int) (newBuf, content []byte, err error) {
	fd, err := openAt(dir, path, unix.O_RDONLY)
	if err != nil {
		return buf, nil, err
	}
	defer unix.Close(fd)
	n := 0
	for {
		m, err := unix.Read(fd, buf[n:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return buf, nil, err
		}
		n += m
		if m == 0 || n < len(buf) || n >= max {
			return buf, buf[:n], nil
		}
		buf = append(buf, make([]byte, min(len(buf), max-n))...)
	}
}

// readSmall reads one file about the host; it is empty when it cannot be read.
func readSmall(root int, path string) []byte {
	_, content, err := readAt(root, path, make([]byte, 8<<10), 1<<20)
	if err != nil {
		return nil
	}
	return content
}

// listPIDs returns the processes that root has directories for, in order.
func listPIDs(root int) ([]int, error) {
	var pids []int
	buf := make([]byte, 32<<10)
	names := make([]string, 0, 1<<10)
	for {
		n, err := unix.ReadDirent(root, buf)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, err
		case n <= 0:
			slices.Sort(pids)
			return pids, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
		for _, name := range names {
			if name[0] >= '1' && name[0] <= '9' {
				if pid, err := strconv.Atoi(name); err == nil {
					pids = append(pids, pid)
				}
			}
		}
	}
}
