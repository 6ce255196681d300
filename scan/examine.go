package scan

import (
	"context"
	"slices"
	"time"
)

// ExamineOptions are the options of [Examine], [Holders], [ReadPSS], [Services] and [Versions].
type ExamineOptions struct {
	// Root is the procfs mount to read, "/proc" when empty; see [Options].
	Root string

	// Brief are clients, and servers that have a client: if their stdin is open, [Examine] leaves out their
	// Stdout, Listen and InboundConnections, and the CWD of servers. That halves its cost on a machine
	// full of servers in use.
	Brief []int

	// Deadline is how long the call may take before it gives up; one second when zero.
	Deadline time.Duration
}

func (o ExamineOptions) deadline() time.Duration {
	if o.Deadline <= 0 {
		return defaultDeadline
	}
	return o.Deadline
}

// Examine fills in what [Take] leaves out of the processes pids: Stdin, Stdout, Listen, InboundConnections,
// InboundSilenceSeconds, SwapBytes and CWD, and adds to Host.Services those that are jobs. Of those whose parent is
// not among them it also fills in Cgroup, Exe and Env, which descendants inherit. No process is signalled, stopped
// or written to, and nothing is forked.
//
// Facts are only attached to the process that the snapshot names: everything is read through one handle, whose
// start time is compared. Processes that have exited, are dead (state Z) or have no start time stay as they were.
//
// A field that was refused, or not read before the deadline, is named in Unreadable. Three names are not JSON
// fields: "stdin" (its type is unknown), "holders" (see [Holders]) and "service" (a service manager may keep the
// process; see [Services]).
//
// Only Linux shows the other end of stdin; elsewhere Stdin stays nil.
func Examine(ctx context.Context, s *Snapshot, pids []int, o ExamineOptions) {
	ctx, cancel := context.WithTimeout(ctx, o.deadline())
	defer cancel()
	rows := s.examinable(pids)
	examine(ctx, s, rows, o)
	findServices(ctx, s, rows)
}

// Holders fills in Holders of the open stdin and stdout of the processes pids. It reads the descriptors of every
// process, which takes 100 ms and more on a large machine.
//
// A process that holds the other end of its own stdin is listed too. If some processes could not be read,
// "holders" is in Unreadable and the list may be incomplete. An empty list means that no visible process holds the
// end: it is held in another PID namespace, or is being passed between two processes.
func Holders(ctx context.Context, s *Snapshot, pids []int, o ExamineOptions) {
	ctx, cancel := context.WithTimeout(ctx, o.deadline())
	defer cancel()
	open := slices.DeleteFunc(s.examinable(pids), func(p *Process) bool {
		return (p.Stdin == nil || p.Stdin.Peer != PeerOpen) && (p.Stdout == nil || p.Stdout.Peer != PeerOpen)
	})
	if len(open) > 0 {
		holders(ctx, s, open, o)
	}
}

// ReadPSS fills in PSSBytes of the processes pids: about the memory that is freed when they exit. The kernel walks
// the page tables for it and holds the memory lock of the process: 0.2 ms for a small server, 20 ms at 10 GiB.
// Linux only; elsewhere PSSBytes stays nil.
func ReadPSS(ctx context.Context, s *Snapshot, pids []int, o ExamineOptions) {
	ctx, cancel := context.WithTimeout(ctx, o.deadline())
	defer cancel()
	if rows := s.examinable(pids); len(rows) > 0 {
		readPSS(ctx, s, rows, o)
	}
}

// examinable returns the rows of the processes that can be examined, each once, by PID.
func (s *Snapshot) examinable(pids []int) []*Process {
	pids = slices.Clone(pids)
	slices.Sort(pids)
	var rows []*Process
	for _, pid := range slices.Compact(pids) {
		if p := s.find(pid); p != nil && p.Start != 0 && p.State != "Z" {
			rows = append(rows, p)
		}
	}
	return rows
}

// setUnreadable adds a field to Unreadable or removes it. Copies of p may share the slice, so it is not changed.
func (p *Process) setUnreadable(field string, refused bool) {
	i := slices.Index(p.Unreadable, field)
	switch {
	case refused && i < 0:
		p.Unreadable = append(slices.Clip(p.Unreadable), field)
	case !refused && i >= 0:
		p.Unreadable = slices.Concat(p.Unreadable[:i], p.Unreadable[i+1:]) // nil when it was the only one
	}
}
