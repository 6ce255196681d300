package scan

import (
	"bytes"
	"fmt"
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

	"mcpdoctor/scan/procfs"
)

// A procRoot is a tree that looks like a procfs mount. Its files belong to whoever runs the test.
type procRoot struct {
	t    testing.TB
	path string
}

// booted is when the machine of a procRoot started: it has run for a day at noon.
var booted = noon.Add(-24 * time.Hour)

// newProcRoot makes the tree of such a machine.
func newProcRoot(t testing.TB) procRoot {
	r := procRoot{t: t, path: t.TempDir()}
	r.file("stat", fmt.Sprintf("cpu  1 2 3\nbtime %d\n", booted.Unix()))
	r.file("meminfo", "MemTotal: 1000 kB\nMemAvailable: 500 kB\nSwapTotal: 200 kB\nSwapFree: 100 kB\n")
	r.file("sys/kernel/hostname", "box\n")
	r.file("sys/kernel/osrelease", "6.1.0-amd64\n")
	r.file("self/mountinfo", "24 23 0:21 / "+r.path+" rw - proc proc rw\n")
	r.link("self/ns/pid", initPIDNamespace)
	return r
}

// file writes a file, with the directories above it.
func (r procRoot) file(path, content string) {
	r.t.Helper()
	path = filepath.Join(r.path, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r procRoot) link(path, target string) {
	r.t.Helper()
	path = filepath.Join(r.path, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	os.Remove(path)
	if err := os.Symlink(target, path); err != nil {
		r.t.Fatal(err)
	}
}

// process adds a process that has run since a second after the boot.
func (r procRoot) process(pid, ppid int, name, state, cmdline string) {
	r.t.Helper()
	r.file(fmt.Sprintf("%d/stat", pid), fmt.Sprintf("%d (%s) %s %d %d %d 34819 -1 4194304 0 0 0 0 150 100 0 0 20 0 1 0 100 4096 2 0 0 0\n", pid, name, state, ppid, pid, pid))
	r.file(fmt.Sprintf("%d/cmdline", pid), cmdline)
}

// block puts a FIFO in place of a file: opening it blocks, like a read in the kernel that does not
// come back, until the test ends.
func (r procRoot) block(path string) {
	r.t.Helper()
	path = filepath.Join(r.path, path)
	os.Remove(path)
	if err := unix.Mkfifo(path, 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK, 0); err == nil {
			unix.Close(fd)
		}
	})
}

// take takes the tree's table.
func (r procRoot) take(deadline time.Duration) *Snapshot {
	r.t.Helper()
	s, err := Take(r.t.Context(), Options{Root: r.path, Now: noon, Deadline: deadline})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// wantProblems compares the problems with the parts that they must hold, in order.
func wantProblems(t *testing.T, s *Snapshot, parts ...string) {
	t.Helper()
	ok := len(s.Problems) == len(parts)
	for i := 0; ok && i < len(parts); i++ {
		ok = strings.Contains(s.Problems[i], parts[i])
	}
	if !ok {
		t.Errorf("problems %q, want %q", s.Problems, parts)
	}
}

func TestTakeTree(t *testing.T) {
	r := newProcRoot(t)
	r.process(1, 0, "systemd", "S", "/sbin/init\x00splash\x00")
	r.process(310, 1, "npm exec a) S 9", "S", "npm exec a\x00\x00\x00")
	r.process(311, 310, "node", "Z", "")
	r.file("2/stat", "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 0 0 0\n")
	r.file("sys/9/stat", "not a process")
	r.file("12x/stat", "not a process")

	s := r.take(0)
	me := os.Geteuid()
	names := map[int]string{} // what the passwd of this machine says
	for _, p := range s.Processes {
		names[p.PID] = p.User
	}
	row := func(pid, ppid int, name, state string, args ...string) Process {
		return Process{
			PID: pid, PPID: ppid, Start: 100, Started: booted.Add(time.Second), Name: name, Args: args, User: names[pid], UID: &me,
			State: state, TTY: "pts/3", PGID: pid, SID: pid, RSSBytes: ptr(int64(2 * os.Getpagesize())), CPUSeconds: ptr(2.5),
		}
	}
	want := &Snapshot{
		Schema: Schema, Kind: Kind, Taken: noon,
		Host: Host{
			OS: "linux", Name: "box", UID: &me, UptimeSeconds: 86400,
			MemoryTotalBytes: 1000 << 10, MemoryAvailableBytes: 500 << 10, SwapTotalBytes: 200 << 10, SwapFreeBytes: 100 << 10,
		},
		Processes: []Process{
			row(1, 0, "systemd", "S", "/sbin/init", "splash"),
			{PID: 2, Name: "kthreadd", Started: booted, User: names[2], UID: &me, State: "S", TTY: "-", RSSBytes: ptr[int64](0), CPUSeconds: ptr(0.0)},
			row(310, 1, "npm exec a) S 9", "S", "npm exec a"),
			row(311, 310, "node", "Z"),
		},
	}
	if g, w := asJSON(t, s), asJSON(t, want); g != w {
		t.Errorf("got  %s\nwant %s", g, w)
	}
}

func TestTakeBlocked(t *testing.T) {
	r := newProcRoot(t)
	r.process(1, 0, "init", "S", "init\x00")
	for pid := 10; pid < 20; pid++ { // more than there are workers
		r.process(pid, 1, "stuck", "D", "")
		r.block(fmt.Sprintf("%d/cmdline", pid))
	}
	r.process(30, 1, "dark", "S", "")
	r.block("30/stat")
	for pid := 40; pid < 100; pid++ {
		r.process(pid, 1, "node", "S", "node\x00server.mjs\x00")
	}

	s := r.take(200 * time.Millisecond)
	if len(s.Processes) != 72 {
		t.Errorf("%d processes, want 72", len(s.Processes))
	}
	for _, p := range s.Processes {
		switch {
		case p.PID >= 10 && p.PID < 20:
			if p.Name != "stuck" || p.State != "D" || p.Start != 100 || !slices.Equal(p.Unreadable, []string{"args"}) {
				t.Errorf("%s", asJSON(t, p))
			}
		case p.PID == 30:
			if p.PPID != UnknownPPID || !slices.Contains(p.Unreadable, "start") {
				t.Errorf("%s", asJSON(t, p))
			}
		case p.PID >= 40 && !slices.Equal(p.Args, []string{"node", "server.mjs"}), p.Unreadable != nil:
			t.Errorf("%s", asJSON(t, p))
		}
	}
	wantProblems(t, s, "pid 10, 11, 12, 13, 14 and 6 more did not return within 200ms")
}

// TestTakeMostlyBlocked: when more reads block than threads may be lost, the rest is done without
// command lines instead of not at all.
func TestTakeMostlyBlocked(t *testing.T) {
	r := newProcRoot(t)
	r.process(1, 0, "init", "S", "init\x00")
	for pid := 10; pid < 200; pid++ {
		r.process(pid, 1, "stuck", "D", "")
		r.block(fmt.Sprintf("%d/cmdline", pid))
	}
	s := r.take(100 * time.Millisecond)
	if len(s.Processes) != 191 {
		t.Errorf("%d processes, want 191", len(s.Processes))
	}
	for _, p := range s.Processes[1:] {
		if p.Name != "stuck" || p.PPID != 1 || !slices.Equal(p.Unreadable, []string{"args"}) {
			t.Errorf("%s", asJSON(t, p))
		}
	}
	wantProblems(t, s, "did not return within 100ms", "were left unread, since reading the others took too long")
}

func TestTakeVanishedAndRefused(t *testing.T) {
	r := newProcRoot(t)
	r.process(1, 0, "init", "S", "init\x00")
	r.process(10, 1, "gone", "S", "x")
	os.Remove(filepath.Join(r.path, "10/stat"))
	r.process(11, 1, "gone", "S", "x")
	os.Remove(filepath.Join(r.path, "11/cmdline"))
	r.process(12, 1, "closed", "S", "x")
	r.refuse("12/cmdline")
	r.process(13, 1, "closed", "S", "x")
	r.refuse("13/stat")
	r.process(14, 1, "odd", "S", "x")
	r.file("14/stat", "14 (odd")

	s := r.take(0)
	var seen []string
	for _, p := range s.Processes {
		seen = append(seen, fmt.Sprint(p.PID, p.Unreadable))
	}
	want := []string{"1 []", "12 [args]", "13 [ppid start name state args]", "14 [ppid start name state args]"}
	if !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
	wantProblems(t, s, "nothing about pid 13, 14 may be read", "the command lines of pid 12 may not be read")
}

// refuse puts a directory in place of a file, which nobody can read, root included.
func (r procRoot) refuse(path string) {
	r.t.Helper()
	path = filepath.Join(r.path, path)
	os.Remove(path)
	if err := os.Mkdir(path, 0o755); err != nil {
		r.t.Fatal(err)
	}
}

func TestTakeLongCommandLine(t *testing.T) {
	r := newProcRoot(t)
	r.process(1, 0, "init", "S", "init\x00"+strings.Repeat("word\x00", 10000)) // 50 kB: whole
	r.process(7, 1, "long", "S", "long\x00"+strings.Repeat("x", 1<<20))
	r.process(8, 1, "short", "S", "short\x00")
	s := r.take(0)
	if n := len(s.find(1).Args); n != 10001 {
		t.Errorf("%d arguments, want 10001", n)
	}
	if args := s.find(7).Args; len(args) != 2 || len(args[1]) != maxCmdline-len("long\x00") {
		t.Errorf("%d arguments", len(args))
	}
	if args := s.find(8).Args; !slices.Equal(args, []string{"short"}) {
		t.Errorf("after the long one: %q", args)
	}
	wantProblems(t, s, "pid 7 are longer than 128 KiB and were cut")
}

func TestTakeHostProblems(t *testing.T) {
	r := newProcRoot(t)
	r.process(310, 1, "node", "S", "node\x00")
	wantProblems(t, r.take(0), "pid 1 is not in "+r.path)

	r.file("self/mountinfo", "24 23 0:21 / "+r.path+" rw - proc proc rw,hidepid=invisible\n")
	wantProblems(t, r.take(0), "is mounted with hidepid=invisible")

	r.process(1, 0, "init", "S", "init\x00")
	os.Remove(filepath.Join(r.path, "stat"))
	s := r.take(0)
	if p := s.find(310); !p.Started.IsZero() || p.Start != 100 || s.Host.UptimeSeconds != 0 {
		t.Errorf("%s", asJSON(t, s))
	}
	if len(s.Problems) == 0 || !strings.Contains(s.Problems[0], "does not say when the machine started") {
		t.Errorf("problems %q", s.Problems)
	}
}

func TestTakeContainer(t *testing.T) {
	const other = "pid:[4026532201]"
	kthreadd := "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 0 0 0\n"
	tests := []struct {
		name, namespace, release, second string
		want                             bool
	}{
		{"a machine", initPIDNamespace, "6.1.0", kthreadd, false},
		{"a machine's procfs in a container", other, "6.1.0", kthreadd, false},
		{"a machine that hides", initPIDNamespace, "6.1.0", "", false},
		{"a container", other, "6.1.0", "", true},
		{"a distribution in WSL", other, "5.15.153.1-microsoft-standard-WSL2", "", false},
	}
	for _, test := range tests {
		r := newProcRoot(t)
		r.process(1, 0, "init", "S", "init\x00")
		r.link("self/ns/pid", test.namespace)
		r.file("sys/kernel/osrelease", test.release)
		if test.second != "" {
			r.file("2/stat", test.second)
		}
		if got := r.take(0).Host.Container; got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

func TestTakeNothing(t *testing.T) {
	empty := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(empty, "none"): "cannot list the processes: open " + empty + "/none: no such file or directory",
		empty:                        "is it a procfs mount?",
	} {
		if _, err := Take(t.Context(), Options{Root: path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestTakeFamily looks at real relatives: a child, an orphan and a zombie.
func TestTakeFamily(t *testing.T) {
	child := startChild(t, "stay", func(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} })
	reaper := startChild(t, "subreaper pipe", nil)
	client, server := reaper.number(0), reaper.number(1)
	t.Cleanup(func() { kill(t, server) })
	zombie := exec.Command("/proc/self/exe")
	zombie.Env = append(os.Environ(), childVar+"=unknown") // it ends at once, and nobody waits for it
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { zombie.Wait() })
	kill(t, client)

	// The kernel needs a moment for the last two.
	var s *Snapshot
	for s == nil || s.find(client) != nil || s.find(zombie.Process.Pid).State != "Z" {
		time.Sleep(time.Millisecond)
		var err error
		if s, err = Take(t.Context(), Options{Now: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	if p := s.find(child.pid); p == nil || p.PPID != os.Getpid() || p.SID != child.pid || p.PGID != child.pid || p.TTY != "-" || !slices.Equal(p.Args, []string{"/proc/self/exe"}) {
		t.Errorf("the child: %s", asJSON(t, p))
	}
	if p := s.find(server); p == nil || p.PPID != reaper.pid {
		t.Errorf("the orphan: %s, want the parent %d", asJSON(t, p), reaper.pid)
	}
	if p := s.find(zombie.Process.Pid); p.PPID != os.Getpid() || p.Args != nil || p.Unreadable != nil || p.Name == "" {
		t.Errorf("the zombie: %s", asJSON(t, p))
	}
	if me, p := s.find(os.Getpid()), s.find(child.pid); p.Start < me.Start || p.Started.Before(me.Started) {
		t.Errorf("the child began at %d, its parent at %d", p.Start, me.Start)
	}
}

// TestTakeOwnerOfUndumpable: what belongs to root in /proc may be anybody's process.
func TestTakeOwnerOfUndumpable(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: only root can start a process of another user, so nothing was tried with one")
	}
	const nobody = 65534
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	// A program that its user may run but not read cannot be dumped.
	dir, err := os.MkdirTemp("", "undumpable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, program, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(secret, "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })

	var file unix.Stat_t
	if err := unix.Stat("/proc/"+strconv.Itoa(cmd.Process.Pid)+"/stat", &file); err != nil || file.Uid != 0 {
		t.Fatalf("the file belongs to %d, %v: the test has lost its point", file.Uid, err)
	}
	s, err := Take(t.Context(), Options{Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if p := s.find(cmd.Process.Pid); p == nil || p.UID == nil || *p.UID != nobody {
		t.Errorf("%s", asJSON(t, p))
	}
}

// TestReaderBuffer: each file is read whole, whatever the one before it was.
func TestReaderBuffer(t *testing.T) {
	dir := t.TempDir()
	r := procfs.Reader{Dir: unix.AT_FDCWD, Buf: make([]byte, 16)}
	for _, size := range []int{0, 15, 16, 17, 1000, 3, 4096} {
		path := filepath.Join(dir, strconv.Itoa(size))
		want := bytes.Repeat([]byte{'x'}, size)
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := r.ReadFile(path, 1<<20, nil); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %d, %v", size, len(got), err)
		}
	}
	if got, err := r.ReadFile(filepath.Join(dir, "4096"), 100, nil); err != nil || len(got) != 100 {
		t.Errorf("with a limit: %d bytes, %v", len(got), err)
	}
}
