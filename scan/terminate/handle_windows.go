package terminate

import (
	"errors"
	"time"

	"golang.org/x/sys/windows"
)

type sig int

const (
	sigterm sig = iota // TerminateProcess, as sigkill
	sigcont            // nothing
	sigkill
)

// osHandle is a handle, which keeps the PID from being reused while it is open.
type osHandle struct {
	handle windows.Handle
}

func (h *process) open() error {
	const rights = windows.PROCESS_TERMINATE | windows.PROCESS_QUERY_LIMITED_INFORMATION | windows.SYNCHRONIZE
	handle, err := windows.OpenProcess(rights, false, uint32(h.id.PID))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) { // the PID is unused
		return ErrGone
	}
	if err != nil {
		return err
	}
	h.handle = handle
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(handle, &created, &exited, &kernel, &user); err != nil {
		h.close()
		return err
	}
	// Milliseconds since 1970, like [scan.Process.Start].
	if created.Nanoseconds()/int64(time.Millisecond) != h.id.Start || h.exited() {
		h.close()
		return ErrGone
	}
	return nil
}

func (h *process) signal(s sig) error {
	if s == sigcont {
		return nil
	}
	err := windows.TerminateProcess(h.handle, 1)
	if err != nil && h.exited() { // one that is exiting refuses
		return ErrGone
	}
	return err
}

func (h *process) exited() bool {
	event, err := windows.WaitForSingleObject(h.handle, 0)
	return err == nil && event == windows.WAIT_OBJECT_0
}

func (h *process) close() {
	if h.handle != 0 {
		windows.CloseHandle(h.handle) //nolint:errcheck // nothing can be done about it
		h.handle = 0
	}
}
