package terminate

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan"
)

// mustOpen opens a running process.
func mustOpen(t *testing.T, open func(scan.ID) (Handle, error), id scan.ID) Handle {
	t.Helper()
	h, err := open(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// wantNoOpen checks that a process cannot be opened, and why.
func wantNoOpen(t *testing.T, open func(scan.ID) (Handle, error), id scan.ID, want error) {
	t.Helper()
	h, err := open(id)
	if err == nil {
		h.Close()
	}
	if !errors.Is(err, want) {
		t.Errorf("opening %v: %v, want %v", id, err, want)
	}
}

// wantGone checks that a process that has exited cannot be signalled.
func wantGone(t *testing.T, h Handle) {
	t.Helper()
	if !h.Exited() {
		t.Error("it has not exited")
	}
	for name, act := range map[string]func() error{"terminate": h.Terminate, "continue": h.Continue, "kill": h.Kill} {
		if err := act(); !errors.Is(err, ErrGone) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// untilExited waits until an open process has exited.
func untilExited(h Handle) {
	for !h.Exited() {
		time.Sleep(time.Millisecond)
	}
}

func TestOpenLiving(t *testing.T) {
	eachOpener(t, func(t *testing.T, open func(scan.ID) (Handle, error)) {
		a := newTroupe(t).start("server", nil)
		h := mustOpen(t, open, a.id())
		if h.Exited() {
			t.Error("it lives")
		}
		if err := h.Continue(); err != nil {
			t.Error(err)
		}
		wantThere(t, a.id())
		if err := h.Terminate(); err != nil {
			t.Error(err)
		}
		untilExited(h)
		wantGone(t, h) // as a zombie
		a.cmd.Wait()
		wantGone(t, h)
	})
}

func TestOpenKill(t *testing.T) {
	eachOpener(t, func(t *testing.T, open func(scan.ID) (Handle, error)) {
		h := mustOpen(t, open, newTroupe(t).start("stubborn", nil).id())
		if err := h.Kill(); err != nil {
			t.Error(err)
		}
		untilExited(h)
	})
}

func TestOpenZombie(t *testing.T) {
	eachOpener(t, func(t *testing.T, open func(scan.ID) (Handle, error)) {
		a := newTroupe(t).start("server", nil)
		id := a.id()
		kill(t, a.pid)
		untilZombie(t, a.pid)
		wantNoOpen(t, open, id, ErrGone)
		a.cmd.Wait()
		wantNoOpen(t, open, id, ErrGone)
	})
}

// A process of which only the first thread has exited looks like a zombie and is none.
func TestOpenHeadless(t *testing.T) {
	eachOpener(t, func(t *testing.T, open func(scan.ID) (Handle, error)) {
		a := newTroupe(t).start("headless", nil)
		untilState(t, a.pid, 'Z')
		h := mustOpen(t, open, a.id())
		if h.Exited() {
			t.Error("its other threads live")
		}
		if err := h.Terminate(); err != nil {
			t.Error(err)
		}
		untilExited(h)
		wantGone(t, h)
	})
}

// TestOpenLaw3OtherStart guards law 3: a PID with another start time is another process.
func TestOpenLaw3OtherStart(t *testing.T) {
	eachOpener(t, func(t *testing.T, open func(scan.ID) (Handle, error)) {
		a := newTroupe(t).start("witness", nil)
		for _, d := range []int64{-1, 1} {
			wantNoOpen(t, open, scan.ID{PID: a.pid, Start: a.id().Start + d}, ErrGone)
		}
		a.wantUntouched()
	})
}

// TestOpenLaw3Reused guards law 3 with a PID that the kernel has reused.
func TestOpenLaw3Reused(t *testing.T) {
	needRoot(t)
	eachOpener(t, func(t *testing.T, open func(scan.ID) (Handle, error)) {
		const tries = 50 // others may take the PID
		for range tries {
			tr := newTroupe(t)
			first := tr.start("server", nil)
			old := first.id()
			h := mustOpen(t, open, old)
			kill(t, first.pid)
			first.cmd.Wait()

			second := tr.start("witness", func(*exec.Cmd) {
				if err := nextPID(old.PID); err != nil {
					t.Skipf("NOT TESTED: the kernel does not let the next PID be chosen here, so that no PID was used again: %v", err)
				}
			})
			if second.pid != old.PID || second.id() == old {
				continue
			}
			wantNoOpen(t, open, old, ErrGone)
			wantGone(t, h)
			second.wantUntouched()
			if mustOpen(t, open, second.id()).Exited() {
				t.Error("the second process lives")
			}
			return
		}
		t.Fatalf("the PID went to others %d times", tries)
	})
}

// TestOpenLaw2Unnamed guards law 2: an ID without a start time identifies no process, and PID 1 and mcpdoctor are
// never opened.
func TestOpenLaw2Unnamed(t *testing.T) {
	eachOpener(t, func(t *testing.T, open func(scan.ID) (Handle, error)) {
		a := newTroupe(t).start("witness", nil)
		wantNoOpen(t, open, scan.ID{PID: a.pid}, ErrNoStart)
		a.wantUntouched()
		for _, pid := range []int{1, 0, -1, -a.pid, os.Getpid()} {
			wantNoOpen(t, open, scan.ID{PID: pid, Start: 1}, errProtected)
		}
		wantNoOpen(t, open, idOf(t, os.Getpid()), errProtected)
	})
}

// The number of a thread is not that of a process, though /proc answers to it.
func TestOpenThread(t *testing.T) {
	a := newTroupe(t).start("server", nil)
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", a.pid))
	if err != nil || len(tasks) < 2 {
		t.Fatalf("%q, %v", tasks, err)
	}
	for _, task := range tasks {
		if tid, _ := strconv.Atoi(filepath.Base(task)); tid != a.pid {
			wantNoOpen(t, openers[0].open, idOf(t, tid), ErrGone)
		}
	}
	wantThere(t, a.id())
}

func TestOpenUnusedPID(t *testing.T) {
	eachOpener(t, func(t *testing.T, open func(scan.ID) (Handle, error)) {
		wantNoOpen(t, open, scan.ID{PID: 1 << 30, Start: 1}, ErrGone)
	})
}

// The error of pidfd_open(2) decides how the process is opened, if at all.
func TestOpenPidfdErrors(t *testing.T) {
	a := newTroupe(t).start("witness", nil)
	for answer, want := range map[error]error{
		unix.ENOSYS: nil, unix.EPERM: nil,
		unix.ESRCH: ErrGone, unix.ENOENT: ErrGone, unix.EINVAL: ErrGone,
		unix.EMFILE: unix.EMFILE, unix.ENFILE: unix.ENFILE, unix.ENOMEM: unix.ENOMEM,
	} {
		h := &process{id: a.id()}
		err := h.openWith(func(int, int) (int, error) { return -1, answer })
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%v: %v, want %v", answer, err, want)
		}
	}
	a.wantUntouched()
}

func TestOpenClosed(t *testing.T) {
	eachOpener(t, func(t *testing.T, open func(scan.ID) (Handle, error)) {
		a := newTroupe(t).start("witness", nil)
		h := mustOpen(t, open, a.id())
		h.Close()
		for _, act := range []func() error{h.Terminate, h.Continue, h.Kill} {
			if err := act(); !errors.Is(err, os.ErrClosed) {
				t.Error(err)
			}
		}
		a.wantUntouched()
	})
}

// TestOpenGivesDescriptorsBack: no descriptor stays open, whatever the result.
func TestOpenGivesDescriptorsBack(t *testing.T) {
	tr := newTroupe(t)
	living, ended, zombie := tr.start("witness", nil), tr.start("server", nil), tr.start("server", nil)
	ids := []scan.ID{living.id(), {PID: living.pid, Start: 1}, {PID: living.pid}, {PID: 1 << 30, Start: 1}, ended.id(), zombie.id()}
	kill(t, ended.pid)
	ended.cmd.Wait()
	kill(t, zombie.pid)
	untilZombie(t, zombie.pid)

	before := openPidfds(t)
	for range 50 {
		for _, id := range ids {
			if h, err := Open(id); err == nil {
				h.Exited()
				h.Close()
				h.Close()
			}
		}
	}
	if after := openPidfds(t); after != before {
		t.Errorf("%d pidfds, and %d before", after, before)
	}
	Terminate(t.Context(), openers[0].open, []Group{{Stages: [][]scan.ID{ids}}}, 0) // refused, since one is unnamed
	if after := openPidfds(t); after != before {
		t.Errorf("after Terminate: %d pidfds, and %d before", after, before)
	}
	living.wantUntouched()
}

// openPidfds counts the pidfds of this process, of which package os has some too.
func openPidfds(t *testing.T) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if target, _ := os.Readlink(file); strings.Contains(target, "pidfd") {
			n++
		}
	}
	return n
}

// endedBy runs a part that terminates processes, each a stage, and returns what it printed of each, first with pidfds,
// then without.
func endedBy(t *testing.T, part string, attr *syscall.SysProcAttr, ids ...scan.ID) []string {
	t.Helper()
	for _, id := range ids {
		part += fmt.Sprintf(" %d %d", id.PID, id.Start)
	}
	cmd := command(part)
	cmd.SysProcAttr, cmd.Dir, cmd.Stderr = attr, "/", os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var lines []string
	for in := bufio.NewScanner(strings.NewReader(string(out))); in.Scan(); {
		lines = append(lines, in.Text())
	}
	if len(lines) == 0 {
		t.Fatal("it said nothing")
	}
	return lines
}

// wantSaid checks what was printed, which must not depend on pidfds.
func wantSaid(t *testing.T, got []string, want ...string) {
	t.Helper()
	if want = append(want, want...); !slices.Equal(got, want) {
		t.Errorf("said %q\nwant %q", got, want)
	}
}

// TestTerminateLaw2OtherUser guards law 2: the system itself refuses.
func TestTerminateLaw2OtherUser(t *testing.T) {
	needRoot(t)
	a := newTroupe(t).start("witness", nil)
	wantSaid(t, endedBy(t, "ending", otherUser, a.id()), fmt.Sprint(a.pid, " refused operation not permitted"))
	a.wantUntouched()
}

// TestTerminateCrowded: when there are not enough descriptors for a whole group, none of it is touched.
func TestTerminateCrowded(t *testing.T) {
	tr := newTroupe(t)
	var all []actor
	var ids []scan.ID
	for range 6 {
		a := tr.start("witness", nil)
		all, ids = append(all, a), append(ids, a.id())
	}
	said := endedBy(t, "crowded", nil, ids...)
	for i, id := range ids {
		if i >= len(said) || !strings.HasPrefix(said[i], fmt.Sprint(id.PID, " refused ")) || !strings.HasSuffix(said[i], "too many open files") {
			t.Errorf("said %q", said)
		}
	}
	for _, a := range all {
		a.wantUntouched()
	}
}

// TestOpenLaw3Blind guards law 3 where there are no pidfds: when the identity cannot be compared before
// a signal, none is sent.
func TestOpenLaw3Blind(t *testing.T) {
	a := newTroupe(t).start("witness", nil)
	const none = "too many open files"
	if said := endedBy(t, "blind", nil, a.id()); !slices.Equal(said, []string{strings.Join([]string{"false", none, none, none}, " ")}) {
		t.Errorf("said %q", said)
	}
	a.wantUntouched()
}

// TestTerminateLaw3OtherNamespace guards law 3 where /proc is not that of the own PID namespace: the number
// means one process to it, and another to the kernel.
func TestTerminateLaw3OtherNamespace(t *testing.T) {
	needRoot(t)
	a := newTroupe(t).start("witness", nil)
	said := []string{"taken"}
	for try := 0; said[0] == "taken"; try++ {
		const tries = 50
		if try == tries {
			t.Fatalf("the PID went to others %d times", tries)
		}
		said = endedBy(t, "inside", &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}, a.id())
	}
	wantSaid(t, said, fmt.Sprint(a.pid, " refused ", errOtherNamespace))
	a.wantUntouched()
}

func TestParsePidfd(t *testing.T) {
	for text, want := range map[string]int64{
		"pos:\t0\nflags:\t02000002\nmnt_id:\t15\nPid:\t4711\nNSpid:\t4711 5\n": 4711,
		"Pid:\t-1\nNSpid:\t-1\n": -1,
		"NSpid:\t7\n":            0,
		"Pid:\tx\n":              0,
		"":                       0,
	} {
		if got := parsePidfd([]byte(text)); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// A process that is being debugged is not opened.
func TestOpenTraced(t *testing.T) {
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	child := newTroupe(t).start("stay", nil)
	id := child.id()
	if err := unix.PtraceAttach(child.pid); err != nil {
		t.Skipf("NOT TRIED: opening a process that is being debugged: debugging is not allowed here (%v)", err)
	}
	if _, err := unix.Wait4(child.pid, nil, unix.WALL, nil); err != nil {
		t.Fatal(err)
	}
	if h, err := Open(id); err == nil || !strings.Contains(err.Error(), "debugging or tracing it") {
		t.Errorf("Open says %v", err)
		if err == nil {
			h.Close()
		}
	}
	if err := unix.PtraceDetach(child.pid); err != nil {
		t.Fatal(err)
	}
	h, err := Open(id)
	if err != nil {
		t.Fatal(err)
	}
	h.Close()
}
