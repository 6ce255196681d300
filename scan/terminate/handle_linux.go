package terminate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

// osHandle is a pidfd, -1 where the kernel has none.
type osHandle struct {
	fd int
}

var (
	errHidden         = errors.New("/proc hides it")
	errOtherNamespace = errors.New("/proc belongs to another PID namespace, where the PID is another process")
)

func (h *process) open() error { return h.openWith(unix.PidfdOpen) }

func (h *process) openWith(pidfdOpen func(pid, flags int) (int, error)) error {
	fd, err := pidfdOpen(h.id.PID, 0)
	switch err {
	case nil:
	case unix.ESRCH, unix.ENOENT, unix.EINVAL: // ENOENT, before Linux 6.16 EINVAL: the number of a thread
		return ErrGone
	case unix.ENOSYS, unix.EPERM: // before Linux 5.3; denied by a sandbox
		fd = -1
	default:
		return err
	}
	h.fd = fd
	err = h.checkIdentity()
	if err == nil {
		err = h.checkNamespace()
	}
	if err == nil {
		err = h.checkTracer()
	}
	if err != nil {
		h.close()
	}
	return err
}

// checkIdentity returns an error unless the PID belongs to the process that the ID names and that is
// running. Reading /proc/PID/stat waits for nothing that the process holds.
func (h *process) checkIdentity() error {
	content, err := h.read(strconv.Itoa(h.id.PID) + "/stat")
	if procfs.IsGone(err) {
		if unix.Kill(h.id.PID, 0) != unix.ESRCH { // hidepid=2
			return errHidden
		}
		return ErrGone
	}
	if err != nil {
		return err
	}
	st, err := procfs.ParseStat(content)
	switch {
	case err != nil:
		return err
	case st.Start != h.id.Start, st.State == 'X', st.State == 'Z' && st.Threads <= 1: // with more threads only the first has exited
		return ErrGone
	}
	return nil
}

// checkNamespace returns an error unless the PID means the same process to the kernel and to /proc. In a
// container with the /proc of its host, the process that was compared is not the one that was opened.
func (h *process) checkNamespace() error {
	if h.fd < 0 {
		switch self, err := os.Readlink("/proc/self"); {
		case err != nil:
			return err
		case self != strconv.Itoa(os.Getpid()):
			return errOtherNamespace
		}
		return nil
	}
	content, err := h.read("self/fdinfo/" + strconv.Itoa(h.fd))
	if err != nil {
		return err
	}
	switch parsePidfd(content) {
	case int64(h.id.PID):
		return nil
	case -1: // it has exited and was waited for
		return ErrGone
	}
	return errOtherNamespace
}

// checkTracer returns an error if a debugger is attached: its user still needs the process.
func (h *process) checkTracer() error {
	content, err := h.read(strconv.Itoa(h.id.PID) + "/status")
	if procfs.IsGone(err) {
		return ErrGone
	}
	if err != nil {
		return err
	}
	if tracer := field(content, "TracerPid:"); tracer != "" && tracer != "0" {
		return fmt.Errorf("pid %s is debugging or tracing it", tracer)
	}
	return nil
}

// parsePidfd returns the PID in the fdinfo of a pidfd, which is that in the namespace of /proc: 0 when the
// process is not in it, -1 when it has exited and was waited for.
func parsePidfd(fdinfo []byte) int64 {
	pid, err := strconv.ParseInt(field(fdinfo, "Pid:"), 10, 64)
	if err != nil {
		return 0
	}
	return pid
}

// field returns the value of the first line with this key.
func field(content []byte, key string) string {
	for line := range bytes.Lines(content) {
		if value, ok := bytes.CutPrefix(line, []byte(key)); ok {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

func (h *process) read(path string) ([]byte, error) {
	r := procfs.Reader{Dir: unix.AT_FDCWD, Buf: make([]byte, 1<<10)}
	return r.ReadFile("/proc/"+path, len(r.Buf), nil)
}

func (h *process) signal(s sig) (err error) {
	if h.fd >= 0 {
		err = unix.PidfdSendSignal(h.fd, s, nil, 0)
	} else if err = h.checkIdentity(); err == nil {
		err = unix.Kill(h.id.PID, s)
	}
	if err == unix.ESRCH {
		return ErrGone
	}
	return err
}

// exited polls the pidfd, which becomes readable when the process exits (pidfd_open(2)).
func (h *process) exited() bool {
	if h.fd < 0 {
		return errors.Is(h.checkIdentity(), ErrGone)
	}
	for {
		fds := []unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, 0)
		if err == unix.EINTR {
			continue
		}
		return err == nil && fds[0].Revents&unix.POLLIN != 0
	}
}

func (h *process) close() {
	if h.fd >= 0 {
		unix.Close(h.fd)
		h.fd = -1
	}
}
