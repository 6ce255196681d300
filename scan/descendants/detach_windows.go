package descendants

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// Detach makes a command start in a process group of its own, which Ctrl-C does not reach.
func Detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}
