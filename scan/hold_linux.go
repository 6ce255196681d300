package scan

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

// grip is a pidfd; -1 where the kernel has none to give.
type grip struct {
	fd int
}

var (
	errHidden  = errors.New("it is there, but /proc does not show it")
	errForeign = errors.New("/proc is that of another PID namespace, in which the PID means another process")
)

func (h *Held) open() error { return h.openBy(unix.PidfdOpen) }

func (h *Held) openBy(pidfdOpen func(pid, flags int) (int, error)) error {
	fd, err := pidfdOpen(h.id.PID, 0)
	switch err {
	case nil:
	case unix.ESRCH, unix.ENOENT, unix.EINVAL: // ENOENT, before Linux 6.16 EINVAL: the number is one of a thread
		return ErrGone
	case unix.ENOSYS, unix.EPERM: // before Linux 5.3; refused by a sandbox's filter
		fd = -1
	default:
		return err
	}
	h.fd = fd
	err = h.compare()
	if err == nil {
		err = h.confirm()
	}
	if err == nil {
		err = h.untraced()
	}
	if err != nil {
		h.close()
	}
	return err
}

// compare tells whether the PID still belongs to the process that the ID names, and it lives. The
// kernel writes /proc/PID/stat without waiting for anything that the process holds.
func (h *Held) compare() error {
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
	case st.Start != h.id.Start, st.State == 'X', st.State == 'Z' && st.Threads <= 1: // of one with more threads only the first has ended
		return ErrGone
	}
	return nil
}

// confirm tells whether the kernel and /proc mean the same process by the PID. They do not in a
// container that was given the /proc of its host: what was compared is then another process than
// what was opened.
func (h *Held) confirm() error {
	if h.fd < 0 {
		switch self, err := os.Readlink("/proc/self"); {
		case err != nil:
			return err
		case self != strconv.Itoa(os.Getpid()):
			return errForeign
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
	case -1: // it has ended, and was waited for
		return ErrGone
	}
	return errForeign
}

// untraced tells that no debugger is attached: whoever looks at a process wants it to be there.
func (h *Held) untraced() error {
	content, err := h.read(strconv.Itoa(h.id.PID) + "/status")
	if procfs.IsGone(err) {
		return ErrGone
	}
	if err != nil {
		return err
	}
	for line := range bytes.Lines(content) {
		if value, ok := bytes.CutPrefix(line, []byte("TracerPid:")); ok {
			if tracer := string(bytes.TrimSpace(value)); tracer != "0" {
				return fmt.Errorf("pid %s debugs or traces it", tracer)
			}
			return nil
		}
	}
	return nil
}

// parsePidfd finds the PID in what /proc/self/fdinfo tells about a pidfd: that of the namespace that
// /proc shows, 0 when it is not in there, -1 when the process has ended and was waited for.
func parsePidfd(fdinfo []byte) int64 {
	for line := range bytes.Lines(fdinfo) {
		if value, ok := bytes.CutPrefix(line, []byte("Pid:")); ok {
			if pid, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64); err == nil {
				return pid
			}
		}
	}
	return 0
}

func (h *Held) read(path string) ([]byte, error) {
	r := procfs.Reader{Dir: unix.AT_FDCWD, Buf: make([]byte, 1<<10)}
	return r.ReadFile("/proc/"+path, len(r.Buf), nil)
}

func (h *Held) signal(a act) error {
	var s unix.Signal
	switch a {
	case toTerminate:
		s = unix.SIGTERM
	case toContinue:
		s = unix.SIGCONT
	case toKill:
		s = unix.SIGKILL
	}
	var err error
	if h.fd >= 0 {
		err = unix.PidfdSendSignal(h.fd, s, nil, 0)
	} else if err = h.compare(); err == nil {
		err = unix.Kill(h.id.PID, s)
	}
	if err == unix.ESRCH {
		return ErrGone
	}
	return err
}

// ended asks the pidfd, which is readable once the process has ended (pidfd_open(2)).
func (h *Held) ended() bool {
	if h.fd < 0 {
		return errors.Is(h.compare(), ErrGone)
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

func (h *Held) close() {
	if h.fd >= 0 {
		unix.Close(h.fd)
		h.fd = -1
	}
}
