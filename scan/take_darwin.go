package scan

import (
	"context"
	"slices"
	"strconv"

	"github.com/shirou/gopsutil/v4/process"
	"golang.org/x/sys/unix"
)

// system returns the system as in GOOS.
func system() string { return "darwin" }

// commandField is the JSON name of the field for the command line.
const commandField = "args"

// readCommand reads the arguments with sysctl kern.procargs2, which only answers for our own user's processes.
func readCommand(ctx context.Context, g *process.Process, p *Process) bool {
	args, err := g.CmdlineSliceWithContext(ctx)
	p.Args = args
	return err == nil || g.Pid == 0 // the kernel, without arguments
}

// refine adds state, group, session and terminal, and the names of other users' processes, all with one sysctl
// kern.proc.all.
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

// darwinState returns the letter of ps(1) for p_stat, a constant of sys/proc.h. A live process is SRUN whether it
// runs or sleeps, which only its threads show, and gets no letter.
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

// darwinTTY returns the name of a terminal by its device number. Major 16 is the pseudo-terminals; minor 3 is
// ttys003.
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

// zombie reports whether a process has exited and was not waited for.
func zombie(pid int) bool {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && darwinState(k.Proc.P_stat) == "Z"
}
