//go:build !linux

package scan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shirou/gopsutil/v4/net"
	"github.com/shirou/gopsutil/v4/process"
)

// examine fills in what gopsutil reads: working directory, program, selected variables and listening sockets.
//
// gopsutil reads by PID. Comparing the start time afterwards detects a PID that was reused.
func examine(ctx context.Context, s *Snapshot, rows []*Process, o ExamineOptions) {
	for _, p := range rows {
		if ctx.Err() != nil {
			s.problem("examining processes did not finish within %v", o.deadline())
			return
		}
		seen, err := process.NewProcessWithContext(ctx, int32(p.PID))
		if err != nil {
			continue
		}
		cwd, cwdErr := seen.CwdWithContext(ctx)
		exe, exeErr := seen.ExeWithContext(ctx)
		env, envErr := seen.EnvironWithContext(ctx)
		if start, err := startTime(ctx, p.PID); err != nil || start != p.Start {
			continue
		}
		// Windows returns empty values, without an error, when it refuses.
		p.CWD = cwd
		p.setUnreadable("cwd", cwdErr != nil || cwd == "")
		if exe != "" {
			p.Exe = exe
		}
		p.setUnreadable("exe", p.Exe == "" && (exeErr != nil || exe == ""))
		p.Env = chooseEnv([]byte(strings.Join(env, "\x00")))
		p.setUnreadable("env", envErr != nil || len(env) == 0)
	}
	examineListening(ctx, s, rows)
}

// readPSS does nothing: gopsutil does not read it on these systems.
func readPSS(context.Context, *Snapshot, []*Process, ExamineOptions) {}

// startTime reads a start time again: a gopsutil process caches its first answer.
func startTime(ctx context.Context, pid int) (int64, error) {
	p, err := process.NewProcessWithContext(ctx, int32(pid))
	if err != nil {
		return 0, err
	}
	return p.CreateTimeWithContext(ctx)
}

// examineListening fills in the TCP sockets. All are listed at once, since macOS and the BSDs run lsof(8) for it.
func examineListening(ctx context.Context, s *Snapshot, rows []*Process) {
	sockets, err := net.ConnectionsWithContext(ctx, "tcp")
	if err != nil {
		for _, p := range rows {
			p.setUnreadable("listen", true)
		}
		s.problem("listening sockets are unknown: %v", err)
		return
	}
	ports := make(map[uint32]bool)
	byPID := make(map[int][]net.ConnectionStat)
	for _, c := range sockets {
		byPID[int(c.Pid)] = append(byPID[int(c.Pid)], c)
	}
	for _, p := range rows {
		p.Listen = []string{}
		for _, c := range byPID[p.PID] {
			if c.Status == "LISTEN" {
				p.Listen = append(p.Listen, listenAddress(c.Laddr))
				ports[c.Laddr.Port] = true
			}
		}
		slices.Sort(p.Listen)
		p.Listen = slices.Compact(p.Listen)
		p.setUnreadable("listen", false)
	}
	for _, p := range rows {
		n := 0
		for _, c := range byPID[p.PID] {
			if c.Status == "ESTABLISHED" && ports[c.Laddr.Port] {
				n++
			}
		}
		p.InboundConnections = &n
	}
}

// listenAddress formats an address for a snapshot's Listen.
func listenAddress(a net.Addr) string {
	ip := a.IP
	switch {
	case ip == "" || ip == "*" || ip == "0.0.0.0" || ip == "::":
		ip = "*"
	case strings.Contains(ip, ":"):
		ip = "[" + ip + "]"
	}
	return fmt.Sprintf("tcp:%s:%d", ip, a.Port)
}

// rootOf returns the empty path: the root directory of a process cannot be read here.
func rootOf(ExamineOptions, int) string { return "" }

// holders does nothing: the other end of stdin cannot be seen here.
func holders(context.Context, *Snapshot, []*Process, ExamineOptions) {}
