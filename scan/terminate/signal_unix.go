//go:build unix

package terminate

import "golang.org/x/sys/unix"

type sig = unix.Signal

const (
	sigterm = unix.SIGTERM
	sigcont = unix.SIGCONT
	sigkill = unix.SIGKILL
)
