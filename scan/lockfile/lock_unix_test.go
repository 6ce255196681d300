//go:build unix

package lockfile

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// The place of the lock is that of the user, whatever the environment says.
func TestLockPath(t *testing.T) {
	want, err := defaultPath()
	places := []string{fmt.Sprintf("/tmp/mcpdoctor-%d.lock", os.Geteuid())}
	if os.Geteuid() == 0 {
		places = append(places, "/run/mcpdoctor.lock", "/var/run/mcpdoctor.lock")
	}
	if err != nil || !slices.Contains(places, want) {
		t.Fatalf("%q, %v", want, err)
	}
	for _, name := range []string{"TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "HOME", "USER"} {
		t.Setenv(name, "/elsewhere")
	}
	if got, err := defaultPath(); err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
}

func TestLockIsClosedOnExec(t *testing.T) {
	l, err := acquire(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	if flags, err := unix.FcntlInt(l.file.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v", flags, err)
	}
	if fi, err := l.file.Stat(); err != nil || fi.Mode() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
}

// TestLockHostile: what others put in the place of the lock is reported, and not touched.
func TestLockHostile(t *testing.T) {
	const precious = "precious"
	link := func(link func(old, new string) error) func(t *testing.T, victim, path string) error {
		return func(t *testing.T, victim, path string) error { return link(victim, path) }
	}
	tests := []struct {
		name  string
		plant func(t *testing.T, victim, path string) error
		want  string
	}{
		{"a symbolic link", link(os.Symlink), "a symbolic link of uid "},
		{"a symbolic link to nothing", func(t *testing.T, victim, path string) error { return os.Symlink(victim+"2", path) }, "a symbolic link of uid "},
		{"a hard link", link(os.Link), "a hard link to another file is there"},
		{"a directory", func(t *testing.T, _, path string) error { return os.Mkdir(path, 0o700) }, "a directory of uid "},
		{"a FIFO", func(t *testing.T, _, path string) error { return unix.Mkfifo(path, 0o666) }, "a FIFO of uid "},
		{"a socket", func(t *testing.T, _, path string) error {
			l, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		}, "a socket of uid "},
		{"a file of another user", func(t *testing.T, _, path string) error {
			if os.Geteuid() != 0 {
				t.Skip("NOT TESTED: only root can make a file of another user, so nothing was tried with one")
			}
			if err := os.WriteFile(path, nil, 0o666); err != nil {
				return err
			}
			return os.Chown(path, 12345, 12345)
		}, "a file of uid 12345 is there, which must be removed first"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "l") // a short one, for the socket
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			if err := os.Chmod(dir, os.ModeSticky|0o777); err != nil { // like /tmp
				t.Fatal(err)
			}
			victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "lock")
			if err := os.WriteFile(victim, []byte(precious), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := test.plant(t, victim, path); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			l, err := acquire(path)
			if err == nil {
				l.Release()
				t.Fatal("it was locked")
			}
			if text := err.Error(); !strings.HasPrefix(text, "cannot lock "+path+": ") || !strings.Contains(text, test.want) || errors.Is(err, ErrLocked) {
				t.Errorf("%q, want %q", err, test.want)
			}
			if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
				t.Errorf("it was touched: %v, %v", after, err)
			}
			if content, err := os.ReadFile(victim); err != nil || string(content) != precious {
				t.Errorf("the file behind it: %q, %v", content, err)
			}
			if _, err := os.Lstat(victim + "2"); err == nil {
				t.Error("the link was followed, and a file made")
			}
		})
	}
}

func TestLockNoDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "lock")
	if _, err := acquire(path); err == nil || err.Error() != "cannot lock "+path+": no such file or directory" {
		t.Error(err)
	}
}

// Odd content of the file is not reported as a PID.
func TestLockOddContent(t *testing.T) {
	for content, want := range map[string]int{"": 0, "17": 17, "17\n": 17, "x": 0, "-3": 0, strings.Repeat("9", 100): 0} {
		path := filepath.Join(t.TempDir(), "lock")
		l, err := acquire(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = acquire(path)
		text := ErrLocked.Error()
		if want != 0 {
			text += fmt.Sprintf(" (pid %d)", want)
		}
		if !errors.Is(err, ErrLocked) || err.Error() != text {
			t.Errorf("with %q: %v, want %q", content, err, text)
		}
		l.Release()
	}
}

// TestLockRemoved: a file that a cleaner removed between opening and locking is not the lock.
func TestLockRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := openOwn(path, unix.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !hasName(path, f) {
		t.Error("it is there")
	}
	os.Remove(path)
	if hasName(path, f) {
		t.Error("it was removed")
	}
	other, err := openOwn(path, unix.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if hasName(path, f) || !hasName(path, other) {
		t.Error("another file has its name")
	}
}

// TestLockOnlyOne: of many that try at once, one has it at a time.
func TestLockOnlyOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var holders, won atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				l, err := acquire(path)
				if err != nil {
					if !errors.Is(err, ErrLocked) {
						t.Error(err)
					}
					continue
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d have the lock", n)
				}
				won.Add(1)
				holders.Add(-1)
				l.Release()
			}
		})
	}
	all.Wait()
	if won.Load() == 0 {
		t.Error("it was never acquired")
	}
}
