package scan

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

func TestListenTCP(t *testing.T) {
	for network, address := range map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"} {
		t.Run(network, func(t *testing.T) {
			server := startChild(t, "serve "+network+" "+address, nil)
			p := examined(t, server.pid)
			if want := []string{"tcp:" + server.said[0]}; !slices.Equal(p.Listen, want) {
				t.Errorf("listens on %v, want %v", p.Listen, want)
			}
			wantInbound(t, p, 0)
			for range 3 {
				dial(t, "tcp", server.said[0])
			}
			wantInbound(t, examined(t, server.pid), 3)
		})
	}
}

func TestListenUnix(t *testing.T) {
	for name, address := range map[string]string{"path": filepath.Join(t.TempDir(), "s"), "abstract": "@scan-test-" + strconv.Itoa(os.Getpid())} {
		t.Run(name, func(t *testing.T) {
			server := startChild(t, "serve unix "+address, nil)
			p := examined(t, server.pid)
			if want := []string{"unix:" + address}; !slices.Equal(p.Listen, want) {
				t.Errorf("listens on %v, want %v", p.Listen, want)
			}
			wantInbound(t, p, 0)
			for range 2 {
				dial(t, "unix", address)
			}
			wantInbound(t, examined(t, server.pid), 2)
		})
	}
}

// Who takes datagrams on a port or a name of its own listens too; a port that the kernel chose is only
// that of who asks.
func TestDatagrams(t *testing.T) {
	const port = "127.0.0.1:21379"
	name := filepath.Join(t.TempDir(), "s.sock")
	for address, want := range map[string][]string{"udp " + port: {"udp:" + port}, "udp 127.0.0.1:0": {}, "unixgram " + name: {"unix:" + name}} {
		if p := examined(t, startChild(t, "receive "+address, nil).pid); !slices.Equal(p.Listen, want) {
			t.Errorf("%s: listens on %v, want %v", address, p.Listen, want)
		}
	}
}

// How long a connection has received nothing is told, and it begins anew with what it receives.
func TestInboundSilence(t *testing.T) {
	server := startChild(t, "serve tcp 127.0.0.1:0", nil)
	if p := examined(t, server.pid); p.InboundSilenceSeconds != nil {
		t.Errorf("nobody is connected, and has been silent for %d s", *p.InboundSilenceSeconds)
	}
	c, err := net.Dial("tcp", server.said[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	silence := func() int64 {
		p := examined(t, server.pid)
		if p.InboundSilenceSeconds == nil {
			t.Fatal("it is not told how long a connection has been silent")
		}
		return *p.InboundSilenceSeconds
	}
	for deadline := time.Now().Add(time.Minute); silence() < 3; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a connection that receives nothing is not silent")
		}
	}
	before := silence()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if after := silence(); after >= before {
		t.Errorf("it was silent for %d s, and for %d s after it had received something", before, after)
	}
}

// dial connects and waits until the server has accepted.
func dial(t testing.TB, network, address string) {
	t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

func wantInbound(t testing.TB, p *Process, want int) {
	t.Helper()
	if p.InboundConnections == nil || *p.InboundConnections != want {
		t.Errorf("inbound connections: %v, want %d", p.InboundConnections, want)
	}
}

// A process that listens on nothing says so, which is not the same as that nobody looked.
func TestListenNothing(t *testing.T) {
	p := examined(t, startChild(t, "stay", nil).pid)
	if p.Listen == nil || len(p.Listen) > 0 {
		t.Errorf("listens on %#v, want an empty list", p.Listen)
	}
}
