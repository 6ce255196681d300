package scan

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// locking starts a child that tries to lock the file.
func locking(tr troupe, path string) actor {
	tr.t.Helper()
	return tr.start("locking", func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, lockVar+"="+path) })
}

// wantLocked checks that somebody else has the lock, and is named.
func wantLocked(t *testing.T, path string, pid int) {
	t.Helper()
	l, err := lockAt(path)
	if err == nil {
		l.Close()
	}
	if want := fmt.Sprintf("%v (pid %d)", ErrLocked, pid); !errors.Is(err, ErrLocked) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestLockTwoProcesses(t *testing.T) {
	tr, path := newTroupe(t), filepath.Join(t.TempDir(), "lock")
	holder := locking(tr, path)
	wantLocked(t, path, holder.pid)
	second := locking(tr, path)
	if want := fmt.Sprintf("refused: %v (pid %d)", ErrLocked, holder.pid); strings.Join(second.said, " ") != want {
		t.Errorf("the second says %q, want %q", second.said, want)
	}
	holder.stop()
	wantLocked(t, path, holder.pid)
	holder.cmd.Process.Signal(unix.SIGCONT)
	fmt.Fprintln(holder.in)
	if said := holder.line(); said != "released" {
		t.Errorf("%q", said)
	}

	l, err := lockAt(path)
	if err != nil {
		t.Fatal(err)
	}
	third := locking(tr, path)
	if want := fmt.Sprintf("refused: %v (pid %d)", ErrLocked, os.Getpid()); strings.Join(third.said, " ") != want {
		t.Errorf("the third says %q, want %q", third.said, want)
	}
	l.Close()
	if fourth := locking(tr, path); fourth.said[0] != "locked" {
		t.Errorf("the fourth says %q", fourth.said)
	}
}

// A holder that is killed leaves its PID in the file, and no lock.
func TestLockOfKilled(t *testing.T) {
	tr, path := newTroupe(t), filepath.Join(t.TempDir(), "lock")
	holder := locking(tr, path)
	wantLocked(t, path, holder.pid)
	kill(t, holder.pid)
	holder.cmd.Wait()
	if content, err := os.ReadFile(path); err != nil || string(content) != fmt.Sprint(holder.pid) {
		t.Errorf("the file: %q, %v", content, err)
	}
	second := locking(tr, path)
	if second.said[0] != "locked" {
		t.Errorf("the second says %q", second.said)
	}
	wantLocked(t, path, second.pid)
}

// A program that the holder starts does not keep the lock.
func TestLockIsNotInherited(t *testing.T) {
	tr, path := newTroupe(t), filepath.Join(t.TempDir(), "lock")
	l, err := lockAt(path)
	if err != nil {
		t.Fatal(err)
	}
	tr.start("server", nil)
	l.Close()
	if l, err = lockAt(path); err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// TestLockNoRoom: a file system that takes no file says so; one that takes no content is enough.
func TestLockNoRoom(t *testing.T) {
	needRoot(t)
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
			cmd.Env = append(os.Environ(), childVar+"=locking", lockVar+"="+dir+"/lock")
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
			said = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(said), "ready "), "refused: ")
			if want := strings.ReplaceAll(test.want, "DIR", dir); said != want {
				t.Errorf("%q, want %q", said, want)
			}
		})
	}
}
