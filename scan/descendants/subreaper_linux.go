package descendants

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// setSubreaper makes this process adopt descendants that lose their parent, or stop doing so; see
// PR_SET_CHILD_SUBREAPER in prctl(2).
func setSubreaper(on bool) (bool, error) {
	var value uintptr
	if on {
		value = 1
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, value, 0, 0, 0); err != nil {
		return false, fmt.Errorf("cannot adopt processes that lose their parent: %w", err)
	}
	return on, nil
}

// reap waits for an adopted process that has exited.
func reap(pid int) { _, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) }
