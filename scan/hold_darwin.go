package scan

import "golang.org/x/sys/unix"

// zombie tells that a process has ended and was not waited for: sysctl kern.proc.pid.
func zombie(pid int) bool {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && darwinState(k.Proc.P_stat) == "Z"
}
