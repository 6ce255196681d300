package scan

import (
	"testing"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan/procfs"
)

func TestPeerState(t *testing.T) {
	for _, c := range []struct {
		name string
		procfs.UnixSocket
		want StdinPeer
	}{
		{"a socket pair", procfs.UnixSocket{Inode: 7, Peer: 8, Kind: unix.SOCK_STREAM, State: procfs.TCPEstablished}, PeerOpen},
		{"the other end has gone", procfs.UnixSocket{Inode: 7, Kind: unix.SOCK_STREAM, State: procfs.TCPEstablished, Shutdown: 3}, PeerClosed},
		{"the other end sends no more", procfs.UnixSocket{Inode: 7, Peer: 8, Kind: unix.SOCK_STREAM, State: procfs.TCPEstablished, Shutdown: 1}, PeerOpen},
		{"we send no more", procfs.UnixSocket{Inode: 7, Peer: 8, Kind: unix.SOCK_STREAM, State: procfs.TCPEstablished, Shutdown: 2}, PeerOpen},
		{"listening", procfs.UnixSocket{Inode: 9, Kind: unix.SOCK_STREAM, State: procfs.TCPListen, Name: "/run/x.sock"}, PeerUnknown},
		{"an abstract name", procfs.UnixSocket{Inode: 9, Kind: unix.SOCK_DGRAM, State: procfs.TCPClose, Name: "@x"}, PeerUnknown},
		{"no peer and no shutdown, as an older kernel might leave out", procfs.UnixSocket{Inode: 9, Kind: unix.SOCK_STREAM, State: procfs.TCPEstablished}, PeerUnknown},
	} {
		if got := peerState(c.UnixSocket); got != c.want {
			t.Errorf("%s: the other end is %s, want %s", c.name, got, c.want)
		}
	}
	// Whatever else a socket is, "closed" needs the kernel's word for it.
	for kind := range uint8(8) {
		for state := range uint8(13) {
			u := procfs.UnixSocket{Kind: kind, State: state, Shutdown: 2}
			if got := peerState(u); got == PeerClosed {
				t.Errorf("%+v counts as closed", u)
			}
		}
	}
}

// The kernel's answer about a pair of our own is that both ends are open.
func TestPeerStateOfAPair(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	var st unix.Stat_t
	if err := unix.Fstat(pair[0], &st); err != nil {
		t.Fatal(err)
	}
	table := readSockets(t.Context())
	if table.err != nil {
		t.Fatal(table.err)
	}
	defer table.close()
	if u, ok := table.unixSocket(st.Ino); !ok || peerState(u) != PeerOpen {
		t.Errorf("%+v %v", u, ok)
	}
	if u, ok := table.unixSocket(1); ok {
		t.Errorf("inode 1 is %+v", u)
	}
}
