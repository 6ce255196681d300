package scan

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What another user, another namespace or a stuck kernel withholds is unknown.

var nobody = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}

// needRoot skips, loudly, where a test cannot become another user or enter a namespace.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: only root can become another user or enter a namespace, so nothing was tried there")
	}
}

// examinedByNobody is what the user nobody sees of a process.
func examinedByNobody(t *testing.T, pid int) *Process {
	t.Helper()
	cmd := command("examine " + strconv.Itoa(pid))
	cmd.SysProcAttr, cmd.Dir, cmd.Stderr = nobody, "/", os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p := new(Process)
	if err := json.Unmarshal(out, p); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return p
}

// A user who may not look at a process does not know, and never says "closed".
func TestOtherUsersProcessIsUnknown(t *testing.T) {
	needRoot(t)
	server, ours := startServer(t, "pipe", "stubborn")
	ours.Close()
	p := examinedByNobody(t, server.pid)
	if p.Stdin != nil || p.Listen != nil || p.InboundConnections != nil || p.Env != nil || p.Exe != "" {
		t.Errorf("nobody sees of root's process: %+v", p)
	}
	for _, field := range []string{"stdin", "listen", "cwd", "exe", "env"} {
		if !slices.Contains(p.Unreadable, field) {
			t.Errorf("%q is not said to be unreadable: %v", field, p.Unreadable)
		}
	}
	if p.Cgroup == "" {
		t.Error("the control group is for everybody to see")
	}
}

// The stdin of a server that runs as another user is a pipe that only the user who made it can open.
func TestPipeOfAnotherUserIsUnknown(t *testing.T) {
	needRoot(t)
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	server := startChild(t, "stay", func(cmd *exec.Cmd) {
		cmd.Stdin, cmd.SysProcAttr, cmd.Dir = theirs, nobody, "/"
	})
	ours.Close()
	wantStdin(t, examinedByNobody(t, server.pid), Stdin{Type: StdinPipe, Peer: PeerUnknown})
}

// The user nobody cannot see that a process of root holds the other end, and says so.
func TestHoldersOfAnotherUserAreMissed(t *testing.T) {
	needRoot(t)
	server := startChild(t, "stay", func(cmd *exec.Cmd) {
		theirs, ours, err := newStdin("socketpair")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { theirs.Close(); ours.Close() })
		cmd.Stdin, cmd.SysProcAttr, cmd.Dir = theirs, nobody, "/"
	})
	p := examinedByNobody(t, server.pid)
	wantStdin(t, p, Stdin{Type: StdinSocket, Peer: PeerOpen})
	if p.Stdin != nil && (p.Stdin.Holders == nil || len(p.Stdin.Holders) > 0) {
		t.Errorf("nobody sees it held by %#v, want an empty list", p.Stdin.Holders)
	}
	if !slices.Contains(p.Unreadable, "holders") {
		t.Errorf("the missing holders are not mentioned: %v", p.Unreadable)
	}
}

// In another network namespace a dead socket cannot be told from one that we do not see, while a
// pipe is the same everywhere.
func TestAnotherNetworkNamespace(t *testing.T) {
	needRoot(t)
	for kind, want := range map[string]Stdin{
		"pipe":       {Type: StdinPipe, Peer: PeerClosed},
		"socketpair": {Type: StdinSocket, Peer: PeerUnknown},
	} {
		t.Run(kind, func(t *testing.T) {
			theirs, ours, err := newStdin(kind)
			if err != nil {
				t.Fatal(err)
			}
			defer theirs.Close()
			server := startChild(t, "serve unix @elsewhere", func(cmd *exec.Cmd) {
				cmd.Stdin = theirs
				cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
			})
			ours.Close()
			p := examined(t, server.pid)
			wantStdin(t, p, want)
			if p.Listen != nil || p.InboundConnections != nil || !slices.Contains(p.Unreadable, "listen") {
				t.Errorf("listens on %#v, unreadable %v", p.Listen, p.Unreadable)
			}
		})
	}
}

// procTree makes a procfs of files, with one process per PID.
func procTree(t *testing.T, pids ...int) string {
	t.Helper()
	root := t.TempDir()
	for _, pid := range pids {
		dir := filepath.Join(root, strconv.Itoa(pid))
		if err := os.MkdirAll(filepath.Join(dir, "fd"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string]string{
			"stat":    strconv.Itoa(pid) + " (node) S 1 7 7 0 -1 4194304 0 0 0 0 1 2 0 0 20 0 11 0 500 1000 100 18446744073709551615 0\n",
			"cgroup":  "0::/user.slice\n",
			"status":  "Name:\tnode\nVmSwap:\t    2048 kB\n",
			"environ": "CLAUDECODE=1\x00SECRET=x\x00",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for name, target := range map[string]string{"cwd": "/work", "exe": "/usr/bin/node", "fd/0": "/dev/pts/4"} {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func TestAnotherRoot(t *testing.T) {
	root := procTree(t, 10)
	s := &Snapshot{Processes: []Process{{PID: 10, Start: 500}}}
	Examine(t.Context(), s, []int{10}, ExamineOptions{Root: root, Deadline: time.Minute})
	p := &s.Processes[0]
	wantStdin(t, p, Stdin{Type: StdinTTY})
	if p.CWD != "/work" || p.Exe != "/usr/bin/node" || p.Cgroup != "/user.slice" || p.Swap() != 2048<<10 || len(p.Env) != 1 {
		t.Errorf("%+v", p)
	}
	if len(s.Problems) > 0 || p.Unreadable != nil {
		t.Errorf("problems %v, unreadable %v", s.Problems, p.Unreadable)
	}

	Examine(t.Context(), s, []int{10}, ExamineOptions{Root: filepath.Join(root, "none")})
	if len(s.Problems) != 1 {
		t.Errorf("no procfs, and the problems are %v", s.Problems)
	}
}

// Processes whose memory is stuck in the kernel cost the deadline and their environment, and nobody's
// evidence: a pipe that nobody writes to plays the file that does not answer.
func TestStuckProcesses(t *testing.T) {
	var pids []int
	s := new(Snapshot)
	for pid := 10; pid < 40; pid++ {
		pids = append(pids, pid)
		s.Processes = append(s.Processes, Process{PID: pid, Start: 500})
	}
	root := procTree(t, pids...)
	for _, pid := range pids[:20] {
		environ := filepath.Join(root, strconv.Itoa(pid), "environ")
		if err := os.Remove(environ); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(environ, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			// Let the abandoned reads end.
			if fd, err := unix.Open(environ, unix.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
				unix.Close(fd)
			}
		})
	}
	Examine(t.Context(), s, pids, ExamineOptions{Root: root, Deadline: 3 * time.Second})
	for i := range s.Processes {
		p := &s.Processes[i]
		wantStdin(t, p, Stdin{Type: StdinTTY})
		unread := slices.Contains(p.Unreadable, "env")
		if i < 20 && !unread || (p.Env == nil) != unread {
			t.Errorf("pid %d: env %v, unreadable %v", p.PID, p.Env, p.Unreadable)
		}
	}
	if len(s.Problems) != 1 || !strings.Contains(s.Problems[0], "env of pid 10, 11") {
		t.Errorf("problems %q", s.Problems)
	}
}

// Processes may end at any moment while they are looked at, which is nobody's problem.
func TestManyProcessesThatEnd(t *testing.T) {
	var commands []*exec.Cmd
	var pids []int
	for range 20 {
		cmd := command("stay")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		commands, pids = append(commands, cmd), append(pids, cmd.Process.Pid)
	}
	s := takeTable(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, cmd := range commands {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}()
	for range 5 {
		Examine(t.Context(), s, pids, ExamineOptions{Deadline: time.Minute})
		ReadPSS(t.Context(), s, pids, ExamineOptions{Deadline: time.Minute})
		Holders(t.Context(), s, pids, patient)
	}
	<-done
	if len(s.Problems) > 0 {
		t.Errorf("problems %v", s.Problems)
	}
}
