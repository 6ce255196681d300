package scan

import (
	"context"
	"slices"
	"strconv"

	"github.com/shirou/gopsutil/v4/process"
	"golang.org/x/sys/unix"
)

// system is the name of the system, as in GOOS.
func system() string { return "darwin" }

// commandField is what holds the command line here, as it is called in JSON.
const commandField = "args"

// readCommand reads the arguments: sysctl kern.procargs2, which answers for one's own processes.
func readCommand(ctx context.Context, g *process.Process, p *Process) bool {
	args, err := g.CmdlineSliceWithContext(ctx)
	p.Args = args
	return err == nil || g.Pid == 0 // 0 is the kernel
}

// refine adds state, group, session and terminal, and names the processes of other users too: one
// sysctl kern.proc.all tells all of them about every process.
func refine(rows []Process) {
	table, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return
	}
	byPID := make(map[int]*unix.KinfoProc, len(table))
	for i := range table {
		byPID[int(table[i].Proc.P_pid)] = &table[i]
	}
	for i := range rows {
		p := &rows[i]
		k := byPID[p.PID]
		if k == nil {
			continue
		}
		if p.Name == "" {
			p.Name = unix.ByteSliceToString(k.Proc.P_comm[:])
			p.Unreadable = without(p.Unreadable, "name")
		}
		p.State = darwinState(k.Proc.P_stat)
		if p.State == "Z" {
			p.Unreadable = without(p.Unreadable, "args", "rss_bytes", "cpu_seconds")
		}
		p.PGID = int(k.Eproc.Pgid)
		if sid, err := unix.Getsid(p.PID); err == nil {
			p.SID = sid
		}
		p.TTY = darwinTTY(k.Eproc.Tdev)
	}
}

// darwinState gives the letter of ps(1) for p_stat, one of the S... of sys/proc.h. A living process
// is SRUN there whether it runs or sleeps (that is known of its threads only), so that it gets none.
func darwinState(stat int8) string {
	switch stat {
	case 1: // SIDL
		return "I"
	case 4: // SSTOP
		return "T"
	case 5: // SZOMB
		return "Z"
	}
	return ""
}

// darwinTTY names a terminal by its device number: major 16 is the pseudo-terminals, minor 3 of
// them ttys003.
func darwinTTY(device int32) string {
	if device == -1 {
		return "-"
	}
	major, minor := uint32(device)>>24, device&0xffffff
	if major != 16 {
		return strconv.Itoa(int(major)) + ":" + strconv.Itoa(int(minor))
	}
	name := strconv.Itoa(int(minor))
	return "ttys" + "000"[min(3, len(name)):] + name
}

// without returns the names that are not in drop.
func without(names []string, drop ...string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(drop, n) })
}

// zombie reports whether a process has ended and was not waited for: sysctl kern.proc.pid.
func zombie(pid int) bool {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && darwinState(k.Proc.P_stat) == "Z"
}
