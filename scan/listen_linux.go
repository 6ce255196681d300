package scan

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

// A socketTable holds the sockets of our own network namespace, by inode: those of another are not
// to be seen with sock_diag(7).
type socketTable struct {
	unix      map[uint32]procfs.UnixSocket
	listeners map[uint32]procfs.InetSocket
	err       error // the first; then a list is missing or incomplete

	mu   sync.Mutex
	diag *procfs.SockDiag // nil when there is none, or none any more
}

// readSockets lists what can be needed in three requests: one list of a thousand sockets costs as
// much as a hundred single questions.
func readSockets(ctx context.Context) *socketTable {
	t := new(socketTable)
	if t.diag, t.err = procfs.OpenSockDiag(ctx); t.err != nil {
		return t
	}
	if t.unix, t.err = t.diag.UnixSockets(); t.err != nil {
		return t
	}
	t.listeners = make(map[uint32]procfs.InetSocket)
	if t.err = t.diag.TCPSockets(procfs.TCPListen, t.listeners); t.err != nil {
		return t
	}
	_ = t.diag.UDPSockets(t.listeners) // a kernel without CONFIG_INET_UDP_DIAG does not list them
	return t
}

func (t *socketTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.diag != nil {
		t.diag.Close()
		t.diag = nil
	}
}

// unixSocket finds a socket, also when it is younger than the list.
func (t *socketTable) unixSocket(inode uint64) (procfs.UnixSocket, bool) {
	if u, ok := t.unix[uint32(inode)]; ok {
		return u, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.diag == nil {
		return procfs.UnixSocket{}, false
	}
	return t.diag.UnixSocket(uint32(inode))
}

// knows tells whether all of the sockets among ends are in the table. When they are, the process has
// none of another network namespace.
func (t *socketTable) knows(ends []end) bool {
	return !slices.ContainsFunc(ends, func(e end) bool {
		if e.kind != StdinSocket {
			return false
		}
		_, unix := t.unix[uint32(e.inode)]
		_, tcp := t.listeners[uint32(e.inode)]
		return !unix && !tcp
	})
}

// attachSockets fills in Listen and InboundConnections of the rows that the looks belong to. Of a
// process in another network namespace "listen" is unreadable, unless a socket of ours is found.
func attachSockets(s *Snapshot, rows []*Process, looks []look, t *socketTable) {
	ports, names := make(map[uint16]bool), make(map[string]bool) // what the rows listen on
	for i, p := range rows {
		l := &looks[i]
		if l.err != nil {
			continue
		}
		p.Listen, p.InboundConnections, p.InboundSilenceSeconds = nil, nil, nil
		if l.brief || slices.Contains(l.refused, "listen") {
			continue
		}
		listen := t.listening(l.ends, ports, names)
		if len(listen) == 0 && !l.knownSockets && (l.foreign || t.err != nil) {
			p.setUnreadable("listen", true)
			continue
		}
		p.Listen = listen
	}

	// A machine can have a hundred thousand connections: they are listed only when they matter.
	connected := make(map[uint32]procfs.InetSocket)
	if len(ports) > 0 && t.err == nil {
		t.err = t.diag.TCPSockets(procfs.TCPEstablished, connected)
	}
	asleep := slept()
	for i, p := range rows {
		if looks[i].err == nil && p.Listen != nil {
			n, silence := t.inbound(looks[i].ends, connected, ports, names)
			p.InboundConnections = &n
			if n > 0 && silence >= 0 {
				seconds := int64((silence + asleep) / time.Second)
				p.InboundSilenceSeconds = &seconds
			}
		}
	}
	if t.err != nil {
		s.problem("the kernel did not list the sockets (%v): ports and the other ends of sockets are unknown", t.err)
	}
}

// slept is how long the machine has been suspended since it was started. The kernel does not count it
// into the silence of a connection, but into the age of a process.
func slept() time.Duration {
	var awake, all unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &all) != nil {
		return 0
	}
	return max(0, time.Duration(all.Nano()-awake.Nano()))
}

// listening returns what a process accepts connections on, and notes it in ports and names.
func (t *socketTable) listening(ends []end, ports map[uint16]bool, names map[string]bool) []string {
	listen := []string{}
	for _, e := range ends {
		if e.kind != StdinSocket {
			continue
		}
		if l, ok := t.listeners[uint32(e.inode)]; ok {
			listen = append(listen, l.String())
			if !l.UDP {
				ports[l.Local.Port()] = true
			}
		}
		u := t.unix[uint32(e.inode)]
		if u.Kind == unix.SOCK_DGRAM && u.State == procfs.TCPClose && u.Name != "" {
			listen = append(listen, "unix:"+strings.ToValidUTF8(u.Name, "\uFFFD"))
		}
		if u.State == procfs.TCPListen {
			listen = append(listen, "unix:"+strings.ToValidUTF8(u.Name, "\uFFFD"))
			names[u.Name] = true
		}
	}
	slices.Sort(listen)
	return slices.Compact(listen)
}

// inbound counts the connections that a process holds to what it, or another of the processes that
// are looked at, listens on: workers accept from a socket that their parent opened. An accepted unix
// socket has the name of the one that accepted it. silence is that of the connection that has received
// nothing for the longest time; -1 when it is not known of all.
func (t *socketTable) inbound(ends []end, connected map[uint32]procfs.InetSocket, ports map[uint16]bool, names map[string]bool) (n int, silence time.Duration) {
	known := true
	for _, e := range ends {
		if e.kind != StdinSocket {
			continue
		}
		if c, ok := connected[uint32(e.inode)]; ok && ports[c.Local.Port()] {
			n++
			silence, known = max(silence, c.Silent), known && c.Silent >= 0
		}
		if u := t.unix[uint32(e.inode)]; u.State == procfs.TCPEstablished && u.Name != "" && names[u.Name] {
			n, known = n+1, false
		}
	}
	if !known {
		silence = -1
	}
	return n, silence
}
