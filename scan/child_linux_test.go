package scan

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tests look at real processes: this test binary, started again with a part to play.
const childVar = "SCAN_TEST_CHILD"

func init() {
	if part := os.Getenv(childVar); part != "" {
		if err := play(strings.Fields(part)); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// play is the child's whole life.
func play(part []string) error {
	switch part[0] {
	case "stubborn": // a server that answers each line, and stays when there are no more
		in := bufio.NewScanner(os.Stdin)
		fmt.Println("ready")
		for in.Scan() {
			fmt.Println("answer to", in.Text())
		}
		stay()
	case "moved": // a server that reads from another descriptor than 0, like MCP Python SDK 2
		fd, err := strconv.Atoi(part[1])
		if err != nil {
			return err
		}
		if err := unix.Dup3(0, fd, unix.O_CLOEXEC); err != nil {
			return err
		}
		null, err := os.Open("/dev/null")
		if err != nil {
			return err
		}
		if err := unix.Dup3(int(null.Fd()), 0, 0); err != nil {
			return err
		}
		null.Close()
		fmt.Println("ready")
		stay()
	case "serve": // accepts on a network and address, keeps all connections
		l, err := net.Listen(part[1], part[2])
		if err != nil {
			return err
		}
		fmt.Println("ready", l.Addr())
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			fmt.Fprintln(c, "hello")
			defer c.Close()
		}
	case "receive": // takes datagrams on a network and address
		c, err := net.ListenPacket(part[1], part[2])
		if err != nil {
			return err
		}
		fmt.Println("ready", c.LocalAddr())
		stay()
		runtime.KeepAlive(c)
	case "client": // starts a stubborn server
		theirs, ours, err := newStdin(part[1])
		if err != nil {
			return err
		}
		server := command("stubborn")
		server.Stdin = theirs
		if err := server.Start(); err != nil {
			return err
		}
		theirs.Close()
		fmt.Println("ready", server.Process.Pid)
		if len(part) > 2 && part[2] == "headless" { // its first thread ends, the others go on
			go stay()
			unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
		}
		stay()
		runtime.KeepAlive(ours) // it holds the other end
	case "subreaper": // adopts what its client leaves behind
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return err
		}
		client := command("client " + part[1])
		out, err := client.StdoutPipe()
		if err != nil {
			return err
		}
		if err := client.Start(); err != nil {
			return err
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			return err
		}
		fmt.Println("ready", client.Process.Pid, strings.TrimPrefix(strings.TrimSpace(line), "ready "))
		client.Wait()
		stay()
	case "stay":
		fmt.Println("ready")
		stay()
	case "examine": // looks at a process, and for who holds its stdin, and writes the row
		pid, err := strconv.Atoi(part[1])
		if err != nil {
			return err
		}
		s, err := Take(context.Background(), Options{})
		if err != nil {
			return err
		}
		Examine(context.Background(), s, []int{pid}, patient)
		Holders(context.Background(), s, []int{pid}, patient)
		return json.NewEncoder(os.Stdout).Encode(s.find(pid))
	default:
		return fmt.Errorf("no such part: %q", part)
	}
	return nil
}

// stay waits for the end by a signal.
func stay() {
	for {
		time.Sleep(time.Hour)
	}
}

// command is this binary in another part.
func command(part string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childVar+"="+part)
	return cmd
}

// newStdin makes a "pipe" or a "socketpair", as clients do for the standard input of a server.
func newStdin(kind string) (theirs, ours *os.File, err error) {
	if kind == "pipe" {
		return os.Pipe()
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(pair[0]), "theirs"), os.NewFile(uintptr(pair[1]), "ours"), nil
}

// A child is a process that a test started; it ends with the test.
type child struct {
	t    testing.TB
	pid  int
	said []string       // the words after "ready"
	out  *bufio.Scanner // what it says next
}

// startChild starts a child in a part and waits until it is ready. Its standard input is /dev/null
// unless setup says otherwise.
func startChild(t testing.TB, part string, setup func(*exec.Cmd)) *child {
	t.Helper()
	cmd := command(part)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if setup != nil {
		setup(cmd)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	c := &child{t: t, pid: cmd.Process.Pid, out: bufio.NewScanner(out)}
	words := strings.Fields(c.line())
	if len(words) == 0 || words[0] != "ready" {
		t.Fatalf("the child %q is not ready: %q", part, words)
	}
	c.said = words[1:]
	return c
}

// startServer starts a child with a pipe or socket as stdin and returns our end of it.
func startServer(t testing.TB, kind, part string) (*child, *os.File) {
	t.Helper()
	theirs, ours, err := newStdin(kind)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	t.Cleanup(func() { ours.Close() })
	return startChild(t, part, func(cmd *exec.Cmd) { cmd.Stdin = theirs }), ours
}

// line waits for the child's next line.
func (c *child) line() string {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("pid %d said nothing: %v", c.pid, c.out.Err())
	}
	return c.out.Text()
}

// number is the n-th word the child said when it was ready, which is a number.
func (c *child) number(n int) int {
	c.t.Helper()
	v, err := strconv.Atoi(c.said[n])
	if err != nil {
		c.t.Fatal(err)
	}
	return v
}

// kill ends a process that a child started.
func kill(t testing.TB, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil && err != unix.ESRCH {
		t.Fatal(err)
	}
}
