//go:build unix

package descendants

import (
	"os/exec"
	"syscall"
)

// Detach makes a command start in a session of its own: Ctrl-C in the terminal does not reach it, and it
// cannot read from the terminal.
func Detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
