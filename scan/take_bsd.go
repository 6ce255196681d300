//go:build unix && !linux && !darwin

package scan

import (
	"context"
	"slices"
	"strings"

	"github.com/shirou/gopsutil/v4/process"
	"golang.org/x/sys/unix"
)

// system returns the system as in GOOS: the kernel's name in lower case.
func system() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return strings.ToLower(unix.ByteSliceToString(u.Sysname[:]))
}

// commandField is the JSON name of the field for the command line.
const commandField = "args"

// readCommand reads the arguments, and reports whether they could be read.
func readCommand(ctx context.Context, g *process.Process, p *Process) bool {
	args, err := g.CmdlineSliceWithContext(ctx)
	p.Args = args
	return err == nil
}

// refine adds group and session: getpgid(2) and getsid(2) answer about any process.
func refine(rows []Process) {
	for i := range rows {
		p := &rows[i]
		if pgid, err := unix.Getpgid(p.PID); err == nil {
			p.PGID = pgid
		}
		if sid, err := unix.Getsid(p.PID); err == nil {
			p.SID = sid
		}
	}
}

// zombie reports whether a process has exited and was not waited for.
func zombie(pid int) bool {
	p := process.Process{Pid: int32(pid)}
	states, err := p.Status()
	return err == nil && slices.Contains(states, process.Zombie)
}
