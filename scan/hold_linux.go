package scan

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// grip is a pidfd; -1 where the kernel has none to give.
type grip struct {
	fd int
}

func (h *Held) open() error {
	fd, err := unix.PidfdOpen(h.id.PID, 0)
	switch {
	case err == unix.ESRCH || err == unix.EINVAL: // EINVAL: the number is one of a thread
		return ErrGone
	case err == unix.ENOSYS || err == unix.EPERM: // before Linux 5.3; refused by a sandbox's filter
		fd = -1
	case err != nil:
		return err
	}
	h.fd = fd
	if err := h.compare(); err != nil {
		h.close()
		return err
	}
	return nil
}

// compare tells whether the PID still belongs to the process that the ID names, and it lives.
func (h *Held) compare() error {
	r := reader{root: unix.AT_FDCWD, buf: make([]byte, 1<<10)}
	content, err := r.read("/proc/"+strconv.Itoa(h.id.PID)+"/stat", len(r.buf), nil)
	switch {
	case gone(err):
		return ErrGone
	case err != nil:
		return err
	}
	st, err := parseStat(content)
	switch {
	case err != nil:
		return err
	case st.start != h.id.Start, st.state == 'X', st.state == 'Z' && st.threads <= 1: // of one with more threads only the first has ended
		return ErrGone
	}
	return nil
}

func (h *Held) signal(a act) error {
	s := map[act]unix.Signal{toTerminate: unix.SIGTERM, toContinue: unix.SIGCONT, toKill: unix.SIGKILL}[a]
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
		n, err := unix.Poll(fds, 0)
		if err == unix.EINTR {
			continue
		}
		return err == nil && n > 0
	}
}

func (h *Held) close() {
	if h.fd >= 0 {
		unix.Close(h.fd)
		h.fd = -1
	}
}
