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

// takeTable takes the process table.
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

func TestStdinWithoutPeer(t *testing.T) {
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

// Examining a server takes nothing from its stdin.
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
	ReadPSS(t.Context(), s, []int{server.pid}, ExamineOptions{Deadline: time.Minute})
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

func TestExamineAll(t *testing.T) {
	dir := t.TempDir()
	c := startChild(t, "stay", func(cmd *exec.Cmd) {
		cmd.Dir = dir
		cmd.Env = append(cmd.Env, "CLAUDECODE=1", "name=of-nobody", "GITHUB_TOKEN=secret")
	})
	s := takeTable(t)
	s.Host.MemoryTotalBytes = 0 // so that the swap is asked for on a machine without any
	Examine(context.Background(), s, []int{c.pid}, ExamineOptions{Deadline: time.Minute})
	ReadPSS(context.Background(), s, []int{c.pid}, ExamineOptions{Deadline: time.Minute})
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
		if !slices.Contains(envNames, name) || name == "name" {
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
