//go:build !linux

package scan

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"
	"github.com/shirou/gopsutil/v4/process"
)

// take reads the table through gopsutil; refine adds what it does not read.
//
// For another user's process macOS returns memory and processor time as zeros, and Windows the command line as an
// empty string, both without an error. gopsutil's Status is not used: on macOS it forks ps for each process, and
// Windows has none.
func take(ctx context.Context, o Options, s *Snapshot) error {
	all, err := process.ProcessesWithContext(ctx)
	if err != nil {
		return fmt.Errorf("cannot list the processes: %w", err)
	}
	s.Processes = make([]Process, 0, len(all))
	for _, g := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if p, ok := readProcess(ctx, g); ok {
			s.Processes = append(s.Processes, p)
		}
	}
	if len(s.Processes) == 0 {
		return fmt.Errorf("cannot list the processes: none of %d could be read", len(all))
	}
	s.sort()
	refine(s.Processes)

	var refused []int
	for i := range s.Processes {
		if p := &s.Processes[i]; slices.Contains(p.Unreadable, commandField) {
			refused = append(refused, p.PID)
		}
	}
	s.problemOf(refused, "the command lines of %s may not be read")
	readHost(ctx, s)
	return nil
}

// readProcess reads one process; ok is false when it has exited.
func readProcess(ctx context.Context, g *process.Process) (p Process, ok bool) {
	p = Process{PID: int(g.Pid), PPID: UnknownPPID}
	refused := func(fields ...string) { p.Unreadable = append(p.Unreadable, fields...) }

	ppid, ppidErr := g.PpidWithContext(ctx)
	if ppidErr == nil {
		p.PPID = int(ppid)
	} else {
		refused("ppid")
	}
	if ms, err := g.CreateTimeWithContext(ctx); err == nil && ms > 0 {
		p.Start, p.Started = ms, time.UnixMilli(ms).UTC()
	} else if exists, err := process.PidExistsWithContext(ctx, g.Pid); ppidErr != nil && err == nil && !exists {
		return p, false
	} else {
		refused("start")
	}
	if name, err := g.NameWithContext(ctx); err == nil {
		p.Name = name
	} else {
		refused("name")
	}
	if !readCommand(ctx, g, &p) {
		refused(commandField)
	}
	if name, err := g.UsernameWithContext(ctx); err == nil && name != "" {
		p.User = name
	} else {
		refused("user")
	}
	if uids, err := g.UidsWithContext(ctx); err == nil && len(uids) > 0 {
		uid := int(uids[min(1, len(uids)-1)]) // the effective one, where there are real, effective, saved
		p.UID = &uid
	}
	// Every process has resident memory: zero means refused, and the rest of the same call is wrong too.
	if m, err := g.MemoryInfoWithContext(ctx); err == nil && m.RSS > 0 {
		rss := int64(m.RSS)
		p.RSSBytes = &rss
		if t, err := g.TimesWithContext(ctx); err == nil {
			cpu := t.User + t.System
			p.CPUSeconds = &cpu
		}
	} else {
		refused("rss_bytes", "cpu_seconds")
	}
	return p, true
}

// readHost fills in the machine. What gopsutil cannot read stays zero.
func readHost(ctx context.Context, s *Snapshot) {
	s.Host.OS = system()
	s.Host.Name, _ = os.Hostname()
	if uid := os.Geteuid(); uid >= 0 {
		s.Host.UID = &uid
	}
	if up, err := host.UptimeWithContext(ctx); err == nil {
		s.Host.UptimeSeconds = int64(up)
	}
	if m, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		s.Host.MemoryTotalBytes, s.Host.MemoryAvailableBytes = int64(m.Total), int64(m.Available)
	}
	if m, err := mem.SwapMemoryWithContext(ctx); err == nil {
		s.Host.SwapTotalBytes, s.Host.SwapFreeBytes = int64(m.Total), int64(m.Free)
	}
}
