//go:build unix && !linux && !darwin

package scan

import (
	"slices"

	"github.com/shirou/gopsutil/v4/process"
)

// zombie tells that a process has ended and was not waited for.
func zombie(pid int) bool {
	p := process.Process{Pid: int32(pid)}
	states, err := p.Status()
	return err == nil && slices.Contains(states, process.Zombie)
}
