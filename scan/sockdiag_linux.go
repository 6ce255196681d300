package scan

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

// sockDiag asks the kernel about the sockets of our own network namespace; see sock_diag(7). Any
// user may ask about all sockets: what needs permission is to learn which process has which.
type sockDiag struct {
	fd  int
	seq uint32
	buf []byte
}

// openSockDiag opens the netlink socket. An answer that does not come until the end of ctx is an
// error.
func openSockDiag(ctx context.Context) (*sockDiag, error) {
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
	return &sockDiag{fd: fd, buf: make([]byte, 32<<10)}, nil
}

func (d *sockDiag) close() { unix.Close(d.fd) }

// ask sends one request of type SOCK_DIAG_BY_FAMILY and hands the body of each answer to take. With
// the flag NLM_F_DUMP there are any number of answers, else there is one.
func (d *sockDiag) ask(flags uint16, request []byte, take func(body []byte)) error {
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
			case m.seq != d.seq: // late answer to a request that was given up
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

// errno is what a message of kind NLMSG_ERROR says.
func (m message) errno() error {
	if len(m.body) < 4 {
		return unix.EBADMSG
	}
	return unix.Errno(-int32(binary.NativeEndian.Uint32(m.body)))
}

func align4(n int) int { return (n + 3) &^ 3 }

// A unixSocket is one socket of unix(7). Its peer's inode is 0 when there is no other end.
type unixSocket struct {
	inode, peer uint32
	kind        uint8 // SOCK_STREAM ...
	state       uint8 // tcpListen, tcpEstablished ...
	shutdown    uint8 // 1: nothing can come in any more, 2: nothing can go out
	name        string
}

// The states of sockets, shared by all families: the kernel's include/net/tcp_states.h.
const (
	tcpEstablished = 1
	tcpClose       = 7 // of datagram sockets: not connected
	tcpListen      = 10
)

// The bits of a socket's shutdown: the kernel's include/net/sock.h.
const rcvShutdown = 1

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
func parseUnixDiag(b []byte) (unixSocket, bool) {
	if len(b) < unixDiagHeader || b[0] != unix.AF_UNIX {
		return unixSocket{}, false
	}
	ne := binary.NativeEndian
	u := unixSocket{kind: b[1], state: b[2], inode: ne.Uint32(b[4:])}
	whole := attributes(b[unixDiagHeader:], func(kind uint16, value []byte) {
		switch {
		case kind == unixDiagName:
			u.name = socketName(value)
		case kind == unixDiagPeer && len(value) >= 4:
			u.peer = ne.Uint32(value)
		case kind == unixDiagShutdown && len(value) >= 1:
			u.shutdown = value[0]
		}
	})
	return u, whole
}

// attributes hands the attributes of an answer, which netlink(7) describes, to take. It is false when
// they are malformed.
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

// socketName writes an address of unix(7) as ss(8) does: a path, or "@" and an abstract name.
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

// peerState is what the socket says about the other end of a wire: closed when the other socket is
// gone. A client that only ended its sending side (shutdown(2)) is still there and may wait for the
// answer, so that this counts as open. Node's stdin.end() closes the socket.
func (u unixSocket) peerState() StdinPeer {
	switch {
	case u.kind != unix.SOCK_STREAM && u.kind != unix.SOCK_SEQPACKET, u.state != tcpEstablished:
		return PeerUnknown
	case u.peer != 0:
		return PeerOpen
	case u.shutdown&rcvShutdown != 0:
		return PeerClosed
	}
	return PeerUnknown
}

// An inetSocket is one socket of tcp(7), listening or connected, or of udp(7), bound to a port.
type inetSocket struct {
	inode  uint32
	local  netip.AddrPort
	udp    bool
	silent time.Duration // since data was received, or since it was connected; -1 when not told
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
	if state == tcpEstablished {
		b[2] = 1 << (inetDiagInfo - 1)
	}
	binary.NativeEndian.PutUint32(b[4:], 1<<state)
	return b
}

// parseInetDiag parses struct inet_diag_msg and the attributes behind it.
func parseInetDiag(b []byte) (inetSocket, bool) {
	if len(b) < inetDiagHeader {
		return inetSocket{}, false
	}
	var addr netip.Addr
	switch b[0] {
	case unix.AF_INET:
		addr = netip.AddrFrom4([4]byte(b[8:12]))
	case unix.AF_INET6:
		addr = netip.AddrFrom16([16]byte(b[8:24])).Unmap()
	default:
		return inetSocket{}, false
	}
	t := inetSocket{
		inode:  binary.NativeEndian.Uint32(b[68:]),
		local:  netip.AddrPortFrom(addr, binary.BigEndian.Uint16(b[4:])),
		silent: -1,
	}
	attributes(b[inetDiagHeader:], func(kind uint16, value []byte) {
		if kind == inetDiagInfo && len(value) >= tcpInfoLastDataRecv+4 {
			t.silent = time.Duration(binary.NativeEndian.Uint32(value[tcpInfoLastDataRecv:])) * time.Millisecond
		}
	})
	return t, true
}

// String writes the address as it stands in a snapshot's Listen.
func (t inetSocket) String() string {
	protocol := "tcp:"
	if t.udp {
		protocol = "udp:"
	}
	if t.local.Addr().IsUnspecified() {
		return protocol + "*:" + strconv.Itoa(int(t.local.Port()))
	}
	return protocol + t.local.String()
}

// unixSockets lists every unix socket of the namespace, by inode.
func (d *sockDiag) unixSockets() (map[uint32]unixSocket, error) {
	sockets := make(map[uint32]unixSocket)
	err := d.ask(unix.NLM_F_DUMP, unixRequest(0), func(body []byte) {
		if u, ok := parseUnixDiag(body); ok {
			sockets[u.inode] = u
		}
	})
	return sockets, err
}

// unixSocket asks about the one socket with that inode. It is false when the kernel does not know
// it: it is gone, is not a unix socket, or lives in another network namespace.
func (d *sockDiag) unixSocket(inode uint32) (u unixSocket, ok bool) {
	err := d.ask(0, unixRequest(inode), func(body []byte) { u, ok = parseUnixDiag(body) })
	return u, ok && err == nil && u.inode == inode
}

// tcpSockets adds the TCP sockets of the namespace that are in a state, by inode.
func (d *sockDiag) tcpSockets(state uint8, sockets map[uint32]inetSocket) error {
	return d.inetSockets(unix.IPPROTO_TCP, state, func(t inetSocket) { sockets[t.inode] = t })
}

// udpSockets adds those of the namespace that are bound to a port from which datagrams of anybody are
// taken. Ports that the kernel chose by itself are left out: they are those of who only asks.
func (d *sockDiag) udpSockets(sockets map[uint32]inetSocket) error {
	const ephemeral = 32768 // ip_local_port_range of ip(7)
	return d.inetSockets(unix.IPPROTO_UDP, tcpClose, func(t inetSocket) {
		if port := t.local.Port(); port > 0 && port < ephemeral {
			t.udp = true
			sockets[t.inode] = t
		}
	})
}

func (d *sockDiag) inetSockets(protocol, state uint8, take func(inetSocket)) error {
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
