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

// A reader reads whole small files into a buffer that it uses again.
type reader struct {
	root int // the descriptor that paths are relative to
	buf  []byte
}

// read returns the content of the file at path, up to max bytes; it is good until the next read. If
// info is not nil, it is filled with fstat(2). A file that is shorter than the buffer costs one
// read(2), since procfs fills what it is given; the buffer grows for those that are longer.
func (r *reader) read(path string, max int, info *unix.Stat_t) ([]byte, error) {
	fd, err := openAt(r.root, path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if info != nil {
		if err := unix.Fstat(fd, info); err != nil {
			return nil, err
		}
	}
	for n := 0; ; {
		buf := r.buf[:min(len(r.buf), max)]
		m, err := unix.Read(fd, buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		n += m
		if m == 0 || n < len(buf) || n == max {
			return buf[:n], nil
		}
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
}

// readSmall reads one file about the host below root; it is empty when it cannot be read.
func readSmall(root int, path string) []byte {
	r := reader{root: root, buf: make([]byte, 8<<10)}
	content, err := r.read(path, 1<<20, nil)
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
