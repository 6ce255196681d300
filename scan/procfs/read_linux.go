package procfs

import (
	"errors"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// Files are read with bare system calls: an os.File would add an allocation, a finalizer and an attempt to use the
// poller to each of thousands of reads that take microseconds.

// IsGone reports whether err means that the process has exited.
func IsGone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH)
}

// OpenAt opens a path below the directory dir, close-on-exec.
func OpenAt(dir int, path string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, path, flags|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// A Reader reads small files into a buffer that it reuses.
type Reader struct {
	Dir int // descriptor of the directory that paths are relative to
	Buf []byte
}

// ReadFile returns the content of the file at path, up to max bytes, valid until the next read. If info is not nil,
// it is filled in by fstat(2). A file shorter than the buffer takes one read(2), since procfs fills what it is
// given; the buffer grows for longer ones.
func (r *Reader) ReadFile(path string, max int, info *unix.Stat_t) ([]byte, error) {
	fd, err := OpenAt(r.Dir, path, unix.O_RDONLY)
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
		buf := r.Buf[:min(len(r.Buf), max)]
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
		r.Buf = append(r.Buf, make([]byte, len(r.Buf))...)
	}
}

// ReadSmall returns the content of a file below root, nil when it cannot be read.
func ReadSmall(root int, path string) []byte {
	r := Reader{Dir: root, Buf: make([]byte, 8<<10)}
	content, err := r.ReadFile(path, 1<<20, nil)
	if err != nil {
		return nil
	}
	return content
}

// PIDs returns the numbers of the processes, or threads, that have a directory in dir, in order.
func PIDs(dir int) ([]int, error) {
	var pids []int
	err := readNames(dir, make([]byte, 32<<10), func(names []string) {
		for _, name := range names {
			if name[0] >= '1' && name[0] <= '9' {
				if pid, err := strconv.Atoi(name); err == nil {
					pids = append(pids, pid)
				}
			}
		}
	})
	slices.Sort(pids)
	return pids, err
}

// readNames calls found with the names in a directory, some at a time. Only an empty answer is the last one:
// getdents(2) also returns early on a signal, and Go's scheduler sends itself many.
func readNames(dir int, buf []byte, found func(names []string)) error {
	var names []string
	for {
		n, err := unix.ReadDirent(dir, buf)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || n <= 0:
			return err
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
		found(names)
	}
}
