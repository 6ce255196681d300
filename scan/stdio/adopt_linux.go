package stdio

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan"
	"mcpdoctor/scan/terminate"
)

// canAdopt tells that the system has somebody adopt who loses its parent.
const canAdopt = true

// adopt makes this process the adopter of all that is started below it and loses its parent, until
// restore is called; see PR_SET_CHILD_SUBREAPER in prctl(2).
func adopt() (restore func(), err error) {
	var before int32
	if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&before)), 0, 0, 0); err != nil {
		return nil, fmt.Errorf("cannot adopt what loses its parent, so that it would get away unseen: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("cannot adopt what loses its parent, so that it would get away unseen: %w", err)
	}
	return func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, uintptr(before), 0, 0, 0) }, nil
}

// waitFor takes the status of a dead child that nobody else waits for.
func waitFor(pid int) {
	_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
}

// hasMark tells that a process was started with this entry in its environment. What may not be read,
// and what has written over it, has none.
func hasMark(id scan.ID, mark string) bool {
	h, err := terminate.Open(id)
	if err != nil {
		return false
	}
	defer h.Close()
	content, err := os.ReadFile("/proc/" + strconv.Itoa(id.PID) + "/environ")
	if err != nil || h.Ended() { // then the PID may have been another's when it was read
		return false
	}
	for entry := range bytes.SplitSeq(content, []byte{0}) {
		if string(entry) == mark {
			return true
		}
	}
	return false
}

// builtByGo tells that the program of a process was built by Go, which says so in itself.
func builtByGo(pid int) bool {
	_, err := buildinfo.ReadFile("/proc/" + strconv.Itoa(pid) + "/exe")
	return err == nil
}
