//go:build unix && !linux

package terminate

import (
	"errors"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan"
)

// osHandle is empty: these systems have no handle on a process that is not a child.
type osHandle struct{}

func (h *process) open() error { return h.checkIdentity() }

func (h *process) close() {}

// checkIdentity returns an error unless the PID belongs, by its start time, to the process that the ID
// names and that is running.
func (h *process) checkIdentity() error {
	running, err := scan.Running(h.id)
	switch {
	case err != nil && errors.Is(unix.Kill(h.id.PID, 0), unix.ESRCH):
		return ErrGone
	case err != nil:
		return err
	case !running:
		return ErrGone
	}
	return nil
}

func (h *process) signal(s sig) error {
	err := h.checkIdentity()
	if err == nil {
		err = unix.Kill(h.id.PID, s)
	}
	if err == unix.ESRCH {
		return ErrGone
	}
	return err
}

func (h *process) exited() bool { return errors.Is(h.checkIdentity(), ErrGone) }
