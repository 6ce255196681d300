package procfs

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// A Process is an open /proc/PID. The kernel ties it to the process, not to the number: once the process has
// exited, every look-up through it fails, even if the PID is in use again. Comparing the start time once
// therefore covers everything that is read through it.
type Process struct {
	Reader // of the files in /proc/PID
}

// ErrOtherProcess means that the process, or its descriptor, is not the one asked for.
var ErrOtherProcess = errors.New("the PID belongs to another process, or its process is dead")

// Open opens a process. The error is [ErrOtherProcess] unless it started at start (in the unit of [Stat]) and is
// alive. root is the descriptor of a procfs mount; reads go into buf.
func Open(root, pid int, start int64, buf []byte) (Process, error) {
	h, err := OpenPID(root, pid, buf)
	if err != nil {
		return Process{}, err
	}
	var st Stat
	content, err := h.ReadFile("stat", len(buf), nil)
	if err == nil {
		st, err = ParseStat(content)
	}
	if err == nil && (st.Start != start || st.State == 'Z' || st.State == 'X') {
		err = ErrOtherProcess
	}
	if err != nil {
		h.Close()
		return Process{}, err
	}
	return h, nil
}

// OpenPID opens the process that has the PID now.
func OpenPID(root, pid int, buf []byte) (Process, error) {
	dir, err := OpenAt(root, strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY)
	return Process{Reader{Dir: dir, Buf: buf}}, err
}

// Close closes the handle.
func (h Process) Close() { unix.Close(h.Dir) }

// Link reads a symbolic link of the process: "cwd", "exe", "ns/net". A path longer than 4 KiB is cut.
// The target is not touched, so a dead file system cannot block the call.
func (h Process) Link(name string) (string, error) {
	n, err := unix.Readlinkat(h.Dir, name, h.Buf[:min(4096, len(h.Buf))])
	if err != nil {
		return "", err
	}
	return string(h.Buf[:n]), nil
}

// FDs are the open descriptors of a process: its /proc/PID/fd, opened.
type FDs struct {
	Dir   int
	Names []string // the numbers, in order
}

// OpenFDs lists the open descriptors.
func (h Process) OpenFDs() (FDs, error) {
	dir, err := OpenAt(h.Dir, "fd", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return FDs{}, err
	}
	f := FDs{Dir: dir}
	err = readNames(dir, h.Buf, func(names []string) { f.Names = append(f.Names, names...) })
	if err != nil {
		f.Close()
		return FDs{}, err
	}
	return f, nil
}

// OpenThreadFDs lists the descriptors through a thread other than the first, which may have ended.
func (h Process) OpenThreadFDs(pid int) (FDs, error) {
	tasks, err := OpenAt(h.Dir, "task", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return FDs{}, err
	}
	defer unix.Close(tasks)
	tids, err := PIDs(tasks)
	if err != nil {
		return FDs{}, err
	}
	for _, tid := range tids {
		if tid == pid {
			continue
		}
		thread, err := OpenPID(tasks, tid, h.Buf)
		if err != nil {
			continue // exited meanwhile
		}
		f, err := thread.OpenFDs()
		thread.Close()
		if err == nil {
			return f, nil
		}
	}
	return FDs{}, ErrOtherProcess
}

// Close closes the directory.
func (f FDs) Close() { unix.Close(f.Dir) }

// Target returns what a descriptor refers to: "pipe:[4711]", "socket:[4711]", "/dev/null", or the
// beginning of a path.
func (f FDs) Target(fd string) (string, error) {
	var buf [64]byte
	n, err := unix.Readlinkat(f.Dir, fd, buf[:])
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// Mode reports whether a descriptor is open for reading and for writing: the owner's bits in the mode of
// the link /proc/PID/fd/N, see proc_pid_fd(5).
func (f FDs) Mode(fd string) (read, write bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstatat(f.Dir, fd, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, false, err
	}
	return st.Mode&unix.S_IRUSR != 0, st.Mode&unix.S_IWUSR != 0, nil
}

// PollPipe opens the anonymous pipe with that inode at descriptor fd again and polls it without waiting.
//
// Only a FIFO is opened, since opening a terminal or a device can have effects. O_PATH pins the file, so what is
// checked is what is opened.
func (f FDs) PollPipe(fd string, inode uint64, mode int, want int16) (events int16, err error) {
	pinned, err := OpenAt(f.Dir, fd, unix.O_PATH)
	if err != nil {
		return 0, err
	}
	defer unix.Close(pinned)
	var st unix.Stat_t
	if err := unix.Fstat(pinned, &st); err != nil {
		return 0, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFIFO || st.Ino != inode {
		return 0, ErrOtherProcess
	}
	// A pipe has the mode 0600: another user's cannot be opened, though the descriptor can be seen.
	again, err := OpenAt(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(pinned), mode|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return 0, err
	}
	defer unix.Close(again)
	for {
		poll := []unix.PollFd{{Fd: int32(again), Events: want}}
		if _, err = unix.Poll(poll, 0); err != unix.EINTR { // possible even with a timeout of 0
			return poll[0].Revents, err
		}
	}
}
