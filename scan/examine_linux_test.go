package scan

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// table takes the process table.
func takeTable(t testing.TB) *Snapshot {
	t.Helper()
	s, err := Take(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// patient is for tests of what is found: a machine that is busy may take its time.
var patient = ExamineOptions{Deadline: time.Minute}

// examined looks at one process.
func examined(t testing.TB, pid int) *Process {
	t.Helper()
	s := takeTable(t)
	Examine(t.Context(), s, []int{pid}, patient)
	if len(s.Problems) > 0 {
		t.Log(s.Problems)
	}
	p := s.find(pid)
	if p == nil {
		t.Fatalf("pid %d is not in the table", pid)
	}
	return p
}

// eventually waits for what the kernel or another process does in its own time.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("not %s", what)
}

func wantStdin(t testing.TB, p *Process, want Stdin) {
	t.Helper()
	switch {
	case p.Stdin == nil:
		t.Errorf("nobody saw its stdin, want %+v; unreadable: %v", want, p.Unreadable)
	case p.Stdin.Type != want.Type || p.Stdin.Peer != want.Peer || p.Stdin.FD != want.FD:
		t.Errorf("stdin is %+v, want %+v", *p.Stdin, want)
	}
}

func TestStdinOpenAndClosed(t *testing.T) {
	for kind, stdin := range map[string]StdinType{"pipe": StdinPipe, "socketpair": StdinSocket} {
		t.Run(kind, func(t *testing.T) {
			server, ours := startServer(t, kind, "stubborn")
			wantStdin(t, examined(t, server.pid), Stdin{Type: stdin, Peer: PeerOpen})
			ours.Close()
			wantStdin(t, examined(t, server.pid), Stdin{Type: stdin, Peer: PeerClosed})
		})
	}
}

// A client that only ended its sending side may still wait for the answer.
func TestStdinHalfClosed(t *testing.T) {
	server, ours := startServer(t, "socketpair", "stubborn")
	if err := unix.Shutdown(int(ours.Fd()), unix.SHUT_WR); err != nil {
		t.Fatal(err)
	}
	wantStdin(t, examined(t, server.pid), Stdin{Type: StdinSocket, Peer: PeerOpen})
}

// Where the answers go, and whether anybody reads them.
func TestStdout(t *testing.T) {
	writer := func(out *os.File) int {
		t.Helper()
		cmd := exec.Command("sleep", "60")
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill() //nolint:errcheck // it may have ended
			cmd.Wait()         //nolint:errcheck
		})
		return cmd.Process.Pid
	}
	want := func(what string, pid int, want Stdin) {
		t.Helper()
		if got := examined(t, pid).Stdout; !reflect.DeepEqual(got, &want) {
			t.Errorf("%s: stdout is %+v", what, got)
		}
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	want("a file", writer(file), Stdin{Type: StdinFile})
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "socket")
	pid := writer(theirs)
	theirs.Close()
	want("a socket that is read", pid, Stdin{Type: StdinSocket, Peer: PeerOpen})
	unix.Close(ends[0])
	want("a socket that nobody reads", pid, Stdin{Type: StdinSocket, Peer: PeerClosed})
}

// A browser that is driven through a pipe belongs to who holds that pipe, whatever its stdin is.
func TestStdinOfDrivenBrowser(t *testing.T) {
	dead, gone, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	defer dead.Close()
	orders, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer orders.Close()
	c := startChild(t, "stay", func(cmd *exec.Cmd) {
		cmd.Args = append(cmd.Args, "--remote-debugging-pipe")
		cmd.Stdin, cmd.ExtraFiles = dead, []*os.File{orders}
	})
	wantStdin(t, examined(t, c.pid), Stdin{Type: StdinPipe, Peer: PeerOpen, FD: 3})
	ours.Close()
	wantStdin(t, examined(t, c.pid), Stdin{Type: StdinPipe, Peer: PeerClosed, FD: 3})
}

// A server that has requests left to read is at work, whoever wrote them.
func TestStdinWithRequestsLeft(t *testing.T) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	c := startChild(t, "stay", func(cmd *exec.Cmd) { cmd.Stdin = theirs }) // and never reads
	if _, err := ours.WriteString("a request\n"); err != nil {
		t.Fatal(err)
	}
	ours.Close()
	wantStdin(t, examined(t, c.pid), Stdin{Type: StdinPipe, Peer: PeerClosed, Unread: true})
}

func TestStdinWithoutWire(t *testing.T) {
	t.Run("null", func(t *testing.T) {
		wantStdin(t, examined(t, startChild(t, "stay", nil).pid), Stdin{Type: StdinNull})
	})
	t.Run("file", func(t *testing.T) {
		f, err := os.Open("examine_linux_test.go")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c := startChild(t, "stay", func(cmd *exec.Cmd) { cmd.Stdin = f })
		wantStdin(t, examined(t, c.pid), Stdin{Type: StdinFile})
	})
	t.Run("terminal", func(t *testing.T) {
		c := startChild(t, "stay", func(cmd *exec.Cmd) { cmd.Stdin = terminal(t) })
		wantStdin(t, examined(t, c.pid), Stdin{Type: StdinTTY})
	})
	// Whoever knows its name can open it again.
	t.Run("named pipe", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "fifo")
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c := startChild(t, "stay", func(cmd *exec.Cmd) { cmd.Stdin = f })
		wantStdin(t, examined(t, c.pid), Stdin{Type: StdinFile})
	})
	// A socket that was never a pair: its other end is not gone, there was none.
	t.Run("listening socket", func(t *testing.T) {
		l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f, err := l.(*net.UnixListener).File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c := startChild(t, "stay", func(cmd *exec.Cmd) { cmd.Stdin = f })
		wantStdin(t, examined(t, c.pid), Stdin{Type: StdinSocket, Peer: PeerUnknown})
	})
}

// terminal makes a pseudo terminal, pty(7), and returns the side of its user.
func terminal(t testing.TB) *os.File {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { control.Close() })
	if err := unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return tty
}

func TestStdinOnAnotherDescriptor(t *testing.T) {
	for kind, stdin := range map[string]StdinType{"pipe": StdinPipe, "socketpair": StdinSocket} {
		t.Run(kind, func(t *testing.T) {
			server, ours := startServer(t, kind, "moved 13")
			wantStdin(t, examined(t, server.pid), Stdin{Type: stdin, Peer: PeerOpen, FD: 13})
			ours.Close()
			wantStdin(t, examined(t, server.pid), Stdin{Type: stdin, Peer: PeerClosed, FD: 13})
		})
	}
}

// A helper that inherited the writing end keeps a server's stdin open after the client has gone.
// A process of which the first thread has ended looks like a zombie and holds all that it held.
func TestHoldersWithoutFirstThread(t *testing.T) {
	for _, kind := range []string{"pipe", "socketpair"} {
		client := startChild(t, "client "+kind+" headless", nil)
		server := client.number(0)
		t.Cleanup(func() { kill(t, server) })
		deadline := time.Now().Add(10 * time.Second)
		for {
			s := takeTable(t)
			if p := s.find(client.pid); p != nil && p.State == "Zl" {
				Examine(t.Context(), s, []int{server}, patient)
				Holders(t.Context(), s, []int{server}, patient)
				if got := s.find(server).Stdin; got.Peer != PeerOpen || !slices.Equal(got.Holders, []int{client.pid}) {
					t.Errorf("%s: stdin is %+v, want it held by %d", kind, got, client.pid)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the first thread did not end")
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// Who reads what a server writes to a pipe.
func TestReaders(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	cmd.Stdout = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck
	})
	write.Close()
	output := func() *Stdin {
		s := takeTable(t)
		Examine(t.Context(), s, []int{cmd.Process.Pid}, patient)
		Holders(t.Context(), s, []int{cmd.Process.Pid}, patient)
		return s.find(cmd.Process.Pid).Stdout
	}
	if got := output(); got.Type != StdinPipe || got.Peer != PeerOpen || !slices.Equal(got.Holders, []int{os.Getpid()}) {
		t.Errorf("output %+v, want it read by %d", got, os.Getpid())
	}
	read.Close()
	if got := output(); got.Type != StdinPipe || got.Peer != PeerClosed {
		t.Errorf("output %+v, want it read by nobody", got)
	}
}

// A signal that comes while descriptors are listed cuts no list short. Go's scheduler sends them at any
// time, and a holder that is missed is a living client.
func TestListsAreWhole(t *testing.T) {
	const many = 300
	for range many {
		f, err := os.Open("/dev/null")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				unix.Kill(os.Getpid(), unix.SIGURG) //nolint:errcheck // to oneself
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	proc, err := openAt(unix.AT_FDCWD, "/proc", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(proc)
	for range 3000 {
		h, err := openAny(proc, os.Getpid(), make([]byte, smallFile))
		if err != nil {
			t.Fatal(err)
		}
		f, err := h.openFDs()
		if err != nil {
			t.Fatal(err)
		}
		n := len(f.names)
		f.close()
		h.close()
		if n < many {
			t.Fatalf("%d descriptors are listed of more than %d", n, many)
		}
	}
}

func TestHolders(t *testing.T) {
	for _, kind := range []string{"pipe", "socketpair"} {
		t.Run(kind, func(t *testing.T) {
			server, ours := startServer(t, kind, "stubborn")
			helper := startChild(t, "stay", func(cmd *exec.Cmd) { cmd.ExtraFiles = []*os.File{ours} })
			holders := func() []int {
				s := takeTable(t)
				Examine(t.Context(), s, []int{server.pid}, patient)
				Holders(t.Context(), s, []int{server.pid}, patient)
				if p := s.find(server.pid); slices.Contains(p.Unreadable, "holders") {
					t.Errorf("holders are unreadable: %v", s.Problems)
				}
				return s.find(server.pid).Stdin.Holders
			}
			both := []int{os.Getpid(), helper.pid}
			slices.Sort(both)
			if got := holders(); !slices.Equal(got, both) {
				t.Errorf("held by %v, want %v", got, both)
			}
			ours.Close()
			if got := holders(); !slices.Equal(got, []int{helper.pid}) {
				t.Errorf("held by %v, want the helper %d", got, helper.pid)
			}
			kill(t, helper.pid)
			eventually(t, "closed after the helper's end", func() bool {
				return examined(t, server.pid).Stdin.Peer == PeerClosed
			})
			if got := holders(); got != nil {
				t.Errorf("a closed stdin is held by %v", got)
			}
		})
	}
}

// The client of a server under a subreaper is killed: the server has a living parent that is not
// PID 1, and nobody to talk to.
func TestOrphanOfSubreaper(t *testing.T) {
	for kind, stdin := range map[string]StdinType{"pipe": StdinPipe, "socketpair": StdinSocket} {
		t.Run(kind, func(t *testing.T) {
			reaper := startChild(t, "subreaper "+kind, nil)
			client, server := reaper.number(0), reaper.number(1)
			defer kill(t, server)
			wantStdin(t, examined(t, server), Stdin{Type: stdin, Peer: PeerOpen})
			kill(t, client)
			eventually(t, "adopted", func() bool { return examined(t, server).PPID == reaper.pid })
			wantStdin(t, examined(t, server), Stdin{Type: stdin, Peer: PeerClosed})
		})
	}
}

func TestStoppedProcess(t *testing.T) {
	server, ours := startServer(t, "pipe", "stubborn")
	if err := unix.Kill(server.pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "stopped", func() bool { return examined(t, server.pid).State == "T" })
	wantStdin(t, examined(t, server.pid), Stdin{Type: StdinPipe, Peer: PeerOpen})
	ours.Close()
	wantStdin(t, examined(t, server.pid), Stdin{Type: StdinPipe, Peer: PeerClosed})
}

// Looking at a server takes nothing from its wire.
func TestLookingDisturbsNobody(t *testing.T) {
	server, ours := startServer(t, "pipe", "stubborn")
	s := takeTable(t)
	for i := range 200 {
		if i%20 == 0 {
			fmt.Fprintln(ours, i)
		}
		Examine(t.Context(), s, []int{server.pid}, patient)
		wantStdin(t, s.find(server.pid), Stdin{Type: StdinPipe, Peer: PeerOpen})
		if i%20 == 0 {
			if got, want := server.line(), "answer to "+strconv.Itoa(i); got != want {
				t.Fatalf("the server says %q, want %q", got, want)
			}
		}
	}
}

// What one process shows is never attached to another that has its PID.
func TestPIDThatChangedHands(t *testing.T) {
	server, _ := startServer(t, "pipe", "stubborn")
	s := takeTable(t)
	p := s.find(server.pid)
	p.Start-- // as if the snapshot had seen an earlier process
	before, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	Examine(t.Context(), s, []int{server.pid}, ExamineOptions{Deadline: time.Minute})
	Weigh(t.Context(), s, []int{server.pid}, ExamineOptions{Deadline: time.Minute})
	if after, err := json.Marshal(p); err != nil || string(after) != string(before) {
		t.Errorf("facts of another process were attached: %s, %v", after, err)
	}
	p.Stdin = &Stdin{Type: StdinPipe, Peer: PeerOpen}
	Holders(t.Context(), s, []int{server.pid}, patient)
	if p.Stdin.Holders != nil {
		t.Errorf("holders of another process were attached: %v", p.Stdin.Holders)
	}
}

func TestProcessThatIsGone(t *testing.T) {
	cmd := command("stay")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := takeTable(t)
	cmd.Process.Kill()
	cmd.Wait()
	p := s.find(cmd.Process.Pid)
	Examine(t.Context(), s, []int{p.PID, p.PID, 1 << 22}, patient)
	if p.Stdin != nil || p.Listen != nil || p.Cgroup != "" || len(p.Unreadable) > 0 || len(s.Problems) > 0 {
		t.Errorf("a process that is gone shows %+v, problems %v", p, s.Problems)
	}
}

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

func TestExamineAll(t *testing.T) {
	dir := t.TempDir()
	c := startChild(t, "stay", func(cmd *exec.Cmd) {
		cmd.Dir = dir
		cmd.Env = append(cmd.Env, "CLAUDECODE=1", "name=of-nobody", "GITHUB_TOKEN=secret")
	})
	s := takeTable(t)
	s.Host.MemoryTotalBytes = 0 // so that the swap is asked for on a machine without any
	Examine(context.Background(), s, []int{c.pid}, ExamineOptions{Deadline: time.Minute})
	Weigh(context.Background(), s, []int{c.pid}, ExamineOptions{Deadline: time.Minute})
	p := s.find(c.pid)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if p.CWD != dir || p.Exe != exe {
		t.Errorf("cwd %q exe %q, want %q %q", p.CWD, p.Exe, dir, exe)
	}
	if p.Cgroup == "" {
		t.Error("no control group")
	}
	if len(p.Env) == 0 || p.Env["CLAUDECODE"] != "1" {
		t.Errorf("env %v", p.Env)
	}
	for name := range p.Env {
		if !slices.Contains(EnvNames, name) || name == "name" {
			t.Errorf("env holds %q", name)
		}
	}
	if p.SwapBytes == nil || p.PSSBytes == nil || *p.PSSBytes <= 0 || *p.PSSBytes > p.RSS() {
		t.Errorf("swap %v, pss %v of rss %d", p.SwapBytes, p.PSSBytes, p.RSS())
	}
	if len(p.Unreadable) > 0 {
		t.Errorf("unreadable: %v", p.Unreadable)
	}
}
