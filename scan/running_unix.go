//go:build unix && !linux

package scan

import "github.com/shirou/gopsutil/v4/process"

// Running reports whether the process is running: its PID belongs to a process that started at id.Start and is not
// a zombie.
func Running(id ID) (bool, error) {
	p := process.Process{Pid: int32(id.PID)}
	ms, err := p.CreateTime()
	return err == nil && ms == id.Start && !zombie(id.PID), err
}
