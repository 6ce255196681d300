package scan

import (
	"path/filepath"
	"strconv"
)

// rootOf is the root directory that a process sees (proc_pid_root(5)).
func rootOf(o ExamineOptions, pid int) string {
	proc := o.Root
	if proc == "" {
		proc = "/proc"
	}
	return filepath.Join(proc, strconv.Itoa(pid), "root")
}
