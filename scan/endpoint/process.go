package endpoint

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"mcpdoctor/scan"
	"mcpdoctor/scan/facts"
)

// watched is the process that listens at the endpoint's port, and what was ever seen below it.
type watched struct {
	listeners []scan.ID
	start     map[scan.ID]bool // what was below it before the first request
	before    map[scan.ID]bool // what was ever below it before the first session
	children  map[scan.ID]bool // of the listener itself, ever
	ever      map[scan.ID]bool // below it, ever
	last      []scan.Process   // of these what was there at the last look
}

// closely is how long finding out who listens may take: everybody's descriptors are passed over.
const closely = 5 * time.Second

// watch finds the process and takes the first look. That it cannot be found is no error.
func (a *asker) watch(ctx context.Context) {
	p := &a.e.Process
	addresses, local := here(ctx, a.o.URL.Hostname())
	if !local {
		p.Why = "it does not run on this machine"
		return
	}
	snap, err := scan.Take(ctx, scan.Options{Now: a.o.Now()})
	if err != nil {
		p.Why = "the processes of this machine cannot be seen: " + err.Error()
		return
	}
	pids := make([]int, len(snap.Processes))
	for i := range snap.Processes {
		pids[i] = snap.Processes[i].PID
	}
	scan.Examine(ctx, snap, pids, scan.ExamineOptions{Deadline: closely})
	port := portOf(a.o.URL)
	var found []*scan.Process
	refused := false
	for i := range snap.Processes {
		q := &snap.Processes[i]
		if listensAt(q.Listen, addresses, port) {
			found = append(found, q)
		}
		refused = refused || slices.Contains(q.Unreadable, "listen")
	}
	if len(found) == 0 {
		p.Why = "no process that listens on port " + port + " can be seen"
		if refused {
			p.Why += ": it may be another user's, or in a container"
		}
		return
	}
	top := topmost(snap, found)
	p.Found, p.Listener, p.OS, p.Port = true, *top[0], snap.Host.OS, port
	a.seen = &watched{start: map[scan.ID]bool{}, children: map[scan.ID]bool{}, ever: map[scan.ID]bool{}}
	for _, q := range top {
		a.seen.listeners = append(a.seen.listeners, q.ID())
	}
	if script := scriptOf(p.Listener.Args); script != "" {
		scan.Versions(ctx, snap, map[int]string{p.Listener.PID: script}, scan.ExamineOptions{})
		p.Listener.Version = top[0].Version
	}
	look := a.seen.look(snap)
	for id := range a.seen.ever {
		a.seen.start[id] = true
	}
	look.When = facts.AtStart
	a.e.Retention.Looks = append(a.e.Retention.Looks, look)
}

// scriptOf is the path of the script that an interpreter was started with; empty when there is none.
func scriptOf(args []string) string {
	for _, arg := range args[min(1, len(args)):] {
		if !strings.HasPrefix(arg, "-") {
			return arg
		}
	}
	return ""
}

// here tells whether a host is this machine, and with which addresses.
func here(ctx context.Context, host string) ([]string, bool) {
	addresses := []string{host}
	if net.ParseIP(host) == nil {
		ctx, cancel := context.WithTimeout(ctx, closely)
		defer cancel()
		var err error
		if addresses, err = net.DefaultResolver.LookupHost(ctx, host); err != nil {
			return nil, false
		}
	}
	own, _ := net.InterfaceAddrs() // without them, loopback is still known
	for _, address := range addresses {
		ip := net.ParseIP(address)
		if ip == nil {
			continue
		}
		if ip.IsLoopback() || ip.IsUnspecified() {
			return addresses, true
		}
		for _, o := range own {
			if n, ok := o.(*net.IPNet); ok && n.IP.Equal(ip) {
				return addresses, true
			}
		}
	}
	return addresses, false
}

// listensAt tells that one of the sockets of a process takes connections to the port at one of the
// addresses.
func listensAt(listen, addresses []string, port string) bool {
	for _, l := range listen {
		at, ok := strings.CutPrefix(l, "tcp:")
		if !ok {
			continue
		}
		i := strings.LastIndexByte(at, ':')
		if i < 0 || at[i+1:] != port {
			continue
		}
		ip := strings.Trim(at[:i], "[]")
		if ip == "*" || slices.Contains(addresses, ip) || slices.Contains(addresses, "0.0.0.0") || slices.Contains(addresses, "::") {
			return true
		}
	}
	return false
}

// topmost leaves out the processes whose parents are among them: workers that accept from a socket
// that they inherited.
func topmost(snap *scan.Snapshot, found []*scan.Process) []*scan.Process {
	pids := map[int]bool{}
	for _, p := range found {
		pids[p.PID] = true
	}
	return slices.DeleteFunc(found, func(p *scan.Process) bool { return pids[p.PPID] && p.PPID != p.PID })
}

// again takes another look. It says nothing when the process cannot be seen.
func (a *asker) again(ctx context.Context, when facts.When) {
	if a.seen == nil {
		return
	}
	snap, err := scan.Take(ctx, scan.Options{Now: a.o.Now()})
	if err != nil {
		return
	}
	look := a.seen.look(snap)
	look.When = when
	if when == facts.AtSessions {
		a.seen.before = maps.Clone(a.seen.ever)
	}
	a.e.Retention.Looks = append(a.e.Retention.Looks, look)
}

// look counts what is below the listeners, and what was and runs on elsewhere.
func (w *watched) look(snap *scan.Snapshot) facts.Look {
	alive := make(map[scan.ID]*scan.Process, len(snap.Processes))
	parents := make(map[int]scan.ID, len(snap.Processes))
	below := map[int][]*scan.Process{}
	for i := range snap.Processes {
		p := &snap.Processes[i]
		if p.State == "Z" {
			continue // it has ended
		}
		alive[p.ID()], parents[p.PID] = p, p.ID()
		if p.PPID != p.PID {
			below[p.PPID] = append(below[p.PPID], p)
		}
	}
	var out facts.Look
	now := map[scan.ID]bool{}
	out.Gone = true
	for _, id := range w.listeners {
		top := alive[id]
		if top == nil {
			continue
		}
		out.Gone = false
		out.RSSBytes += top.RSS()
		for _, child := range below[id.PID] {
			if child.Start >= id.Start { // an older one has a parent of the same number that is dead
				out.Children++
				w.children[child.ID()] = true
			}
		}
		w.descend(below, id, now)
	}
	for id := range now {
		w.ever[id] = true
	}
	out.Processes = len(now)
	w.last = nil
	for id := range w.ever {
		p := alive[id]
		if p == nil {
			continue
		}
		if !now[id] {
			out.Strays++
		}
		if w.start[id] {
			continue
		}
		w.last = append(w.last, *p)
		top := w.children[id] || !now[id] && !w.ever[parents[p.PPID]]
		out.NewProcesses++
		if top {
			out.NewChildren++
		}
		if w.before != nil && !w.before[id] {
			out.SessionProcesses++
			if top {
				out.SessionChildren++
			}
		}
	}
	slices.SortFunc(w.last, func(a, b scan.Process) int { return a.PID - b.PID })
	return out
}

// descend notes everybody below a process.
func (w *watched) descend(below map[int][]*scan.Process, id scan.ID, into map[scan.ID]bool) {
	for _, child := range below[id.PID] {
		if child.Start < id.Start || into[child.ID()] {
			continue
		}
		into[child.ID()] = true
		w.descend(below, child.ID(), into)
	}
}
