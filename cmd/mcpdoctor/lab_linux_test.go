package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
// real command beside them. This file is the lab itself: installing, starting, looking and ending.
// The scenarios are in the other lab_*_test.go files.
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
	for _, name := range []string{"agent", "adopter", "keeper"} {
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

// --- looking ---------------------------------------------------------------------------------------

// process is a row of the process table as these tests read it, on their own.
type process struct {
	pid, ppid int
	state     byte
	start     uint64 // in ticks since boot
}

func readProcess(pid int) (process, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	p := process{pid: pid, state: f[0][0]}
	p.ppid, _ = strconv.Atoi(f[1])
	p.start, _ = strconv.ParseUint(f[19], 10, 64)
	return p, true
}

// command is the command line of a process; empty when it is gone.
func command(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
}

func processes() map[int]process {
	entries, _ := os.ReadDir("/proc")
	all := map[int]process{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := readProcess(pid); ok {
				all[pid] = p
			}
		}
	}
	return all
}

// below returns the descendants of a process, ascending, without the dead.
func below(root int) []int {
	found := map[int]uint64{root: 0}
	descend(processes(), found)
	delete(found, root)
	return slices.Sorted(maps.Keys(found))
}

// descend adds the living descendants of what was found.
func descend(all map[int]process, found map[int]uint64) {
	for grown := true; grown; {
		grown = false
		for pid, p := range all {
			_, parent := found[p.ppid]
			if _, ok := found[pid]; parent && !ok && p.state != 'Z' {
				found[pid], grown = p.start, true
			}
		}
	}
}

// marked returns the living processes with that mark in their environment, and their starts.
func marked(all map[int]process, mark string) map[int]uint64 {
	found := map[int]uint64{}
	for pid, p := range all {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && p.state != 'Z' && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark)) {
			found[pid] = p.start
		}
	}
	return found
}

// mine returns the living processes of this lab.
func (l *lab) mine() map[int]uint64 {
	all := processes()
	found := marked(all, l.mark+"\x00")
	for pid, start := range l.born {
		if p, ok := all[pid]; ok && p.start == start && p.state != 'Z' {
			found[pid] = start
		}
	}
	descend(all, found)
	return found
}

func alive(pid int, start uint64) bool {
	p, ok := readProcess(pid)
	return ok && p.start == start && p.state != 'Z'
}

// age is how long a process has lived; 0 when it is gone.
func age(pid int) time.Duration {
	p, ok := readProcess(pid)
	uptime, err := os.ReadFile("/proc/uptime")
	if !ok || err != nil {
		return 0
	}
	const tick = time.Second / 100 // on every Linux that Go runs on
	now, _ := strconv.ParseFloat(strings.Fields(string(uptime))[0], 64)
	return time.Duration(now*float64(time.Second)) - time.Duration(p.start)*tick
}

// waitUntilOld waits until all these processes have lived that long.
func (l *lab) waitUntilOld(pids []int, least time.Duration) {
	l.t.Helper()
	l.eventually("they are old enough", least+time.Minute, func() bool {
		return !slices.ContainsFunc(pids, func(pid int) bool { return age(pid) < least })
	})
}

// doctor runs the real command and returns what it printed, and its exit code.
func (l *lab) doctor(args ...string) (stdout, stderr string, code int) {
	l.t.Helper()
	return l.doctorAs(nil, args...)
}

// doctorAs runs it as another user.
func (l *lab) doctorAs(user *syscall.Credential, args ...string) (stdout, stderr string, code int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, l.self("mcpdoctor"), args...)
	// It is no process of the lab, and so without the lab's mark.
	c.Dir, c.Env = "/", append(l.environment()[1:], playAs+"=mcpdoctor")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	var out, err bytes.Buffer
	c.Stdout, c.Stderr = &out, &err
	if e := c.Run(); c.ProcessState == nil || ctx.Err() != nil {
		l.t.Fatalf("mcpdoctor %s: %v\n%s", strings.Join(args, " "), e, err.String())
	}
	return out.String(), err.String(), c.ProcessState.ExitCode()
}

// scan runs mcpdoctor scan --json and returns what it says about this lab's processes, and its
// exit code, which is about all of the machine.
func (l *lab) scan(args ...string) (*rules.Report, int) {
	l.t.Helper()
	return l.scanAs(nil, args...)
}

func (l *lab) scanAs(user *syscall.Credential, args ...string) (*rules.Report, int) {
	l.t.Helper()
	mine := l.mine()
	out, stderr, code := l.doctorAs(user, append([]string{"scan", "--json"}, args...)...)
	var r rules.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code > exitFindings {
		l.t.Fatalf("mcpdoctor scan --json: exit code %d, %v\n%s%s", code, err, stderr, out)
	}
	maps.Copy(mine, l.mine()) // some may be new since, and some gone
	has := func(pid int) bool { _, ok := mine[pid]; return ok }
	r.Findings = slices.DeleteFunc(r.Findings, func(f rules.Finding) bool {
		return !slices.ContainsFunc(f.PIDs, has) && !has(f.ParentPID)
	})
	r.Servers = slices.DeleteFunc(r.Servers, func(s rules.Server) bool { return !slices.ContainsFunc(s.PIDs, has) })
	r.Clients = slices.DeleteFunc(r.Clients, func(o rules.Owning) bool { return !has(o.PID) })
	r.Gateways = slices.DeleteFunc(r.Gateways, func(o rules.Owning) bool { return !has(o.PID) })
	l.last = &r
	return &r, code
}

// quiet fails the test for each finding about the lab's processes.
func (l *lab) quiet(when string, r *rules.Report) {
	l.t.Helper()
	for _, f := range r.Findings {
		l.t.Errorf("%s there is a finding about healthy processes: %s", when, inShort(f))
	}
}

// only returns the one finding of a rule; others of that rule, or none, fail the test.
func (l *lab) only(r *rules.Report, rule string) rules.Finding {
	l.t.Helper()
	var found []rules.Finding
	for _, f := range r.Findings {
		if f.Rule == rule {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		l.t.Fatalf("there are %d findings of %s about this lab's processes, not one", len(found), rule)
	}
	return found[0]
}

func inShort(f rules.Finding) string {
	return fmt.Sprintf("%s, %s, %s: %s\n\tpids %v, parent %d, safe %v, on request %v\n\t%s",
		f.Rule, f.Severity, f.Confidence, f.Title, f.PIDs, f.ParentPID, f.Reap.Safe, f.Reap.OnRequest, strings.Join(f.Evidence, "\n\t"))
}

// same fails the test unless two lists of PIDs are the same.
func same(t *testing.T, what string, got, want []int) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s are\n\t%v, not\n\t%v", what, got, want)
	}
}

// holds fails the test for each word that is not in a text.
func holds(t *testing.T, what, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%s does not have %q:\n%s", what, w, text)
		}
	}
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

// tell logs what a failure is to be understood from.
func (l *lab) tell() {
	const rows = 40 // more would hide the rest
	var b strings.Builder
	fmt.Fprintf(&b, "the processes of the lab (the test itself is pid %d):\n", os.Getpid())
	for i, pid := range slices.Sorted(maps.Keys(l.mine())) {
		if p, ok := readProcess(pid); ok && i < rows {
			stdin, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", pid))
			fmt.Fprintf(&b, "%7d %7d %c %4ds %s | %s\n", p.pid, p.ppid, p.state, int(age(pid).Seconds()), stdin, command(pid))
		}
	}
	if l.last != nil {
		b.WriteString("the last scan of them:\n")
		for _, f := range l.last.Findings {
			fmt.Fprintln(&b, inShort(f))
		}
		for i, s := range l.last.Servers {
			if i < rows {
				fmt.Fprintf(&b, "server %s %v, owner %s %d, %s: %s (%s)\n", s.Server, s.PIDs, s.Owner.Kind, s.Owner.PID, s.Verdict, s.Because, s.RecognisedBy)
			}
		}
		for _, o := range slices.Concat(l.last.Clients, l.last.Gateways) {
			fmt.Fprintf(&b, "owner %s %s pid %d, %d servers, %v\n", o.Name, o.Version, o.PID, o.Servers, o.Listen)
		}
	}
	if log, err := os.ReadFile(filepath.Join(l.home, "log")); err == nil {
		fmt.Fprintf(&b, "the last of what they said:\n%s", log[max(0, len(log)-1000):])
	}
	l.t.Log(b.String())
}

func init() { parts["guard"] = playGuard }
