package terminate

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mcpdoctor/scan"
	"mcpdoctor/scan/procfs"
)

// The tests signal real processes: this test binary, started again with a part to play. Some parts are terminated,
// some must be left alone, some terminate others under special conditions.
const childVar = "TERMINATE_TEST_CHILD"

func init() {
	if part := os.Getenv(childVar); part != "" {
		if err := play(strings.Fields(part)); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// play plays a part in a child.
func play(part []string) error {
	args, err := ints(part[1:])
	if err != nil {
		return err
	}
	switch part[0] {
	case "server":
		fmt.Println("ready", os.Getpid())
		stay()
	case "stay":
		fmt.Println("ready")
		stay()
	case "headless": // its first thread exits, the others stay
		fmt.Println("ready")
		go stay()
		unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
	case "stubborn": // a server that ignores SIGTERM
		signal.Ignore(unix.SIGTERM)
		fmt.Println("ready", os.Getpid())
		stay()
	case "forking": // a server that starts another process on SIGTERM
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, unix.SIGTERM)
		fmt.Println("ready", os.Getpid())
		<-asked
		last := command("witness")
		last.Stdin, last.Stdout = os.Stdin, os.Stdout
		return last.Start()
	case "wrapping": // a launcher that stays when its server has exited
		server := command("server")
		if err := server.Start(); err != nil {
			return err
		}
		fmt.Println("ready", os.Getpid(), server.Process.Pid)
		server.Wait()
		stay()
	case "witness": // prints the signals it got for each line it reads, and survives all that can be caught
		return witness()
	case "adopting": // the subreaper of many orphans
		return adopt(args[0])
	case "ending": // terminates processes, in one stage, with and without pidfds
		endAll(args, openers[0].open, openers[1].open)
	case "crowded": // the same with pidfds only, and a limit of four open files
		first, err := os.Open("/dev/null")
		if err != nil {
			return err
		}
		room := uint64(first.Fd()) + 4
		first.Close()
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: room, Max: room}); err != nil {
			return err
		}
		endAll(args, openers[0].open)
	case "blind": // signals a process without a pidfd, when it can no longer read /proc
		h, err := openers[1].open(scan.ID{PID: args[0], Start: int64(args[1])})
		if err != nil {
			return err
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{}); err != nil {
			return err
		}
		fmt.Println(h.Exited(), h.Terminate(), h.Continue(), h.Kill())
	case "inside": // the same, where the PID means another process than in /proc
		// The first start of all takes more PIDs than one: package os tries what the kernel can do, and
		// the runtime starts threads.
		if err := exec.Command("true").Run(); err != nil {
			return err
		}
		if err := nextPID(args[0]); err != nil {
			return err
		}
		other := command("stay")
		if err := other.Start(); err != nil {
			return err
		}
		defer other.Process.Kill()
		if other.Process.Pid != args[0] { // a thread of this one got it
			fmt.Println("taken")
			return nil
		}
		endAll(args, openers[0].open, openers[1].open)
		if h, err := unix.PidfdOpen(other.Process.Pid, 0); err != nil || !lives(h) {
			return fmt.Errorf("the other process has exited (%v)", err)
		}
	default:
		return fmt.Errorf("no such part: %q", part)
	}
	return nil
}

// stay waits to be terminated by a signal.
func stay() {
	for {
		time.Sleep(time.Hour)
	}
}

// command starts this binary in another part.
func command(part string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childVar+"="+part)
	return cmd
}

// ints reads the words that are numbers.
func ints(words []string) (out []int, err error) {
	for _, word := range words {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

func witness() error {
	got := make(chan os.Signal, 100)
	signal.Notify(got, unix.SIGTERM, unix.SIGCONT, unix.SIGHUP, unix.SIGINT, unix.SIGWINCH)
	fmt.Println("ready", os.Getpid())
	seen := "signals:"
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		// Of several that are pending, the kernel delivers the lowest first: after this one, which is
		// above those that are looked for, there is none left.
		unix.Kill(os.Getpid(), unix.SIGWINCH)
		for s := range got {
			if s == unix.SIGWINCH {
				break
			}
			seen += " " + unix.SignalName(s.(unix.Signal))
		}
		fmt.Println(seen)
	}
	stay()
	return nil
}

// adopt starts n processes whose parent exits at once, and waits for them for ever.
func adopt(n int) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	client := exec.Command("sh", "-c", `i=0; while [ $i -lt `+strconv.Itoa(n)+` ]; do sleep 600 >/dev/null 2>&1 & echo $!; i=$((i+1)); done`)
	out, err := client.Output()
	if err != nil {
		return err
	}
	fmt.Println("ready", strings.Join(strings.Fields(string(out)), " "))
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err == unix.ECHILD {
			stay()
		}
	}
}

// endAll terminates the processes that args name by PID and start, each a stage of its own, and prints the outcomes, for
// each way to open them.
func endAll(args []int, ways ...func(scan.ID) (Handle, error)) {
	var g Group
	for i := 0; i+1 < len(args); i += 2 {
		g.Stages = append(g.Stages, []scan.ID{{PID: args[i], Start: int64(args[i+1])}})
	}
	for _, open := range ways {
		for _, f := range Terminate(context.Background(), open, []Group{g}, 0)[0] {
			fmt.Println(f.ID.PID, f.Outcome, f.Err)
		}
	}
}

// nextPID makes the kernel give this PID to the next process or thread of the PID namespace.
func nextPID(pid int) error {
	return os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0)
}

// lives reports whether the process of a pidfd is running.
func lives(pidfd int) bool {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return n == 0 && err == nil
}

// The ways to open a process: normally, and as on a kernel or in a sandbox without pidfds.
var openers = []struct {
	name string
	open func(scan.ID) (Handle, error)
}{
	{"pidfd", Open},
	{"no pidfd", func(id scan.ID) (Handle, error) {
		if err := checkID(id); err != nil {
			return nil, err
		}
		h := &process{id: id}
		if err := h.openWith(func(int, int) (int, error) { return -1, unix.ENOSYS }); err != nil {
			return nil, err
		}
		return h, nil
	}},
}

// eachOpener runs a test for each way to open a process.
func eachOpener(t *testing.T, test func(t *testing.T, open func(scan.ID) (Handle, error))) {
	for _, how := range openers {
		t.Run(how.name, func(t *testing.T) { test(t, how.open) })
	}
}

// idOf returns the identity of a running process.
func idOf(t testing.TB, pid int) scan.ID {
	t.Helper()
	return scan.ID{PID: pid, Start: statOf(t, pid).Start}
}

func statOf(t testing.TB, pid int) procfs.Stat {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	st, err := procfs.ParseStat(b)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// untilZombie waits until all threads of a process have exited.
func untilZombie(t testing.TB, pid int) {
	t.Helper()
	for st := statOf(t, pid); st.State != 'Z' || st.Threads > 1; st = statOf(t, pid) {
		time.Sleep(time.Millisecond)
	}
}

// untilState waits until a process is in a state.
func untilState(t testing.TB, pid int, state byte) {
	t.Helper()
	for statOf(t, pid).State != state {
		time.Sleep(time.Millisecond)
	}
}

// wantThere checks that a process is running.
func wantThere(t testing.TB, ids ...scan.ID) {
	t.Helper()
	for _, id := range ids {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(id.PID) + "/stat")
		if err != nil {
			t.Errorf("pid %d is gone: %v", id.PID, err)
			continue
		}
		if st, err := procfs.ParseStat(b); err != nil || st.Start != id.Start || st.State == 'Z' {
			t.Errorf("pid %d began at %d, not %d, or has exited: %c, %v", id.PID, st.Start, id.Start, st.State, err)
		}
	}
}

// A troupe is the processes of one test. All carry its mark in their environment, by which leftovers are found and
// killed at the end of the test.
type troupe struct {
	t    *testing.T
	mark string
}

const (
	markVar = "TERMINATE_TEST_MARK"
	selfVar = "TERMINATE_TEST_SELF" // this binary, for a shell
)

func newTroupe(t *testing.T) troupe {
	tr := troupe{t, fmt.Sprintf("%s=%d.%s", markVar, os.Getpid(), strings.ReplaceAll(t.Name(), " ", "_"))}
	t.Cleanup(tr.end)
	return tr
}

// end kills all processes with the mark.
func (tr troupe) end() {
	for left := true; left; {
		left = false
		files, _ := filepath.Glob("/proc/[1-9]*/environ")
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil || !slices.Contains(strings.Split(string(b), "\x00"), tr.mark) {
				continue
			}
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err == nil && unix.Kill(pid, unix.SIGKILL) == nil {
				left = true
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// start starts a child of the troupe and waits until it is ready. Its standard input is a pipe, which in
// writes to.
func (tr troupe) start(part string, setup func(*exec.Cmd)) actor {
	tr.t.Helper()
	cmd := command(part)
	theirs, ours, err := os.Pipe()
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.t.Cleanup(func() { theirs.Close(); ours.Close() })
	self, err := os.Executable()
	if err != nil {
		tr.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tr.t.Fatal(err)
	}
	cmd.Stdin = theirs
	cmd.Env = append(cmd.Env, tr.mark, selfVar+"="+self)
	if setup != nil {
		setup(cmd)
	}
	if err := cmd.Start(); err != nil {
		tr.t.Fatal(err)
	}
	tr.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	a := actor{t: tr.t, pid: cmd.Process.Pid, out: bufio.NewScanner(out), cmd: cmd, in: ours}
	words := strings.Fields(a.line())
	if len(words) == 0 || words[0] != "ready" {
		tr.t.Fatalf("the child %q is not ready: %q", part, words)
	}
	a.said = words[1:]
	return a
}

// behindShell puts a shell that does not replace itself before a child.
func behindShell(cmd *exec.Cmd) {
	cmd.Path, cmd.Args, cmd.Err = "/bin/sh", []string{"sh", "-c", `"$` + selfVar + `"; true`}, nil
}

// An actor is a child of a troupe.
type actor struct {
	t    *testing.T
	pid  int
	said []string       // the words after "ready"
	out  *bufio.Scanner // its further output
	cmd  *exec.Cmd
	in   *os.File
}

// line waits for the child's next line.
func (a actor) line() string {
	a.t.Helper()
	if !a.out.Scan() {
		a.t.Fatalf("pid %d said nothing: %v", a.pid, a.out.Err())
	}
	return a.out.Text()
}

// id names the process that was started, ids those it listed when it was ready, without itself.
func (a actor) id() scan.ID { a.t.Helper(); return idOf(a.t, a.pid) }

func (a actor) ids() []scan.ID {
	a.t.Helper()
	var out []scan.ID
	for _, word := range a.said {
		pid, err := strconv.Atoi(word)
		if err != nil {
			a.t.Fatal(err)
		}
		if pid != a.pid {
			out = append(out, idOf(a.t, pid))
		}
	}
	return out
}

// wantUntouched checks that a witness got no signal.
func (a actor) wantUntouched() {
	a.t.Helper()
	fmt.Fprintln(a.in)
	if said := a.line(); said != "signals:" {
		a.t.Errorf("the witness %d got %s", a.pid, said)
	}
}

// kill kills a process that a test started.
func kill(t testing.TB, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil && err != unix.ESRCH {
		t.Fatal(err)
	}
}

// otherUser runs a child as another user.
var otherUser = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}

// needRoot skips, loudly, where a test cannot become another user or enter a namespace.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: only root can become another user or enter a namespace, so nothing was tried there")
	}
}
