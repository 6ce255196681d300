package procfs

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
	b := make([]byte, unix.NLA_HDRLEN, (unix.NLA_HDRLEN+len(value)+3)&^3)
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
		want UnixSocket
	}{
		{"a socket pair",
			diagMessage(7, unix.SOCK_STREAM, TCPEstablished, attribute(unixDiagPeer, number(8)), attribute(unixDiagShutdown, []byte{0})),
			UnixSocket{Inode: 7, Peer: 8, Kind: unix.SOCK_STREAM, State: TCPEstablished}},
		{"the other end has gone",
			diagMessage(7, unix.SOCK_STREAM, TCPEstablished, attribute(unixDiagPeer, number(0)), attribute(unixDiagShutdown, []byte{3})),
			UnixSocket{Inode: 7, Kind: unix.SOCK_STREAM, State: TCPEstablished, Shutdown: 3}},
		{"the other end sends no more",
			diagMessage(7, unix.SOCK_STREAM, TCPEstablished, attribute(unixDiagPeer, number(8)), attribute(unixDiagShutdown, []byte{1})),
			UnixSocket{Inode: 7, Peer: 8, Kind: unix.SOCK_STREAM, State: TCPEstablished, Shutdown: 1}},
		{"we send no more",
			diagMessage(7, unix.SOCK_STREAM, TCPEstablished, attribute(unixDiagPeer, number(8)), attribute(unixDiagShutdown, []byte{2})),
			UnixSocket{Inode: 7, Peer: 8, Kind: unix.SOCK_STREAM, State: TCPEstablished, Shutdown: 2}},
		{"listening",
			diagMessage(9, unix.SOCK_STREAM, TCPListen, attribute(unixDiagName, []byte("/run/x.sock\x00"))),
			UnixSocket{Inode: 9, Kind: unix.SOCK_STREAM, State: TCPListen, Name: "/run/x.sock"}},
		{"an abstract name",
			diagMessage(9, unix.SOCK_DGRAM, 7, attribute(unixDiagName, []byte("\x00x"))),
			UnixSocket{Inode: 9, Kind: unix.SOCK_DGRAM, State: 7, Name: "@x"}},
		{"no peer and no shutdown, as an older kernel might leave out",
			diagMessage(9, unix.SOCK_STREAM, TCPEstablished),
			UnixSocket{Inode: 9, Kind: unix.SOCK_STREAM, State: TCPEstablished}},
	} {
		got, ok := parseUnixDiag(c.msg)
		if !ok || got != c.want {
			t.Errorf("%s: %+v %v, want %+v", c.name, got, ok, c.want)
		}
	}
}

func FuzzParseUnixDiag(f *testing.F) {
	f.Add(diagMessage(7, unix.SOCK_STREAM, TCPEstablished, attribute(unixDiagPeer, number(8)), attribute(unixDiagShutdown, []byte{0})))
	f.Add(diagMessage(7, unix.SOCK_STREAM, TCPListen, attribute(unixDiagName, []byte("\x00x"))))
	f.Add(diagMessage(1, 1, 1, []byte{3, 0, 0, 0}))
	f.Fuzz(func(t *testing.T, b []byte) {
		parseUnixDiag(b)
		parseInetDiag(b)
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
		if !ok || got.Inode != 99 || got.String() != want {
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
	diag, err := OpenSockDiag(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer diag.Close()
	table, err := diag.UnixSockets()
	if err != nil {
		t.Fatal(err)
	}
	listed := table[uint32(one.Ino)]
	asked, ok := diag.UnixSocket(uint32(one.Ino))
	if !ok || listed != asked || listed.Peer != uint32(other.Ino) {
		t.Errorf("listed %+v, asked %+v %v, want the peer %d", listed, asked, ok, other.Ino)
	}
	if u, ok := diag.UnixSocket(1); ok {
		t.Errorf("inode 1 is %+v", u)
	}
}
