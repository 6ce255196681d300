//go:build unix

package stdio

import (
	"os/exec"
	"syscall"
)

// canTerminate tells that the system has SIGTERM.
const canTerminate = true

// noFormat is what execve(2) answers to a file that is no program and does not name its interpreter.
const noFormat = syscall.ENOEXEC

// apart starts a command in a session of its own: an interrupt from the terminal is for mcpdoctor,
// which then ends what it started, and nothing that is started can read from the terminal.
func apart(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
