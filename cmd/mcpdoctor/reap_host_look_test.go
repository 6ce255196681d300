package main

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpdoctor/scan"
	"mcpdoctor/scan/config"
)

// observer is what the user of mcpdoctor can see.
type observer struct {
	uid            int
	hidepid        bool // /proc is mounted with hidepid: other users' processes are missing
	systemd        bool // the machine's init is systemd
	servicesAnswer bool // systemd can be asked

	// Faults, by which a test proves that it can fail: distort changes what is seen of a process, and ageAdded makes
	// all processes look older.
	distort  func(*scan.Process)
	ageAdded time.Duration
}

// Take is [scan.Take]. Time passes between the answers of a look, as on a real machine.
func (m *machine) Take(_ context.Context, now time.Time) (*scan.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUp()
	s := &scan.Snapshot{Schema: scan.Schema, Kind: scan.Kind, Taken: now, Host: m.host}
	uid := m.observer.uid
	s.Host.UID = &uid
	m.take(s)
	m.looks, m.last = m.looks+1, s
	return s, nil
}

// Examine is [scan.Examine].
func (m *machine) Examine(_ context.Context, s *scan.Snapshot, pids, brief []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pause()
	m.examine(s, pids, brief)
}

// Configuration finds no configuration files.
func (m *machine) Configuration(context.Context, []config.Folder, []config.Named) config.Found {
	return config.Found{}
}

// Versions is [scan.Versions].
func (m *machine) Versions(_ context.Context, s *scan.Snapshot, programs map[int]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for pid := range programs {
		if p := m.tasks[pid]; p != nil {
			row(s, pid).Version = p.version
		}
	}
}

// Services is [scan.Services].
func (m *machine) Services(_ context.Context, s *scan.Snapshot, pids []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pause()
	m.services(s, pids)
}

// Holders is [scan.Holders].
func (m *machine) Holders(_ context.Context, s *scan.Snapshot, pids []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pause()
	m.holders(s, pids)
}

// PSS is [scan.ReadPSS]: half of a process's memory is shared.
func (m *machine) PSS(_ context.Context, s *scan.Snapshot, pids []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, pid := range pids {
		if r, p := m.lookup(s, pid); r != nil {
			half := p.rss / 2
			r.PSSBytes = &half
		}
	}
}

// pause lets some time pass within a look.
func (m *machine) pause() {
	if m.live {
		time.Sleep(15 * time.Millisecond)
	}
	m.catchUp()
}

// sorted returns the processes in the order of their PIDs.
func (m *machine) sorted() []*task {
	out := make([]*task, 0, len(m.tasks))
	for _, p := range m.tasks {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *task) int { return a.pid - b.pid })
	return out
}

// take fills in the table. It is read process by process, and shows more than one moment.
func (m *machine) take(s *scan.Snapshot) {
	boot := s.Taken.Add(-m.clock())
	all := m.sorted()
	for i, p := range all {
		if i == len(all)/2 {
			m.pause()
		}
		if m.tasks[p.pid] != p || m.observer.hidepid && !m.readable(p) {
			continue
		}
		uid, rss := p.uid, p.rss
		out := scan.Process{
			PID: p.pid, PPID: p.ppid(), Name: p.kernelName(), Args: p.args,
			Start: p.ticks(), Started: boot.Add(-m.observer.ageAdded + time.Duration(p.ticks())*10*time.Millisecond),
			User: "user" + strconv.Itoa(uid), UID: &uid, State: p.state, TTY: p.tty, PGID: p.pgid, SID: p.sid, RSSBytes: &rss,
		}
		if p.state == "Z" {
			out.Args = nil
		}
		if slices.Contains(p.unreadable, "start") {
			out.Start, out.Started, out.Unreadable = 0, time.Time{}, []string{"start"}
		}
		s.Processes = append(s.Processes, out)
	}
	slices.SortFunc(s.Processes, func(a, b scan.Process) int { return a.PID - b.PID })
}

func (p *task) kernelName() string {
	name := p.name
	if name == "" && len(p.args) > 0 {
		name = path.Base(p.args[0])
	}
	return name[:min(len(name), 15)]
}

func row(s *scan.Snapshot, pid int) *scan.Process {
	i, ok := slices.BinarySearchFunc(s.Processes, pid, func(p scan.Process, pid int) int { return p.PID - pid })
	if !ok {
		return nil
	}
	return &s.Processes[i]
}

// lookup returns a row and its process; nil if that has exited.
func (m *machine) lookup(s *scan.Snapshot, pid int) (*scan.Process, *task) {
	r, p := row(s, pid), m.tasks[pid]
	if r == nil || p == nil || r.Start == 0 || p.ticks() != r.Start || r.State == "Z" || p.exited {
		return nil, nil
	}
	return r, p
}

// readable reports whether the descriptors of a process may be read.
func (m *machine) readable(p *task) bool { return m.observer.uid == 0 || m.observer.uid == p.uid }

// examine is [scan.Examine].
func (m *machine) examine(s *scan.Snapshot, pids, brief []int) {
	var rows []*scan.Process
	for _, pid := range pids {
		r, p := m.lookup(s, pid)
		if r == nil {
			continue
		}
		rows = append(rows, r)
		top := !slices.Contains(pids, r.PPID) || r.PPID == 1 || m.tasks[r.PPID].kernelNamed("systemd")
		m.inspect(r, p, top, slices.Contains(brief, pid))
		if m.observer.distort != nil {
			m.observer.distort(r)
		}
	}
	m.findServices(s, rows)
}

func (p *task) kernelNamed(name string) bool { return p != nil && p.kernelName() == name }

func (m *machine) inspect(r *scan.Process, p *task, top, brief bool) {
	r.Stdin, r.Stdout, r.CWD, r.Cgroup, r.Env, r.Unreadable = nil, nil, "", "", nil, nil
	r.Listen, r.InboundConnections, r.InboundSilenceSeconds = nil, nil, nil
	if top {
		r.Cgroup = p.cgroup
	}
	if !m.readable(p) {
		r.Unreadable = []string{"stdin", "listen", "cwd", "exe"}
		return
	}
	if top {
		r.Env = p.env
	}
	r.Unreadable = slices.Clone(p.unreadable)
	if !slices.Contains(p.unreadable, "stdin") {
		in := m.peerOf(p.stdin)
		if slices.Contains(p.unreadable, "peer") && in.Peer != "" {
			in.Peer = scan.PeerUnknown
		}
		r.Stdin = &in
	}
	if brief && r.Stdin != nil && (r.Stdin.Peer == scan.PeerOpen || r.Stdin.Peer == "" && top) {
		return
	}
	if !slices.Contains(p.unreadable, "stdin") {
		out := scan.Stdin{Type: p.stdout.kind}
		if w := p.stdout.pipe; w != nil {
			out.Peer = scan.PeerClosed
			if len(w.readers) > 0 {
				out.Peer = scan.PeerOpen
			}
		}
		r.Stdout = &out
	}
	if !slices.Contains(p.unreadable, "listen") && !slices.Contains(p.unreadable, "stdin") {
		n := p.busyConnections + len(p.connections)
		if len(p.connections) > 0 && p.busyConnections == 0 {
			silence := int64(0)
			for _, c := range p.connections {
				silence = max(silence, int64((m.present-c.since)/time.Second))
			}
			r.InboundSilenceSeconds = &silence
		}
		r.Listen, r.InboundConnections = slices.Clone(p.listens), &n
		if r.Listen == nil {
			r.Listen = []string{}
		}
	}
}

// peerOf describes the other end of stdin.
func (m *machine) peerOf(in descriptor) scan.Stdin {
	if in.pipe == nil {
		return scan.Stdin{Type: in.kind}
	}
	out := scan.Stdin{Type: in.pipe.kind, Peer: scan.PeerClosed, FD: in.fd}
	if in.pipe.hasWriter() {
		out.Peer = scan.PeerOpen
	} else {
		out.Unread = in.pipe.unread && in.pipe.kind == scan.StdinPipe
	}
	return out
}

// findServices fills in the services that [scan.Examine] finds without asking a service manager.
func (m *machine) findServices(s *scan.Snapshot, rows []*scan.Process) {
	services, known := []scan.Service{}, true
	for _, r := range rows {
		p := m.tasks[r.PID]
		up := row(s, r.PPID)
		switch {
		case up == nil:
		case strings.HasPrefix(up.Name, "PM2 v"):
			services = append(services, scan.Service{Manager: "pm2", Name: "app", MainPID: r.PID})
		case strings.HasSuffix(commandWords(up.Args), "supervisord") && r.PGID == r.PID && (r.Stdin == nil || r.Stdin.Peer != scan.PeerClosed):
			services = append(services, scan.Service{Manager: "supervisord", Name: "app", MainPID: r.PID})
		case m.observer.systemd && (r.PPID == 1 || up.Name == "systemd") && strings.HasSuffix(p.cgroup, ".service"):
			leaf := path.Base(p.cgroup)
			switch {
			case strings.HasPrefix(leaf, "user@"):
			case p.env["SYSTEMD_EXEC_PID"] == strconv.Itoa(p.pid) && m.readable(p):
				services = append(services, scan.Service{Manager: "systemd", Name: leaf, MainPID: r.PID})
			case !strings.HasPrefix(leaf, "app-"):
				r.Unreadable, known = append(slices.Clip(r.Unreadable), "service"), false
			}
		}
	}
	s.Host.Services = nil
	if len(services) > 0 || known {
		s.Host.Services = services
	}
}

// services is [scan.Services].
func (m *machine) services(s *scan.Snapshot, doubted []int) {
	if !m.observer.servicesAnswer {
		return
	}
	for _, pid := range doubted {
		r, p := m.lookup(s, pid)
		if r == nil || !slices.Contains(r.Unreadable, "service") {
			continue
		}
		if s.Host.Services == nil {
			s.Host.Services = []scan.Service{}
		}
		if p.isUnitMain() {
			s.Host.Services = append(s.Host.Services, scan.Service{Manager: "systemd", Name: path.Base(p.cgroup), MainPID: pid})
		}
		r.Unreadable = slices.DeleteFunc(slices.Clone(r.Unreadable), func(f string) bool { return f == "service" })
	}
}

// isUnitMain reports whether the process is the main process of a systemd service.
func (p *task) isUnitMain() bool { return p.env["unit"] == strconv.Itoa(p.pid) }

// holders is [scan.Holders].
func (m *machine) holders(s *scan.Snapshot, wanted []int) {
	blind := slices.ContainsFunc(m.sorted(), func(p *task) bool { return !m.readable(p) || slices.Contains(p.unreadable, "stdin") })
	holding := func(tasks []*task) []int {
		out := []int{}
		for _, p := range tasks {
			if m.readable(p) && !slices.Contains(p.unreadable, "stdin") {
				out = append(out, p.pid)
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	for _, pid := range wanted {
		r, p := m.lookup(s, pid)
		if r == nil {
			continue
		}
		asked := false
		if in := r.Stdin; in != nil && in.Peer == scan.PeerOpen && p.stdin.pipe != nil {
			in.Holders, asked = holding(p.stdin.pipe.writers), true
		}
		if out := r.Stdout; out != nil && p.stdout.pipe != nil && out.Peer == scan.PeerOpen {
			out.Holders, asked = holding(p.stdout.pipe.readers), true
		}
		if asked && blind {
			r.Unreadable = append(slices.Clip(r.Unreadable), "holders")
		}
	}
}
