package stdio

import (
	"debug/buildinfo"
	"strconv"
)

// isGoProgram reports whether a process runs a program that was built by Go.
func isGoProgram(pid int) bool {
	_, err := buildinfo.ReadFile("/proc/" + strconv.Itoa(pid) + "/exe")
	return err == nil
}
