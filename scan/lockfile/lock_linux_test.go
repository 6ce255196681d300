package lockfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The tests lock in other processes: this test binary, started again.
const lockVar = "LOCKFILE_TEST_LOCK" // the file that a child is to lock

func init() {
	path := os.Getenv(lockVar)
	if path == "" {
		return
	}
	l, err := acquire(path)
	if err != nil {
		fmt.Println("refused:", err)
		os.Exit(0)
	}
	fmt.Println("locked")
	in := bufio.NewReader(os.Stdin)
	in.ReadString('\n') //nolint:errcheck // it ends with the test
	l.Release()
	fmt.Println("released")
	in.ReadString('\n') //nolint:errcheck // as above
	os.Exit(0)
}

// A locker is a child that tries to lock the file.
type locker struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.Writer
	out  *bufio.Scanner
	said string // its first line
}

func startLocker(t *testing.T, path string) *locker {
	t.Helper()
	l := &locker{t: t, cmd: exec.Command("/proc/self/exe")}
	l.cmd.Env = append(os.Environ(), lockVar+"="+path)
	in, err := l.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.cmd.Process.Kill()
		l.cmd.Wait()
	})
	l.in, l.out = in, bufio.NewScanner(out)
	l.said = l.line()
	return l
}

func (l *locker) pid() int { return l.cmd.Process.Pid }

// line waits for the child's next line.
func (l *locker) line() string {
	l.t.Helper()
	if !l.out.Scan() {
		l.t.Fatalf("pid %d said nothing: %v", l.pid(), l.out.Err())
	}
	return l.out.Text()
}

// signal sends a signal to the child.
func (l *locker) signal(s unix.Signal) {
	l.t.Helper()
	if err := l.cmd.Process.Signal(s); err != nil {
		l.t.Fatal(err)
	}
}

// stop stops the child and waits until it has stopped.
func (l *locker) stop() {
	l.t.Helper()
	l.signal(unix.SIGSTOP)
	var status unix.WaitStatus
	if _, err := unix.Wait4(l.pid(), &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		l.t.Fatalf("pid %d did not stop: %v", l.pid(), err)
	}
}

// wantLocked checks that another process has the lock, and is named.
func wantLocked(t *testing.T, path string, pid int) {
	t.Helper()
	l, err := acquire(path)
	if err == nil {
		l.Release()
	}
	if want := fmt.Sprintf("%v (pid %d)", ErrLocked, pid); !errors.Is(err, ErrLocked) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestLockTwoProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holder := startLocker(t, path)
	wantLocked(t, path, holder.pid())
	second := startLocker(t, path)
	if want := fmt.Sprintf("refused: %v (pid %d)", ErrLocked, holder.pid()); second.said != want {
		t.Errorf("the second says %q, want %q", second.said, want)
	}
	holder.stop()
	wantLocked(t, path, holder.pid())
	holder.signal(unix.SIGCONT)
	fmt.Fprintln(holder.in)
	if said := holder.line(); said != "released" {
		t.Errorf("%q", said)
	}

	l, err := acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	third := startLocker(t, path)
	if want := fmt.Sprintf("refused: %v (pid %d)", ErrLocked, os.Getpid()); third.said != want {
		t.Errorf("the third says %q, want %q", third.said, want)
	}
	l.Release()
	if fourth := startLocker(t, path); fourth.said != "locked" {
		t.Errorf("the fourth says %q", fourth.said)
	}
}

// A holder that is killed leaves its PID in the file, and no lock.
func TestLockOfKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holder := startLocker(t, path)
	wantLocked(t, path, holder.pid())
	holder.signal(unix.SIGKILL)
	holder.cmd.Wait()
	if content, err := os.ReadFile(path); err != nil || string(content) != fmt.Sprint(holder.pid()) {
		t.Errorf("the file: %q, %v", content, err)
	}
	second := startLocker(t, path)
	if second.said != "locked" {
		t.Errorf("the second says %q", second.said)
	}
	wantLocked(t, path, second.pid())
}

// A program that the holder starts does not keep the lock.
func TestLockIsNotInherited(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	l.Release()
	if l, err = acquire(path); err != nil {
		t.Fatal(err)
	}
	l.Release()
}

// TestLockNoRoom: a file system that takes no file says so; one that takes no content is enough.
func TestLockNoRoom(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: only root can mount, so nothing was tried on such a file system")
	}
	tests := []struct{ name, options, before, want string }{
		{"read-only", "ro", "true", "cannot lock DIR/lock: read-only file system"},
		{"no inode", "nr_inodes=1", "true", "cannot lock DIR/lock: no space left on device"},
		{"full", "size=8k", "cat /dev/zero >fill 2>/dev/null; true", "locked"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			// The mount is seen by this shell and what it starts only.
			cmd := exec.Command("unshare", "--mount", "sh", "-c", `mount -t tmpfs -o "$1" none "$2" && cd "$2" && { `+test.before+`; } && exec "$3"`, "sh", test.options, dir, self)
			cmd.Env = append(os.Environ(), lockVar+"="+dir+"/lock")
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Skipf("NOT TESTED: unshare(1) is not here, so nothing was tried on such a file system: %v", err)
			}
			said, err := bufio.NewReader(out).ReadString('\n')
			cmd.Process.Kill()
			cmd.Wait()
			if err != nil {
				t.Fatal(err)
			}
			said = strings.TrimPrefix(strings.TrimSpace(said), "refused: ")
			if want := strings.ReplaceAll(test.want, "DIR", dir); said != want {
				t.Errorf("%q, want %q", said, want)
			}
		})
	}
}
