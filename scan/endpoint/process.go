package endpoint

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strings"
	"time"

	"mcpdoctor/scan"
	"mcpdoctor/scan/facts"
)

// process is what was seen of the process that listens at the endpoint's port, or several, and its descendants.
type process struct {
	listeners []scan.ID
	phase     phase
	seen      map[scan.ID]*descendant // all that were ever seen
	left      []scan.Process          // those since the first request that ran at the last look
}

type descendant struct {
	since   phase
	isChild bool // of a listener
}

type phase int

const (
	beforeRequests phase = iota
	beforeSessions
	duringSessions
)

// findTime is how long finding the process may take: the descriptors of all processes are read.
const findTime = 5 * time.Second

// findProcess finds the process and takes the first look.
func (p *prober) findProcess(ctx context.Context) {
	out := &p.e.Process
	addresses, local := localAddresses(ctx, p.o.URL.Hostname())
	if !local {
		out.Why = "it does not run on this machine"
		return
	}
	s, err := scan.Take(ctx, scan.Options{Now: p.o.Now()})
	if err != nil {
		out.Why = "the processes of this machine cannot be seen: " + err.Error()
		return
	}
	pids := make([]int, len(s.Processes))
	for i := range s.Processes {
		pids[i] = s.Processes[i].PID
	}
	scan.Examine(ctx, s, pids, scan.ExamineOptions{Deadline: findTime})
	port := portOf(p.o.URL)
	listening := map[int]bool{}
	unreadable := false
	for i := range s.Processes {
		q := &s.Processes[i]
		if listensAt(q.Listen, addresses, port) {
			listening[q.PID] = true
		}
		unreadable = unreadable || slices.Contains(q.Unreadable, "listen")
	}
	if len(listening) == 0 {
		out.Why = "no process that listens on port " + port + " can be seen"
		if unreadable {
			out.Why += ": it may be another user's, or in a container"
		}
		return
	}
	p.process = &process{seen: map[scan.ID]*descendant{}}
	var first *scan.Process
	for i := range s.Processes {
		q := &s.Processes[i]
		inherited := listening[q.PPID] && q.PPID != q.PID // by a worker
		if listening[q.PID] && !inherited {
			p.process.listeners = append(p.process.listeners, q.ID())
			first = cmp.Or(first, q)
		}
	}
	if script := scriptOf(first.Args); script != "" {
		scan.Versions(ctx, s, map[int]string{first.PID: script}, scan.ExamineOptions{})
	}
	out.Found, out.Listener, out.OS, out.Port = true, *first, s.Host.OS, port
	p.keepLook(p.process.look(s), facts.AtStart)
}

// scriptOf returns the path of the script that an interpreter runs, empty when there is none.
func scriptOf(args []string) string {
	for _, arg := range args[min(1, len(args)):] {
		if !strings.HasPrefix(arg, "-") {
			return arg
		}
	}
	return ""
}

// localAddresses returns the addresses of a host, and reports whether one is this machine's.
func localAddresses(ctx context.Context, host string) ([]string, bool) {
	addresses := []string{host}
	if net.ParseIP(host) == nil {
		ctx, cancel := context.WithTimeout(ctx, findTime)
		defer cancel()
		var err error
		if addresses, err = net.DefaultResolver.LookupHost(ctx, host); err != nil {
			return nil, false
		}
	}
	own, _ := net.InterfaceAddrs() // without them, loopback is still known
	return addresses, slices.ContainsFunc(addresses, func(address string) bool {
		ip := net.ParseIP(address)
		return ip != nil && (ip.IsLoopback() || ip.IsUnspecified() || slices.ContainsFunc(own, func(a net.Addr) bool {
			n, ok := a.(*net.IPNet)
			return ok && n.IP.Equal(ip)
		}))
	})
}

// listensAt reports whether a socket of a process accepts connections to a port at one of the addresses.
func listensAt(listen, addresses []string, port string) bool {
	for _, l := range listen {
		at, ok := strings.CutPrefix(l, "tcp:")
		if !ok {
			continue
		}
		ip, ok := strings.CutSuffix(at, ":"+port)
		ip = strings.Trim(ip, "[]")
		if ok && (ip == "*" || slices.ContainsFunc(addresses, func(a string) bool { return a == ip || a == "0.0.0.0" || a == "::" })) {
			return true
		}
	}
	return false
}

// look takes a snapshot and counts the descendants. It reports false when the process cannot be seen.
func (p *prober) look(ctx context.Context) (facts.Look, bool) {
	if p.process == nil {
		return facts.Look{}, false
	}
	s, err := scan.Take(ctx, scan.Options{Now: p.o.Now()})
	if err != nil {
		return facts.Look{}, false
	}
	return p.process.look(s), true
}

func (p *prober) recordLook(ctx context.Context, when facts.When) {
	if look, ok := p.look(ctx); ok {
		p.keepLook(look, when)
	}
}

func (p *prober) keepLook(look facts.Look, when facts.When) {
	switch when {
	case facts.AtStart:
		p.process.phase = beforeSessions
	case facts.AtSessions:
		p.process.phase = duringSessions
	}
	look.When = when
	p.e.Retention.Looks = append(p.e.Retention.Looks, look)
}

// memory returns the resident memory of the process itself, 0 when it cannot be seen.
func (p *prober) memory(ctx context.Context) int64 {
	look, _ := p.look(ctx)
	return look.RSSBytes
}

// look counts the descendants of the listeners, and the strays: earlier descendants that run on elsewhere.
func (t *process) look(s *scan.Snapshot) facts.Look {
	running := make(map[scan.ID]*scan.Process, len(s.Processes))
	parent := make(map[int]scan.ID, len(s.Processes))
	below := map[int][]*scan.Process{}
	for i := range s.Processes {
		q := &s.Processes[i]
		if q.State == "Z" {
			continue
		}
		running[q.ID()], parent[q.PID] = q, q.ID()
		if q.PPID != q.PID {
			below[q.PPID] = append(below[q.PPID], q)
		}
	}
	out := facts.Look{Gone: true}
	now := map[scan.ID]bool{}
	var descend func(id scan.ID, isChild bool)
	descend = func(id scan.ID, isChild bool) {
		for _, q := range below[id.PID] {
			if q.Start < id.Start || now[q.ID()] { // the parent of an older process had the same PID
				continue
			}
			now[q.ID()] = true
			if t.seen[q.ID()] == nil {
				t.seen[q.ID()] = &descendant{since: t.phase}
			}
			if isChild {
				t.seen[q.ID()].isChild = true
				out.Children++
			}
			descend(q.ID(), false)
		}
	}
	for _, id := range t.listeners {
		if listener := running[id]; listener != nil {
			out.Gone = false
			out.RSSBytes += listener.RSS()
			descend(id, true)
		}
	}
	out.Processes = len(now)
	t.left = nil
	for id, d := range t.seen {
		q := running[id]
		if q == nil {
			continue
		}
		if !now[id] {
			out.Strays++
		}
		if d.since == beforeRequests {
			continue
		}
		t.left = append(t.left, *q)
		top := 0
		if d.isChild || !now[id] && t.seen[parent[q.PPID]] == nil {
			top = 1
		}
		out.NewProcesses++
		out.NewChildren += top
		if d.since == duringSessions {
			out.SessionProcesses++
			out.SessionChildren += top
		}
	}
	slices.SortFunc(t.left, func(a, b scan.Process) int { return a.PID - b.PID })
	return out
}
