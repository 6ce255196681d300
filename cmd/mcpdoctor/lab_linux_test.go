package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcpdoctor/rules"
)

// The lab starts real gateways, clients and servers, lets them leak or be healthy, and runs the
// real command beside them. This file is the lab itself: installing, starting and ending.
// lab_look_linux_test.go looks at what was started; the scenarios are in the other lab_*_test.go files.
//
// It needs node, npm and python3, and for single scenarios tmux and tini. Where the first three are
// missing it is skipped, or fails if MCPDOCTOR_LAB is "required". -short leaves it out.
//
// A scan sees the whole machine, on which other MCP servers may run and other scenarios do. So each
// scenario asserts only about the processes that it started itself.

// runMark is in the environment of everything that a scenario starts, with a value of its own.
const runMark = "MCPDOCTOR_LAB_RUN"

// labDir holds the packages, the programs and the files of this run; the guard removes it.
var labDir struct {
	sync.Once
	path string // empty when there is no lab
	why  string // then: why not
	runs int
	sync.Mutex
}

// lab is one scenario's share: what it started, and where.
type lab struct {
	t     *testing.T
	root  string // the folder of the packages
	home  string // the HOME of what is started
	dir   string // its working directory
	mark  string // in the environment of what is started
	born  map[int]uint64
	wires []*os.File // the stdin of what it started
	last  *rules.Report
}

// newLab makes a lab, which ends all that was started in it when the test ends. The test is skipped
// where there can be none, and fails there when the environment says that it has to run.
func newLab(t *testing.T) *lab {
	t.Helper()
	if testing.Short() {
		t.Skip("LAB SKIPPED: -short leaves out what starts real servers")
	}
	labDir.Do(installLab)
	if labDir.path == "" {
		unavailable(t, labDir.why)
	}
	labDir.Lock()
	labDir.runs++
	n := labDir.runs
	labDir.Unlock()
	l := &lab{
		t: t, root: filepath.Join(labDir.path, "lab"), home: filepath.Join(labDir.path, fmt.Sprintf("home%d", n)),
		mark: fmt.Sprintf("%s=%s.%d", runMark, filepath.Base(labDir.path), n), born: map[int]uint64{},
	}
	l.dir = l.home
	if err := os.Mkdir(l.home, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.end)
	return l
}

// unavailable ends a test that needs what is not here.
func unavailable(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("MCPDOCTOR_LAB") == "required" {
		t.Fatalf("the lab is required, and %s", why)
	}
	t.Skipf("LAB SKIPPED: %s. NOTHING was tried with real servers here. MCPDOCTOR_LAB=required makes this a failure", why)
}

// need skips a test where a program that it needs is missing.
func (l *lab) need(program string) {
	l.t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		unavailable(l.t, program+" is not installed")
	}
}

// --- installing ------------------------------------------------------------------------------------

func installLab() {
	fail := func(format string, args ...any) { labDir.why = fmt.Sprintf(format, args...) }
	out, err := exec.Command("node", "--version").Output()
	if err != nil {
		fail("node is not installed (%v)", err)
		return
	}
	const leastNode = 20
	version := strings.TrimPrefix(strings.TrimSpace(string(out)), "v")
	if major, _ := strconv.Atoi(strings.Split(version, ".")[0]); major < leastNode {
		fail("node %s is older than %d", version, leastNode)
		return
	}
	if _, err := exec.LookPath("npm"); err != nil {
		fail("npm is not installed (%v)", err)
		return
	}
	dir, err := os.MkdirTemp("", "lab-")
	if err != nil {
		fail("there is no folder for it: %v", err)
		return
	}
	if err := guard(dir); err != nil {
		os.RemoveAll(dir)
		fail("its guard does not start: %v", err)
		return
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.CopyFS(filepath.Join(dir, "lab"), os.DirFS("../../testdata/lab")), copyPrograms(dir)); err != nil {
		fail("it cannot be copied: %v", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	npm.Dir = filepath.Join(dir, "lab")
	if out, err := npm.CombinedOutput(); err != nil {
		fail("npm ci failed (%v):\n%s", err, out)
		return
	}
	labDir.path = dir
}

// copyPrograms puts the test binary under the names of its parts into a folder that other users can
// read. A name is how a process is recognised, and mcpdoctor.test is no agent's.
func copyPrograms(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	in, err := os.Open(self)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(filepath.Join(bin, "mcpdoctor"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	if err := out.Close(); err != nil {
		return err
	}
	for _, name := range []string{"agent", "adopter", "keeper", "echo-mcp-server"} {
		if err := os.Link(out.Name(), filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	return nil
}

// guard starts a process that ends whatever is left of this run, and removes its folder, when the
// tests have ended, in whatever way: a test that runs into the -timeout of go test panics, and no
// cleanup is called.
func guard(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, dir)
	c.Env = append(os.Environ(), playAs+"=guard")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interrupt from the terminal is not for it
	ours, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	afterwards = append(afterwards, func() {
		ours.Close()
		if err := c.Wait(); err != nil {
			fmt.Fprintln(os.Stderr, "the guard of the lab:", err)
		}
	})
	return nil
}

func playGuard() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	dir := os.Args[1]
	left := kill(20*time.Second, func() map[int]uint64 { return marked(processes(), runMark+"="+filepath.Base(dir)+".") })
	if err := os.RemoveAll(dir); err != nil || left > 0 {
		os.Exit(1)
	}
}

// --- starting --------------------------------------------------------------------------------------

// environment is what everything that the lab starts has as its environment, and nothing else of
// ours: variables of an agent that runs these tests are evidence of their own.
func (l *lab) environment(more ...string) []string {
	env := []string{
		l.mark, "HOME=" + l.home, "TMPDIR=" + l.home, "TERM=xterm", "LANG=C.UTF-8", "PATH=" + os.Getenv("PATH"),
		"PYTHONPATH=" + filepath.Join(l.root, "servers"), "PYTHONDONTWRITEBYTECODE=1", "NODE_NO_WARNINGS=1",
		"npm_config_offline=true", "npm_config_update_notifier=false", // npx takes what was installed, and asks nobody
		"PM2_HOME=" + filepath.Join(l.home, "pm2"), "PM2_DISABLE_VERSION_CHECK=true",
		"TMUX_TMPDIR=" + l.home,
	}
	return append(env, more...)
}

// program is what a test started itself. Its stdin is a pipe that the test holds.
type program struct {
	pid   int
	stdin *os.File
	ended chan struct{} // closed when it has ended and was waited for
}

// start starts a program in the lab's environment.
func (l *lab) start(args []string, more ...string) *program {
	l.t.Helper()
	c := exec.Command(args[0], args[1:]...)
	c.Dir, c.Env = l.dir, l.environment(more...)
	log, err := os.OpenFile(filepath.Join(l.home, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		l.t.Fatal(err)
	}
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	theirs, ours, err := os.Pipe() // that of c.StdinPipe is closed with the end of the program, which others may survive
	if err != nil {
		l.t.Fatal(err)
	}
	defer theirs.Close()
	l.wires = append(l.wires, ours)
	c.Stdin = theirs
	if err := c.Start(); err != nil {
		l.t.Fatal(err)
	}
	p := &program{pid: c.Process.Pid, stdin: ours, ended: make(chan struct{})}
	if born, ok := readProcess(p.pid); ok {
		l.born[p.pid] = born.start
	}
	go func() {
		_ = c.Wait() // how it ends is the scenario's affair
		close(p.ended)
	}()
	return p
}

// run runs a program of the lab to its end and returns what it printed.
func (l *lab) run(args ...string) string {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Dir, c.Env = l.home, l.environment()
	c.WaitDelay = time.Second // a daemon that it left behind may hold its output
	out, err := c.CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		l.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// kill sends SIGKILL to processes of this lab, and waits until they are gone and have no children.
func (l *lab) kill(pids ...int) {
	l.t.Helper()
	mine := l.mine()
	for _, pid := range pids {
		if _, ok := mine[pid]; !ok {
			l.t.Fatalf("pid %d is no process of this lab", pid)
		}
		send(pid, mine[pid], syscall.SIGKILL)
	}
	// The first thread of a process is dead before the others are, which have its children until then.
	l.eventually("what was killed is gone", 20*time.Second, func() bool {
		return !slices.ContainsFunc(pids, func(pid int) bool { return alive(pid, mine[pid]) || len(below(pid)) > 0 })
	})
}

func (l *lab) bin(name string) string { return filepath.Join(l.root, "node_modules", ".bin", name) }

func (l *lab) self(name string) string { return filepath.Join(labDir.path, "bin", name) }

// freePort returns a port on which nobody listens at this moment.
func (l *lab) freePort() string {
	l.t.Helper()
	s, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.t.Fatal(err)
	}
	defer s.Close()
	return strconv.Itoa(s.Addr().(*net.TCPAddr).Port)
}

// eventually waits until something is so.
func (l *lab) eventually(what string, limit time.Duration, is func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(limit); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("after %s it is still not so that %s", limit, what)
		}
	}
}

func (l *lab) listening(port string) {
	l.t.Helper()
	l.eventually("somebody listens on port "+port, time.Minute, func() bool {
		c, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
		if err != nil {
			return false
		}
		c.Close()
		return true
	})
}

// --- talking ---------------------------------------------------------------------------------------

// web makes a connection for each request, so that none stays open behind an answer.
var web = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"lab","version":"0"}}}`

// post sends one message over streamable HTTP and returns the answer's status and session.
func (l *lab) post(url, session, message string) (status int, newSession string) {
	l.t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(message))
	if err != nil {
		l.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	a, err := web.Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	defer a.Body.Close()
	if _, err := io.Copy(io.Discard, a.Body); err != nil {
		l.t.Fatal(err)
	}
	return a.StatusCode, a.Header.Get("Mcp-Session-Id")
}

// --- ending ----------------------------------------------------------------------------------------

// send sends a signal to a process, unless its number has changed hands.
func send(pid int, start uint64, s syscall.Signal) {
	p, err := os.FindProcess(pid) // a pidfd: from here on it is this process or none
	if err != nil {
		return
	}
	defer p.Release()
	if alive(pid, start) {
		_ = p.Signal(s) // it may have ended by itself
	}
}

// kill ends processes until there are none, and returns how many are left after the limit.
func kill(limit time.Duration, which func() map[int]uint64) (left int) {
	for deadline := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		found := which()
		if len(found) == 0 || time.Now().After(deadline) {
			return len(found)
		}
		for pid, start := range found {
			send(pid, start, syscall.SIGKILL)
		}
	}
}

// end ends everything that was started in the lab, whatever has become of the test.
func (l *lab) end() {
	if l.t.Failed() {
		l.tell()
	}
	for _, w := range l.wires {
		w.Close()
	}
	if left := kill(20*time.Second, l.mine); left > 0 {
		l.t.Errorf("%d processes of the lab are left: %v", left, l.mine())
	}
}

func init() { parts["guard"] = playGuard }
