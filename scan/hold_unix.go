//go:build unix && !linux

package scan

import (
	"errors"

	"github.com/shirou/gopsutil/v4/process"
	"golang.org/x/sys/unix"
)

// grip is nothing: these systems have no handle on a process that is not one's own child.
type grip struct{}

func (h *Held) open() error { return h.compare() }

func (h *Held) close() {}

// compare tells whether the PID still belongs to the process that the ID names, by its start time,
// and it lives.
func (h *Held) compare() error {
	if err := unix.Kill(h.id.PID, 0); err == unix.ESRCH {
		return ErrGone
	}
	p := process.Process{Pid: int32(h.id.PID)}
	ms, err := p.CreateTime()
	switch {
	case err != nil && errors.Is(unix.Kill(h.id.PID, 0), unix.ESRCH):
		return ErrGone
	case err != nil:
		return err
	case ms != h.id.Start, zombie(h.id.PID):
		return ErrGone
	}
	return nil
}

func (h *Held) signal(a act) error {
	if err := h.compare(); err != nil {
		return err
	}
	var s unix.Signal
	switch a {
	case toTerminate:
		s = unix.SIGTERM
	case toContinue:
		s = unix.SIGCONT
	case toKill:
		s = unix.SIGKILL
	}
	err := unix.Kill(h.id.PID, s)
	if err == unix.ESRCH {
		return ErrGone
	}
	return err
}

func (h *Held) ended() bool { return errors.Is(h.compare(), ErrGone) }
