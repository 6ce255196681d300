package scan

import (
	"context"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// attachSockets asks the kernel about the sockets that the looks found, and fills in Stdin,
// Listen and InboundConnections of the rows that they belong to.
//
// The kernel answers for our own network namespace. Of a process that lives in another, or whose
// namespace may not be seen, "listen" is unreadable unless one of ours is found, and the other end
// of a socket is never said to be closed.
func attachSockets(ctx context.Context, s *Snapshot, rows []*Process, looks []look) {
	a := socketAnswers{}
	if slices.ContainsFunc(looks, func(l look) bool { return len(l.sockets) > 0 }) {
		a = askSockets(ctx)
		defer a.close()
	}
	ours, _ := os.Readlink("/proc/self/ns/net")

	ports, names := make(map[uint16]bool), make(map[string]bool) // what the rows listen on
	for i, p := range rows {
		l := &looks[i]
		if l.err != nil {
			continue
		}
		foreign := l.netns == "" || l.netns != ours
		a.resolveStdin(p, l, foreign)
		p.Listen, p.InboundConnections = nil, nil
		if slices.Contains(l.refused, "listen") {
			continue
		}
		p.Listen = a.listening(l, ports, names)
		if unseen := (foreign || a.err != nil) && len(p.Listen) == 0; unseen {
			p.Listen = nil
			p.setUnreadable("listen", true)
		}
	}

	// A machine can have a hundred thousand connections: list them only when they matter.
	var connected map[uint32]tcpSocket
	if len(ports) > 0 {
		connected, a.err = a.diag.tcpSockets(tcpEstablished)
	}
	for i, p := range rows {
		if p.Listen != nil && looks[i].err == nil {
			n := a.inbound(&looks[i], connected, ports, names)
			p.InboundConnections = &n
		}
	}
	if a.err != nil {
		s.problem("the kernel did not list the sockets (%v): ports and the other ends of sockets are unknown", a.err)
	}
}

// socketAnswers are the sockets of our network namespace, by inode.
type socketAnswers struct {
	diag      *sockDiag
	unix      map[uint32]unixSocket
	listeners map[uint32]tcpSocket
	err       error // the first, when a list is missing or incomplete
}

// askSockets lists what can be needed in three requests: one list of a thousand sockets costs as much
// as a hundred single questions.
func askSockets(ctx context.Context) (a socketAnswers) {
	if a.diag, a.err = openSockDiag(ctx); a.err != nil {
		return a
	}
	if a.unix, a.err = a.diag.unixSockets(); a.err != nil {
		return a
	}
	a.listeners, a.err = a.diag.tcpSockets(tcpListen)
	return a
}

func (a *socketAnswers) close() {
	if a.diag != nil {
		a.diag.close()
	}
}

// unixSocket finds a socket, also when it is younger than the list.
func (a *socketAnswers) unixSocket(inode uint64) (unixSocket, bool) {
	if u, ok := a.unix[uint32(inode)]; ok {
		return u, true
	}
	if a.diag == nil {
		return unixSocket{}, false
	}
	return a.diag.unixSocket(uint32(inode))
}

// resolveStdin fills in the other end of a socket at descriptor 0, or finds the wire when descriptor 0
// is /dev/null.
func (a *socketAnswers) resolveStdin(p *Process, l *look, foreign bool) {
	if p.Stdin == nil {
		return
	}
	if l.stdin.kind == StdinSocket {
		p.Stdin.Peer = PeerUnknown
		if u, ok := a.unixSocket(l.stdin.inode); ok {
			p.Stdin.Peer = u.peerState()
		}
	}
	for _, e := range l.wires {
		if e.kind == StdinSocket {
			u, ok := a.unixSocket(e.inode)
			if !ok || !a.pair(u, l) {
				continue
			}
			e.peer = u.peerState()
		}
		*p.Stdin = Stdin{Type: e.kind, Peer: e.peer, FD: e.fd}
		break
	}
	if p.Stdin.Type == StdinSocket && p.Stdin.Peer == PeerClosed && foreign {
		p.Stdin.Peer = PeerUnknown
	}
}

// pair tells whether u can be the process's end of a socketpair(2) with another process: not a
// connection to a name, and not one of the pairs by which an event loop wakes itself.
func (a *socketAnswers) pair(u unixSocket, l *look) bool {
	if u.kind != unix.SOCK_STREAM || u.name != "" || u.peerState() == PeerUnknown {
		return false
	}
	return a.unix[u.peer].name == "" && !slices.Contains(l.sockets, uint64(u.peer))
}

// listening returns what the process accepts connections on, and notes it in ports and names.
func (a *socketAnswers) listening(l *look, ports map[uint16]bool, names map[string]bool) []string {
	listen := []string{}
	for _, inode := range l.sockets {
		if t, ok := a.listeners[uint32(inode)]; ok {
			listen = append(listen, t.String())
			ports[t.local.Port()] = true
		}
		if u := a.unix[uint32(inode)]; u.state == tcpListen {
			listen = append(listen, "unix:"+strings.ToValidUTF8(u.name, "\uFFFD"))
			names[u.name] = true
		}
	}
	slices.Sort(listen)
	return slices.Compact(listen)
}

// inbound counts the connections that the process holds to what it, or another of the processes that
// are looked at, listens on: workers accept from a socket that their parent opened. An accepted unix
// socket has the name of the one that accepted it.
func (a *socketAnswers) inbound(l *look, connected map[uint32]tcpSocket, ports map[uint16]bool, names map[string]bool) int {
	n := 0
	for _, inode := range l.sockets {
		if t, ok := connected[uint32(inode)]; ok && ports[t.local.Port()] {
			n++
		}
		if u := a.unix[uint32(inode)]; u.state == tcpEstablished && u.name != "" && names[u.name] {
			n++
		}
	}
	return n
}
