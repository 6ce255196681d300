package stdio

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// canTerminate tells that the system has SIGTERM.
const canTerminate = false

// noFormat is what CreateProcess answers to a file that is no program.
const noFormat = windows.ERROR_BAD_EXE_FORMAT

// apart starts a command in a process group of its own, which Ctrl-C does not reach.
func apart(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}
