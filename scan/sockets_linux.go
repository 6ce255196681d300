package scan

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

// A socketTable holds the sockets of our network namespace by inode; sock_diag(7) shows no others.
type socketTable struct {
	unix      map[uint32]procfs.UnixSocket
	listeners map[uint32]procfs.InetSocket
	err       error // the first; then a list is missing or incomplete

	mu   sync.Mutex
	diag *procfs.SockDiag // nil when there is none, or once it is closed
}

// readSockets lists all sockets in three requests: a list of a thousand costs as much as a hundred single
// requests.
func readSockets(ctx context.Context) *socketTable {
	t := &socketTable{listeners: make(map[uint32]procfs.InetSocket)}
	if t.diag, t.err = procfs.OpenSockDiag(ctx); t.err != nil {
		return t
	}
	if t.unix, t.err = t.diag.UnixSockets(); t.err != nil {
		return t
	}
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

// unixSocket finds a socket, even if it is younger than the list.
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

// knows reports whether all sockets among fds are in the table, and so none is of another network namespace.
func (t *socketTable) knows(fds []descriptor) bool {
	for inode := range sockets(fds) {
		_, unix := t.unix[inode]
		_, inet := t.listeners[inode]
		if !unix && !inet {
			return false
		}
	}
	return true
}

// sockets yields the inodes of the sockets among fds.
func sockets(fds []descriptor) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for _, d := range fds {
			if d.kind == StdinSocket && !yield(uint32(d.inode)) {
				return
			}
		}
	}
}

// attach fills in Listen, InboundConnections and InboundSilenceSeconds. "listen" is unreadable for a process in
// another network namespace, unless it has a listening socket of ours.
func (t *socketTable) attach(s *Snapshot, rows []*Process, observations []observation) {
	to := listening{ports: make(map[uint16]bool), names: make(map[string]bool)}
	for i, p := range rows {
		seen := &observations[i]
		if seen.err != nil {
			continue
		}
		p.Listen, p.InboundConnections, p.InboundSilenceSeconds = nil, nil, nil
		if seen.brief || slices.Contains(seen.refused, "listen") {
			continue
		}
		listen := t.listen(seen.fds, to)
		if len(listen) == 0 && !seen.knownSockets && (seen.foreign || t.err != nil) {
			p.setUnreadable("listen", true)
			continue
		}
		p.Listen = listen
	}

	// A machine can have a hundred thousand connections: list them only when one can matter.
	connected := make(map[uint32]procfs.InetSocket)
	if len(to.ports) > 0 && t.err == nil {
		t.err = t.diag.TCPSockets(procfs.TCPEstablished, connected)
	}
	suspended := suspendedFor()
	for i, p := range rows {
		if observations[i].err != nil || p.Listen == nil {
			continue
		}
		n, silence := t.inbound(observations[i].fds, to, connected)
		p.InboundConnections = &n
		if n > 0 && silence >= 0 {
			seconds := int64((silence + suspended) / time.Second)
			p.InboundSilenceSeconds = &seconds
		}
	}
	if t.err != nil {
		s.problem("the kernel did not list the sockets (%v): ports and the other ends of sockets are unknown", t.err)
	}
}

// suspendedFor returns how long the machine has been suspended since it started. The kernel counts that into
// the age of a process, but not into the silence of a connection.
func suspendedFor() time.Duration {
	var awake, all unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &all) != nil {
		return 0
	}
	return max(0, time.Duration(all.Nano()-awake.Nano()))
}

// listening is what all of the examined processes listen on: workers accept from a socket that their parent
// opened.
type listening struct {
	ports map[uint16]bool
	names map[string]bool // of unix sockets
}

// listen returns what a process accepts connections or datagrams on, and adds it to the ports and names.
func (t *socketTable) listen(fds []descriptor, to listening) []string {
	listen := []string{}
	for inode := range sockets(fds) {
		if l, ok := t.listeners[inode]; ok {
			listen = append(listen, l.String())
			if !l.UDP {
				to.ports[l.Local.Port()] = true
			}
		}
		u := t.unix[inode]
		if u.State == procfs.TCPListen {
			to.names[u.Name] = true
		}
		if u.State == procfs.TCPListen || u.Kind == unix.SOCK_DGRAM && u.State == procfs.TCPClose && u.Name != "" {
			listen = append(listen, "unix:"+strings.ToValidUTF8(u.Name, "\uFFFD"))
		}
	}
	slices.Sort(listen)
	return slices.Compact(listen)
}

// inbound counts the connections of a process to what the examined processes listen on. An accepted unix
// socket has the name of the listening one. silence is the longest time since one of them last received data; -1
// when it is not known for all.
func (t *socketTable) inbound(fds []descriptor, to listening, connected map[uint32]procfs.InetSocket) (n int, silence time.Duration) {
	known := true
	for inode := range sockets(fds) {
		if c, ok := connected[inode]; ok && to.ports[c.Local.Port()] {
			n++
			silence, known = max(silence, c.Silent), known && c.Silent >= 0
		}
		if u := t.unix[inode]; u.State == procfs.TCPEstablished && u.Name != "" && to.names[u.Name] {
			n, known = n+1, false
		}
	}
	if !known {
		silence = -1
	}
	return n, silence
}
