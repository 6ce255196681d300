package procfs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// SockDiag asks the kernel about the sockets of our own network namespace; see sock_diag(7). Any user may
// ask about all sockets; only learning which process has which needs permission.
type SockDiag struct {
	fd  int
	seq uint32
	buf []byte
}

// OpenSockDiag opens the netlink socket. An answer that does not come before the deadline of ctx is an
// error.
func OpenSockDiag(ctx context.Context) (*SockDiag, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("sock_diag: %w", err)
	}
	if deadline, ok := ctx.Deadline(); ok {
		left := unix.NsecToTimeval(int64(max(time.Until(deadline), time.Millisecond)))
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &left); err != nil {
			unix.Close(fd)
			return nil, fmt.Errorf("sock_diag: %w", err)
		}
	}
	// The kernel fills buffers of 32 KiB when it is offered that much.
	return &SockDiag{fd: fd, buf: make([]byte, 32<<10)}, nil
}

// Close closes the netlink socket.
func (d *SockDiag) Close() { unix.Close(d.fd) }

// ask sends one request of type SOCK_DIAG_BY_FAMILY and hands the body of each answer to take: any number
// of them with the flag NLM_F_DUMP, else one.
func (d *SockDiag) ask(flags uint16, request []byte, take func(body []byte)) error {
	d.seq++
	msg := make([]byte, unix.NLMSG_HDRLEN, unix.NLMSG_HDRLEN+len(request))
	ne := binary.NativeEndian
	ne.PutUint32(msg[0:], uint32(unix.NLMSG_HDRLEN+len(request)))
	ne.PutUint16(msg[4:], unix.SOCK_DIAG_BY_FAMILY)
	ne.PutUint16(msg[6:], unix.NLM_F_REQUEST|flags)
	ne.PutUint32(msg[8:], d.seq)
	msg = append(msg, request...)
	if err := unix.Sendto(d.fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("sock_diag: %w", err)
	}
	for {
		n, _, err := unix.Recvfrom(d.fd, d.buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("sock_diag: %w", err)
		}
		done := flags&unix.NLM_F_DUMP == 0
		for b := d.buf[:n]; len(b) > 0; {
			m, rest, ok := nextMessage(b)
			if !ok {
				return errors.New("sock_diag: a malformed answer")
			}
			b = rest
			switch {
			case m.seq != d.seq: // a late answer to an earlier request
				done = false
			case m.kind == unix.NLMSG_DONE:
				return nil
			case m.kind == unix.NLMSG_ERROR:
				return fmt.Errorf("sock_diag: %w", m.errno())
			case m.kind == unix.SOCK_DIAG_BY_FAMILY:
				take(m.body)
			}
		}
		if done {
			return nil
		}
	}
}

// A message is one message of netlink(7).
type message struct {
	kind uint16
	seq  uint32
	body []byte
}

// nextMessage takes the first message from what one read returned.
func nextMessage(b []byte) (m message, rest []byte, ok bool) {
	if len(b) < unix.NLMSG_HDRLEN {
		return m, nil, false
	}
	ne := binary.NativeEndian
	size := int(ne.Uint32(b))
	if size < unix.NLMSG_HDRLEN || size > len(b) {
		return m, nil, false
	}
	m = message{kind: ne.Uint16(b[4:]), seq: ne.Uint32(b[8:]), body: b[unix.NLMSG_HDRLEN:size]}
	return m, b[min(align4(size), len(b)):], true
}

// errno returns the error in a message of kind NLMSG_ERROR.
func (m message) errno() error {
	if len(m.body) < 4 {
		return unix.EBADMSG
	}
	return unix.Errno(-int32(binary.NativeEndian.Uint32(m.body)))
}

func align4(n int) int { return (n + 3) &^ 3 }

// A UnixSocket is one socket of unix(7).
type UnixSocket struct {
	Inode, Peer uint32 // Peer is 0 when there is no other end
	Kind        uint8  // SOCK_STREAM ...
	State       uint8  // TCPListen, TCPEstablished ...
	Shutdown    uint8  // RcvShutdown: nothing can come in any more; 2: nothing can go out
	Name        string
}

// The states of sockets, shared by all families: the kernel's include/net/tcp_states.h.
const (
	TCPEstablished = 1
	TCPClose       = 7 // for a datagram socket: not connected
	TCPListen      = 10
)

// RcvShutdown is a bit of a socket's shutdown: the kernel's include/net/sock.h.
const RcvShutdown = 1

// From the kernel's include/uapi/linux/unix_diag.h.
const (
	udiagShowName    = 1
	udiagShowPeer    = 4
	unixDiagName     = 0
	unixDiagPeer     = 2
	unixDiagShutdown = 6
	unixDiagHeader   = 16
)

// unixRequest is struct unix_diag_req: the socket with this inode, or all of them for a dump.
func unixRequest(inode uint32) []byte {
	b := make([]byte, 24)
	ne := binary.NativeEndian
	b[0] = unix.AF_UNIX
	ne.PutUint32(b[4:], ^uint32(0)) // in any state
	ne.PutUint32(b[8:], inode)
	ne.PutUint32(b[12:], udiagShowName|udiagShowPeer)
	ne.PutUint32(b[16:], ^uint32(0)) // with any cookie
	ne.PutUint32(b[20:], ^uint32(0))
	return b
}

// parseUnixDiag parses struct unix_diag_msg and the attributes behind it.
func parseUnixDiag(b []byte) (UnixSocket, bool) {
	if len(b) < unixDiagHeader || b[0] != unix.AF_UNIX {
		return UnixSocket{}, false
	}
	ne := binary.NativeEndian
	u := UnixSocket{Kind: b[1], State: b[2], Inode: ne.Uint32(b[4:])}
	whole := attributes(b[unixDiagHeader:], func(kind uint16, value []byte) {
		switch {
		case kind == unixDiagName:
			u.Name = socketName(value)
		case kind == unixDiagPeer && len(value) >= 4:
			u.Peer = ne.Uint32(value)
		case kind == unixDiagShutdown && len(value) >= 1:
			u.Shutdown = value[0]
		}
	})
	return u, whole
}

// attributes hands the attributes of an answer, see netlink(7), to take. It returns false when they are
// malformed.
func attributes(b []byte, take func(kind uint16, value []byte)) bool {
	ne := binary.NativeEndian
	for len(b) >= unix.NLA_HDRLEN {
		size := int(ne.Uint16(b))
		if size < unix.NLA_HDRLEN || size > len(b) {
			return false
		}
		take(ne.Uint16(b[2:]), b[unix.NLA_HDRLEN:size])
		b = b[min(align4(size), len(b)):]
	}
	return true
}

// socketName formats an address of unix(7) as ss(8) does: a path, or "@" and an abstract name.
func socketName(b []byte) string {
	if len(b) > 0 && b[0] == 0 {
		return "@" + string(b[1:])
	}
	for i, c := range b {
		if c == 0 {
			b = b[:i]
			break
		}
	}
	return string(b)
}

// An InetSocket is a socket of tcp(7), listening or connected, or of udp(7), bound to a port.
type InetSocket struct {
	Inode  uint32
	Local  netip.AddrPort
	UDP    bool
	Silent time.Duration // since data was received, or since it was connected; -1 when unknown
}

// From the kernel's include/uapi/linux/inet_diag.h, and the place of tcpi_last_data_recv in struct
// tcp_info of include/uapi/linux/tcp.h.
const (
	inetDiagHeader      = 72
	inetRequestSize     = 56
	inetDiagInfo        = 2
	tcpInfoLastDataRecv = 52
)

// inetRequest is struct inet_diag_req_v2: the sockets of a family and a protocol in a state, with struct
// tcp_info of those that are connected.
func inetRequest(family, protocol, state uint8) []byte {
	b := make([]byte, inetRequestSize)
	b[0] = family
	b[1] = protocol
	if state == TCPEstablished {
		b[2] = 1 << (inetDiagInfo - 1)
	}
	binary.NativeEndian.PutUint32(b[4:], 1<<state)
	return b
}

// parseInetDiag parses struct inet_diag_msg and the attributes behind it.
func parseInetDiag(b []byte) (InetSocket, bool) {
	if len(b) < inetDiagHeader {
		return InetSocket{}, false
	}
	var addr netip.Addr
	switch b[0] {
	case unix.AF_INET:
		addr = netip.AddrFrom4([4]byte(b[8:12]))
	case unix.AF_INET6:
		addr = netip.AddrFrom16([16]byte(b[8:24])).Unmap()
	default:
		return InetSocket{}, false
	}
	t := InetSocket{
		Inode:  binary.NativeEndian.Uint32(b[68:]),
		Local:  netip.AddrPortFrom(addr, binary.BigEndian.Uint16(b[4:])),
		Silent: -1,
	}
	attributes(b[inetDiagHeader:], func(kind uint16, value []byte) {
		if kind == inetDiagInfo && len(value) >= tcpInfoLastDataRecv+4 {
			t.Silent = time.Duration(binary.NativeEndian.Uint32(value[tcpInfoLastDataRecv:])) * time.Millisecond
		}
	})
	return t, true
}

// String returns protocol, address and port, as in "tcp:127.0.0.1:4001" or, for any address, "udp:*:53".
func (t InetSocket) String() string {
	protocol := "tcp:"
	if t.UDP {
		protocol = "udp:"
	}
	if t.Local.Addr().IsUnspecified() {
		return protocol + "*:" + strconv.Itoa(int(t.Local.Port()))
	}
	return protocol + t.Local.String()
}

// UnixSockets lists every unix socket of the namespace, by inode.
func (d *SockDiag) UnixSockets() (map[uint32]UnixSocket, error) {
	sockets := make(map[uint32]UnixSocket)
	err := d.ask(unix.NLM_F_DUMP, unixRequest(0), func(body []byte) {
		if u, ok := parseUnixDiag(body); ok {
			sockets[u.Inode] = u
		}
	})
	return sockets, err
}

// UnixSocket returns the unix socket with that inode. ok is false when the namespace has none.
func (d *SockDiag) UnixSocket(inode uint32) (u UnixSocket, ok bool) {
	err := d.ask(0, unixRequest(inode), func(body []byte) { u, ok = parseUnixDiag(body) })
	return u, ok && err == nil && u.Inode == inode
}

// TCPSockets adds the TCP sockets of the namespace that are in a state, by inode.
func (d *SockDiag) TCPSockets(state uint8, sockets map[uint32]InetSocket) error {
	return d.inetSockets(unix.IPPROTO_TCP, state, func(t InetSocket) { sockets[t.Inode] = t })
}

// UDPSockets adds the unconnected UDP sockets of the namespace, by inode. Ports that the kernel chose are
// left out: they belong to clients.
func (d *SockDiag) UDPSockets(sockets map[uint32]InetSocket) error {
	const ephemeral = 32768 // ip_local_port_range of ip(7)
	return d.inetSockets(unix.IPPROTO_UDP, TCPClose, func(t InetSocket) {
		if port := t.Local.Port(); port > 0 && port < ephemeral {
			t.UDP = true
			sockets[t.Inode] = t
		}
	})
}

func (d *SockDiag) inetSockets(protocol, state uint8, take func(InetSocket)) error {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		err := d.ask(unix.NLM_F_DUMP, inetRequest(family, protocol, state), func(body []byte) {
			if t, ok := parseInetDiag(body); ok {
				take(t)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
