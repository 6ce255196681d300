//go:build unix

package stdio

import "syscall"

const hasSIGTERM = true

// errNotExecutable is the error of execve(2) for a file that is no program and does not name its interpreter.
const errNotExecutable = syscall.ENOEXEC
