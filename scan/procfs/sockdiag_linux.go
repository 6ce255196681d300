package procfs

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// SockDiag asks the kernel about the sockets of our network namespace; see sock_diag(7). Any user may ask
// about all sockets; only learning which process has which takes permission.
type SockDiag struct {
	fd  int
	seq uint32
	buf []byte
}

// OpenSockDiag opens the netlink socket. An answer that does not arrive before the deadline of ctx is an error.
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

// ask sends a request of type SOCK_DIAG_BY_FAMILY, see netlink(7), and calls found with the body of each answer:
// any number of them with the flag NLM_F_DUMP, else one.
func (d *SockDiag) ask(flags uint16, request any, found func(body []byte)) error {
	d.seq++
	header := unix.NlMsghdr{
		Len:   uint32(unix.NLMSG_HDRLEN + binary.Size(request)),
		Type:  unix.SOCK_DIAG_BY_FAMILY,
		Flags: unix.NLM_F_REQUEST | flags,
		Seq:   d.seq,
	}
	var msg []byte
	for _, part := range []any{header, request} {
		var err error
		if msg, err = binary.Append(msg, binary.NativeEndian, part); err != nil {
			return fmt.Errorf("sock_diag: %w", err)
		}
	}
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
		messages, err := syscall.ParseNetlinkMessage(d.buf[:n])
		if err != nil {
			return fmt.Errorf("sock_diag: %w", err)
		}
		done := flags&unix.NLM_F_DUMP == 0
		for _, m := range messages {
			switch {
			case m.Header.Seq != d.seq: // a late answer to an earlier request
				done = false
			case m.Header.Type == unix.NLMSG_DONE:
				return nil
			case m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4:
				return fmt.Errorf("sock_diag: %w", unix.Errno(-int32(binary.NativeEndian.Uint32(m.Data))))
			case m.Header.Type == unix.SOCK_DIAG_BY_FAMILY:
				found(m.Data)
			}
		}
		if done {
			return nil
		}
	}
}

// A UnixSocket is one socket of unix(7).
type UnixSocket struct {
	Inode, Peer uint32 // Peer is 0 when there is no other end
	Kind        uint8  // SOCK_STREAM ...
	State       uint8  // TCPListen, TCPEstablished ...
	Shutdown    uint8  // a mask of RcvShutdown and SEND_SHUTDOWN, 2
	Name        string
}

// The states of sockets, shared by all families: the kernel's include/net/tcp_states.h.
const (
	TCPEstablished = 1
	TCPClose       = 7 // for a datagram socket: not connected
	TCPListen      = 10
)

// RcvShutdown is set when a socket receives no more: the kernel's include/net/sock.h.
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

// A unixRequest is struct unix_diag_req.
type unixRequest struct {
	Family, Protocol uint8
	_                uint16
	States           uint32 // a mask
	Inode            uint32 // 0 in a dump of all
	Show             uint32
	Cookie           [2]uint32
}

func newUnixRequest(inode uint32) unixRequest {
	const all = ^uint32(0)
	return unixRequest{Family: unix.AF_UNIX, States: all, Inode: inode, Show: udiagShowName | udiagShowPeer, Cookie: [2]uint32{all, all}}
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

// attributes calls found with each attribute of an answer, see netlink(7). It returns false when one is
// malformed.
func attributes(b []byte, found func(kind uint16, value []byte)) bool {
	ne := binary.NativeEndian
	for len(b) >= unix.NLA_HDRLEN {
		size := int(ne.Uint16(b))
		if size < unix.NLA_HDRLEN || size > len(b) {
			return false
		}
		found(ne.Uint16(b[2:]), b[unix.NLA_HDRLEN:size])
		b = b[min((size+unix.NLA_ALIGNTO-1)&^(unix.NLA_ALIGNTO-1), len(b)):]
	}
	return true
}

// socketName formats an address of unix(7) as ss(8) does: a path, or "@" and an abstract name.
func socketName(b []byte) string {
	if len(b) > 0 && b[0] == 0 {
		return "@" + string(b[1:])
	}
	return unix.ByteSliceToString(b)
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
	inetDiagInfo        = 2
	tcpInfoLastDataRecv = 52
)

// An inetRequest is struct inet_diag_req_v2. The zero ID stands for any socket.
type inetRequest struct {
	Family, Protocol, Ext, _ uint8
	States                   uint32 // a mask
	ID                       [48]byte
}

func newInetRequest(family, protocol, state uint8) inetRequest {
	r := inetRequest{Family: family, Protocol: protocol, States: 1 << state}
	if state == TCPEstablished {
		r.Ext = 1 << (inetDiagInfo - 1) // struct tcp_info
	}
	return r
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
	err := d.ask(unix.NLM_F_DUMP, newUnixRequest(0), func(body []byte) {
		if u, ok := parseUnixDiag(body); ok {
			sockets[u.Inode] = u
		}
	})
	return sockets, err
}

// UnixSocket returns the unix socket with that inode. ok is false when the namespace has none.
func (d *SockDiag) UnixSocket(inode uint32) (u UnixSocket, ok bool) {
	err := d.ask(0, newUnixRequest(inode), func(body []byte) { u, ok = parseUnixDiag(body) })
	return u, ok && err == nil && u.Inode == inode
}

// TCPSockets adds the TCP sockets of the namespace that are in a state, by inode.
func (d *SockDiag) TCPSockets(state uint8, sockets map[uint32]InetSocket) error {
	return d.inetSockets(unix.IPPROTO_TCP, state, func(t InetSocket) { sockets[t.Inode] = t })
}

// UDPSockets adds the unconnected UDP sockets of the namespace, by inode, except those on ports that the kernel
// chose: they belong to clients.
func (d *SockDiag) UDPSockets(sockets map[uint32]InetSocket) error {
	const ephemeral = 32768 // ip_local_port_range of ip(7)
	return d.inetSockets(unix.IPPROTO_UDP, TCPClose, func(t InetSocket) {
		if port := t.Local.Port(); port > 0 && port < ephemeral {
			t.UDP = true
			sockets[t.Inode] = t
		}
	})
}

func (d *SockDiag) inetSockets(protocol, state uint8, found func(InetSocket)) error {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		err := d.ask(unix.NLM_F_DUMP, newInetRequest(family, protocol, state), func(body []byte) {
			if t, ok := parseInetDiag(body); ok {
				found(t)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
