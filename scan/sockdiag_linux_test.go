package scan

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// diagMessage builds struct unix_diag_msg with attributes.
func diagMessage(inode uint32, kind, state uint8, attributes ...[]byte) []byte {
	b := make([]byte, unixDiagHeader)
	b[0], b[1], b[2] = unix.AF_UNIX, kind, state
	binary.NativeEndian.PutUint32(b[4:], inode)
	for _, a := range attributes {
		b = append(b, a...)
	}
	return b
}

// attribute builds struct nlattr with its padding.
func attribute(kind uint16, value []byte) []byte {
	b := make([]byte, unix.NLA_HDRLEN, align4(unix.NLA_HDRLEN+len(value)))
	binary.NativeEndian.PutUint16(b, uint16(unix.NLA_HDRLEN+len(value)))
	binary.NativeEndian.PutUint16(b[2:], kind)
	b = append(b, value...)
	return b[:cap(b)]
}

func number(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }

func TestParseUnixDiag(t *testing.T) {
	for _, c := range []struct {
		name string
		msg  []byte
		want unixSocket
		peer StdinPeer
	}{
		{"a socket pair",
			diagMessage(7, unix.SOCK_STREAM, tcpEstablished, attribute(unixDiagPeer, number(8)), attribute(unixDiagShutdown, []byte{0})),
			unixSocket{inode: 7, peer: 8, kind: unix.SOCK_STREAM, state: tcpEstablished}, PeerOpen},
		{"the other end has gone",
			diagMessage(7, unix.SOCK_STREAM, tcpEstablished, attribute(unixDiagPeer, number(0)), attribute(unixDiagShutdown, []byte{3})),
			unixSocket{inode: 7, kind: unix.SOCK_STREAM, state: tcpEstablished, shutdown: 3}, PeerClosed},
		{"the other end sends no more",
			diagMessage(7, unix.SOCK_STREAM, tcpEstablished, attribute(unixDiagPeer, number(8)), attribute(unixDiagShutdown, []byte{1})),
			unixSocket{inode: 7, peer: 8, kind: unix.SOCK_STREAM, state: tcpEstablished, shutdown: 1}, PeerOpen},
		{"we send no more",
			diagMessage(7, unix.SOCK_STREAM, tcpEstablished, attribute(unixDiagPeer, number(8)), attribute(unixDiagShutdown, []byte{2})),
			unixSocket{inode: 7, peer: 8, kind: unix.SOCK_STREAM, state: tcpEstablished, shutdown: 2}, PeerOpen},
		{"listening",
			diagMessage(9, unix.SOCK_STREAM, tcpListen, attribute(unixDiagName, []byte("/run/x.sock\x00"))),
			unixSocket{inode: 9, kind: unix.SOCK_STREAM, state: tcpListen, name: "/run/x.sock"}, PeerUnknown},
		{"an abstract name",
			diagMessage(9, unix.SOCK_DGRAM, 7, attribute(unixDiagName, []byte("\x00x"))),
			unixSocket{inode: 9, kind: unix.SOCK_DGRAM, state: 7, name: "@x"}, PeerUnknown},
		{"no peer and no shutdown, as an older kernel might leave out",
			diagMessage(9, unix.SOCK_STREAM, tcpEstablished),
			unixSocket{inode: 9, kind: unix.SOCK_STREAM, state: tcpEstablished}, PeerUnknown},
	} {
		got, ok := parseUnixDiag(c.msg)
		if !ok || got != c.want {
			t.Errorf("%s: %+v %v, want %+v", c.name, got, ok, c.want)
		}
		if peer := got.peerState(); peer != c.peer {
			t.Errorf("%s: the other end is %s, want %s", c.name, peer, c.peer)
		}
	}
}

func FuzzParseUnixDiag(f *testing.F) {
	f.Add(diagMessage(7, unix.SOCK_STREAM, tcpEstablished, attribute(unixDiagPeer, number(8)), attribute(unixDiagShutdown, []byte{0})))
	f.Add(diagMessage(7, unix.SOCK_STREAM, tcpListen, attribute(unixDiagName, []byte("\x00x"))))
	f.Add(diagMessage(1, 1, 1, []byte{3, 0, 0, 0}))
	f.Fuzz(func(t *testing.T, b []byte) {
		// Whatever a message holds, "closed" needs the kernel's word for it.
		if u, ok := parseUnixDiag(b); ok && u.peerState() == PeerClosed && u.shutdown&rcvShutdown == 0 {
			t.Errorf("%+v counts as closed", u)
		}
		parseInetDiag(b)
		for rest, ok := b, true; ok && len(rest) > 0; {
			var m message
			before := len(rest)
			if m, rest, ok = nextMessage(rest); ok && len(rest) >= before {
				t.Fatalf("no progress at %+v", m)
			}
			m.errno()
		}
	})
}

func TestParseInetDiag(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:4001":        "tcp:127.0.0.1:4001",
		"0.0.0.0:80":            "tcp:*:80",
		"[::]:80":               "tcp:*:80",
		"[::1]:8080":            "tcp:[::1]:8080",
		"[::ffff:10.0.0.1]:443": "tcp:10.0.0.1:443",
	} {
		a := netip.MustParseAddrPort(address)
		b := make([]byte, inetDiagHeader)
		b[0] = unix.AF_INET6
		if a.Addr().Is4() {
			b[0] = unix.AF_INET
		}
		binary.BigEndian.PutUint16(b[4:], a.Port())
		copy(b[8:], a.Addr().AsSlice())
		binary.NativeEndian.PutUint32(b[68:], 99)
		got, ok := parseInetDiag(b)
		if !ok || got.inode != 99 || got.String() != want {
			t.Errorf("%s: %v %+v, want %s", address, ok, got, want)
		}
		if _, ok := parseInetDiag(b[:70]); ok {
			t.Errorf("%s: half a message is a socket", address)
		}
	}
}

// The table and the single question must agree about a pair of our own.
func TestSockDiagAnswers(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	var one, other unix.Stat_t
	if err := unix.Fstat(pair[0], &one); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fstat(pair[1], &other); err != nil {
		t.Fatal(err)
	}
	table := readSockets(t.Context())
	if table.err != nil {
		t.Fatal(table.err)
	}
	defer table.close()
	listed := table.unix[uint32(one.Ino)]
	asked, ok := table.diag.unixSocket(uint32(one.Ino))
	if !ok || listed != asked || listed.peer != uint32(other.Ino) || listed.peerState() != PeerOpen {
		t.Errorf("listed %+v, asked %+v %v, want the peer %d", listed, asked, ok, other.Ino)
	}
	if u, ok := table.unixSocket(1); ok {
		t.Errorf("inode 1 is %+v", u)
	}
}
