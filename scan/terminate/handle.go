package terminate

import (
	"errors"
	"os"

	"mcpdoctor/scan"
)

// ErrGone means that the process that an ID names has exited, whether or not its PID was reused since. For
// terminating it, that is success.
var ErrGone = errors.New("it has exited, or its PID was reused")

// ErrNoStart means that an ID has no start time, and so does not identify a process.
var ErrNoStart = errors.New("start time unknown: cannot rule out PID reuse")

// errProtected guards PID 1 and mcpdoctor itself even if a caller's checks fail.
var errProtected = errors.New("PID 1 and mcpdoctor itself are never signalled")

// Handle is an open process: it can be signalled and watched whatever happens to its PID. No method
// blocks. The error of a signal is [ErrGone] when the process has exited, [os.ErrClosed] after Close.
type Handle interface {
	// Terminate asks the process to exit: SIGTERM. Windows has no such signal: there it is Kill.
	Terminate() error

	// Continue resumes a stopped process: SIGCONT. On Windows it does nothing.
	Continue() error

	// Kill sends SIGKILL. A process that waits for a device (state D) exits when that wait is over.
	Kill() error

	// Exited reports whether the process has exited, even if its parent has not waited for it yet.
	Exited() bool

	// Close releases the handle and leaves the process alone. It may be called more than once.
	Close()
}

// Open opens the process that id names. The error is [ErrGone] when it has exited (a zombie has, unless
// only its first thread exited), [ErrNoStart] when id has no start time, and the system's when it may not
// be opened. Open does not block.
//
// On Linux the handle is a pidfd (pidfd_open(2)): the kernel ties it to the process, not to the number, and
// the start time is compared after it was opened. No signal can reach another process with the same PID.
// Windows handles work alike. Elsewhere, and on Linux before 5.3, the start time is compared immediately
// before each signal, which leaves microseconds in which the PID could be reused.
func Open(id scan.ID) (Handle, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	h := &process{id: id}
	if err := h.open(); err != nil {
		return nil, err
	}
	return h, nil
}

// checkID returns an error unless id may name a process to be signalled.
func checkID(id scan.ID) error {
	switch {
	case id.Start == 0:
		return ErrNoStart
	case id.PID <= 1 || id.PID == os.Getpid(): // kill(2) takes 0 and less for many at once
		return errProtected
	}
	return nil
}

// process is the [Handle] that [Open] returns.
type process struct {
	id     scan.ID
	closed bool
	osHandle
}

func (h *process) Terminate() error { return h.send(sigterm) }
func (h *process) Continue() error  { return h.send(sigcont) }
func (h *process) Kill() error      { return h.send(sigkill) }
func (h *process) Exited() bool     { return h.exited() }

func (h *process) Close() {
	if !h.closed {
		h.closed = true
		h.close()
	}
}

func (h *process) send(s sig) error {
	switch {
	case h.closed:
		return os.ErrClosed
	case h.exited(): // a zombie accepts signals and ignores them
		return ErrGone
	}
	return h.signal(s)
}

// KillChild kills a child of this process that has not been waited for, so that its PID is still its own.
func KillChild(p *os.Process) error { return p.Kill() }
