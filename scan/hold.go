package scan

import (
	"errors"
	"os"
)

// ErrGone tells that the process that an [ID] names is not there any more: it has ended, or its PID
// was given to another. To who wants it ended that is success.
var ErrGone = errors.New("the process has ended, or its PID belongs to another")

// ErrUnnamed tells that an [ID] has no start time, so that it names nobody.
var ErrUnnamed = errors.New("its start time is not known, so that its PID may belong to another")

// errSpared is the last of several locks before that door.
var errSpared = errors.New("the first process and mcpdoctor itself are never signalled")

// Hold opens the one process that id names, so that it can be signalled and watched. The error is
// [ErrGone] when it has ended already (a zombie has; not one of which only the first thread has
// ended), [ErrUnnamed] when id has no start time, and that of the system when it may not be opened.
// Hold does not block.
//
// On Linux the handle is a pidfd (pidfd_open(2)): the kernel ties it to the process and not to the
// number, and the start time is compared after it was opened, so that no signal can reach another
// process that was given the PID meanwhile. Windows has handles of the same kind. Elsewhere, and on
// kernels before 5.3, the start time is compared immediately before each signal, which leaves
// microseconds in which the PID could change hands.
func Hold(id ID) (*Held, error) {
	if err := id.nameable(); err != nil {
		return nil, err
	}
	h := &Held{id: id}
	if err := h.open(); err != nil {
		return nil, err
	}
	return h, nil
}

// nameable tells whether an ID may name a process that is to be signalled.
func (id ID) nameable() error {
	switch {
	case id.Start == 0:
		return ErrUnnamed
	case id.PID <= 1 || id.PID == os.Getpid(): // kill(2) takes 0 and less for many at once
		return errSpared
	}
	return nil
}

// Held is a process that [Hold] opened.
type Held struct {
	id     ID
	closed bool
	grip
}

// Terminate asks the process to end: SIGTERM. Windows has nothing of the kind: there it does what
// Kill does. The error is [ErrGone] when the process has ended.
func (h *Held) Terminate() error { return h.send(toTerminate) }

// Continue lets a stopped process run on, so that it can end: SIGCONT. On Windows it does nothing.
func (h *Held) Continue() error { return h.send(toContinue) }

// Kill ends the process whether it wants or not: SIGKILL. One that waits for a device in the kernel
// (state D) ends when that wait is over.
func (h *Held) Kill() error { return h.send(toKill) }

// Ended tells that the process has ended, also when nobody has waited for it yet.
func (h *Held) Ended() bool { return h.ended() }

// Close gives the handle back. The process is not touched.
func (h *Held) Close() {
	if !h.closed {
		h.closed = true
		h.close()
	}
}

func (h *Held) send(a act) error {
	switch {
	case h.closed:
		return os.ErrClosed
	case h.ended(): // a zombie takes signals and does nothing with them
		return ErrGone
	}
	return h.signal(a)
}

// act is what is asked of a process.
type act int

const (
	toTerminate act = iota
	toContinue
	toKill
)
