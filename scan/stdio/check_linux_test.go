package stdio

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
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

	"mcpdoctor/scan"
	"mcpdoctor/scan/facts"
	"mcpdoctor/scan/terminate"
)

// checkOptions are those of a check of a part. Its run is in the environment of all that it starts.
func checkOptions(run string, words ...string) Options {
	self, err := os.Executable()
	must(err)
	return Options{
		Command: append([]string{self}, words...), Env: append(os.Environ(), partVar+"=yes", runVar+"="+run),
		Startup: time.Minute, Rest: 200 * time.Millisecond, Timeout: time.Minute, Grace: time.Second,
		Client: []string{self, "client"}, Supervisor: []string{self, "supervisor"},
		Name: "test", Version: "0", Now: time.Now,
	}
}

// marked returns the living processes of a run.
func marked(run string) []int {
	var out []int
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
		content, err := os.ReadFile(f)
		if err == nil && pid != os.Getpid() && slices.Contains(strings.Split(string(content), "\x00"), runVar+"="+run) && startOf(pid) != 0 {
			out = append(out, pid)
		}
	}
	return out
}

// answer waits for what a check found, and makes sure that it left nothing.
func (p checkProcess) answer(t *testing.T) checkedSo {
	t.Helper()
	text, err := io.ReadAll(p.out)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	var out checkedSo
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if left := marked(p.asked.Run); len(left) > 0 {
		t.Errorf("%v: left behind: %v", p.asked, left)
	}
	if out.Facts != nil && len(out.Facts.Left) > 0 {
		t.Errorf("%v: it says that it left %v", p.asked, out.Facts.Left)
	}
	return out
}

// checkPart checks a part, which is a server.
func checkPart(t *testing.T, timeout time.Duration, words ...string) *facts.Stdio {
	t.Helper()
	out := startCheck(t, checking{Words: words, Timeout: timeout}).answer(t)
	if out.Facts == nil {
		t.Fatalf("%v: %s", words, out.Error)
	}
	return out.Facts
}

// checkProcess is a process that checks.
type checkProcess struct {
	asked checking
	cmd   *exec.Cmd
	out   io.Reader
}

func startCheck(t *testing.T, c checking) checkProcess {
	t.Helper()
	if c.Run == "" {
		c.Run = rand.Text()
	}
	if c.Startup == 0 {
		c.Startup = time.Minute
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "check", string(text))
	cmd.Env = append(os.Environ(), partVar+"=yes")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return checkProcess{c, cmd, out}
}

// brief is long enough for everybody to be seen to stay.
const brief = 2 * time.Second

// who says who was left at an end: the parts, in their order, "+" before who was adopted, "!" behind who
// had to be killed then.
func who(e facts.End) string {
	var out []string
	for _, l := range e.Left {
		name := l.Process.Args[1]
		if l.Adopted {
			name = "+" + name
		}
		if l.Outcome == terminate.Killed {
			name += "!"
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func TestCheckStdio(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "helper")
	cases := []struct {
		words                      string
		timeout                    time.Duration
		closed, terminated, killed string
		more                       func(*testing.T, *facts.Stdio)
	}{
		{"good", time.Minute, "", "", "", nil},
		{"late", time.Minute, "", "", "", nil},
		{"chatty", time.Minute, "", "", "", nil},
		{"toolless", time.Minute, "", "", "", nil},
		{"banner", time.Minute, "", "", "", checkNoise},
		{"drops good", brief, "", "+good", "", checkFacts},
		{"stubborn", brief, "stubborn", "", "+stubborn", nil},
		{"deaf", brief, "deaf!", "deaf!", "+deaf!", nil},
		{"drops deaf", brief, "drops deaf!", "+deaf!", "+drops deaf!", nil},
		{"swallows good", brief, "", "swallows good", "", nil},
		{"holds good", brief, "holds good", "", "+holds good", checkHolders},
		{"lingers good", brief, "lingers", "+good", "+lingers", nil},

		// Its helper has forked twice, and has a session and an environment of its own. It was adopted before the end.
		{"forks " + file, brief, "helper", "helper", "helper", func(t *testing.T, _ *facts.Stdio) {
			if pid, start := noted(t, file); startOf(pid) == start {
				t.Errorf("the helper (pid %d) is still there", pid)
			}
		}},
	}
	var checks []checkProcess // all at once, since they mostly wait
	for _, c := range cases {
		checks = append(checks, startCheck(t, checking{Words: strings.Fields(c.words), Timeout: c.timeout}))
	}
	for i, c := range cases {
		t.Run(c.words, func(t *testing.T) {
			out := checks[i].answer(t).Facts
			if out == nil {
				t.Fatal("it was not checked")
			}
			if len(out.Ends) != 3 || out.Ends[0].Way != facts.CloseStdin || out.Ends[1].Way != facts.Terminate || out.Ends[2].Way != facts.KillClient {
				t.Fatalf("the ends are %+v", out.Ends)
			}
			for i, want := range []string{c.closed, c.terminated, c.killed} {
				e := out.Ends[i]
				if got := who(e); got != want || e.Early || e.Untried != "" {
					t.Errorf("%s left %q, want %q (early %t, untried %q)", e.Way, got, want, e.Early, e.Untried)
				}
				if len(e.Before) != len(strings.Fields(c.words)) {
					t.Errorf("%s: there were %d processes before", e.Way, len(e.Before))
				}
			}
			if c.more != nil {
				c.more(t, out)
			}
		})
	}
}

// checkFacts is for "drops good".
func checkFacts(t *testing.T, out *facts.Stdio) {
	if len(out.Rest) != 2 {
		t.Fatalf("at rest there are %+v", out.Rest)
	}
	if want := (facts.Server{Name: "part", Version: "0.1", Protocol: "2025-06-18", Tools: 2}); out.Server != want {
		t.Errorf("the server is %+v", out.Server)
	}
	top, server := out.Rest[0], out.Rest[1]
	if top.Args[1] != "drops" || top.PPID != out.Self || server.Args[1] != "good" || server.PPID != top.PID || out.Self == 0 {
		t.Errorf("the tree is %+v", out.Rest)
	}
	if server.PSSBytes == nil || *server.PSSBytes <= 0 || server.RSS() < *server.PSSBytes {
		t.Errorf("its memory is %v, %v", server.RSSBytes, server.PSSBytes)
	}
	if len(out.Go) != 2 || len(out.Startups) != 2 || slices.Min(out.Startups) <= 0 || out.Noise != (facts.Noise{}) || len(out.Problems) > 0 {
		t.Errorf("the facts are %+v", out)
	}
}

// checkHolders is for "holds good", a wrapper that keeps the end of stdin from the server.
func checkHolders(t *testing.T, out *facts.Stdio) {
	l := out.Ends[0].Left
	if len(l) != 2 || l[0].Process.Stdin.Peer != scan.PeerClosed || l[1].Process.Stdin.Peer != scan.PeerOpen ||
		!slices.Equal(l[1].Process.Stdin.Holders, []int{l[0].Process.PID}) {
		t.Errorf("left is %+v", l)
	}
}

// The processor time of a server that spins when its stdin is closed is measured. It runs before the parallel
// tests, which would take its share.
func TestCheckProcessorTime(t *testing.T) {
	out := checkPart(t, brief, "busy")
	if l := out.Ends[0].Left; len(l) != 1 || l[0].CPU < 20 || l[0].Outcome != terminate.Ended || l[0].Process.Stdin == nil || l[0].Process.Stdin.Peer != scan.PeerClosed {
		t.Errorf("left is %+v", l)
	}
	if l := out.Ends[1].Left; len(l) != 0 {
		t.Errorf("SIGTERM left %+v", l)
	}
}

func checkNoise(t *testing.T, out *facts.Stdio) {
	if want := (facts.Noise{Lines: 2, First: "Welcome to the server"}); out.Noise != want {
		t.Errorf("the noise is %+v", out.Noise)
	}
}

// A server whose first process exits is checked in the ways that are left.
func TestCheckWithoutTop(t *testing.T) {
	t.Parallel()
	out := checkPart(t, brief, "leaves", "stubborn")
	if len(out.Ends) != 3 || who(out.Ends[0]) != "stubborn" || out.Ends[1].Untried == "" || who(out.Ends[2]) != "stubborn" {
		t.Errorf("the ends are %+v", out.Ends)
	}
}

func TestCheckOddServers(t *testing.T) {
	t.Parallel()
	type expected struct {
		tools    int
		protocol string
		problem  string
	}
	soonGone := startCheck(t, checking{Words: []string{"soon gone"}, Timeout: time.Minute})
	checks := map[string]checkProcess{}
	cases := map[string]expected{
		"toolless":      {0, "2024-11-05", ""},
		"broken tools":  {0, "2025-06-18", "the database is away"},
		"endless tools": {maxTools, "2025-06-18", ""},
		"sdk":           {1, "2025-11-25", ""},
		"modern":        {3, "2026-07-28", ""},
		"stray answer":  {2, "2025-06-18", ""},
	}
	for part := range cases {
		checks[part] = startCheck(t, checking{Words: []string{part}, Timeout: time.Minute})
	}
	for part, want := range cases {
		answer := checks[part].answer(t)
		if answer.Facts == nil {
			t.Errorf("%s: %s", part, answer.Error)
			continue
		}
		out := answer.Facts
		if out.Server.Tools != want.tools || out.Server.Protocol != want.protocol || !strings.Contains(strings.Join(out.Problems, "\n"), want.problem) || want.problem == "" && len(out.Problems) > 0 {
			t.Errorf("%s: %+v, %v", part, out.Server, out.Problems)
		}
	}
	out := soonGone.answer(t)
	switch {
	case out.Facts == nil && out.Failure != nil && out.Failure.Kind == facts.ExitedEarly: // quicker than we are
	case out.Facts == nil:
		t.Errorf("soon gone: %s", out.Error)
	default:
		for _, e := range out.Facts.Ends {
			if !e.Early && e.Untried == "" {
				t.Errorf("what ended by itself was tried: %+v", e)
			}
		}
	}
}

func TestCheckFailures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	plain := filepath.Join(dir, "plain")
	for _, err := range []error{os.WriteFile(script, []byte("echo hello\n"), 0o700), os.WriteFile(plain, []byte("hello\n"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		command []string
		want    facts.Failure
	}{
		{[]string{"no-such-command-anywhere"}, facts.Failure{Kind: facts.Missing}},
		{[]string{filepath.Join(dir, "nothing")}, facts.Failure{Kind: facts.Missing}},
		{[]string{plain}, facts.Failure{Kind: facts.NotExecutable}},
		{[]string{dir}, facts.Failure{Kind: facts.Directory}},
		{[]string{script}, facts.Failure{Kind: facts.NoProgram}},
		{[]string{self, "exits"}, facts.Failure{Kind: facts.ExitedEarly, Status: "exit status 3", Stderr: "Error: no API key"}},
		{[]string{"true"}, facts.Failure{Kind: facts.ExitedEarly, Status: "exit status 0"}},
		{[]string{"cat"}, facts.Failure{Kind: facts.NoServer}},
		{[]string{self, "mute"}, facts.Failure{Kind: facts.NeverAnswered}},
		{[]string{self, "prints"}, facts.Failure{Kind: facts.NoServer, Stdout: "usage: prints [flags]"}},
		{[]string{self, "closes"}, facts.Failure{Kind: facts.NoServer}},
		{[]string{self, "refuses"}, facts.Failure{Kind: facts.RefusedHandshake}},
		{[]string{self, "floods"}, facts.Failure{Kind: facts.NoServer, Stdout: strings.Repeat("x", maxFirstNoise)}},
		{[]string{self, "long line"}, facts.Failure{Kind: facts.NoServer, Stdout: strings.Repeat("{", maxFirstNoise)}},
		{[]string{"cat", "/dev/zero"}, facts.Failure{Kind: facts.NoServer, Stdout: strings.Repeat("\x00", maxFirstNoise)}},
		{[]string{self, "wrong ID"}, facts.Failure{Kind: facts.NoServer}},
		{[]string{self, "ID as a string"}, facts.Failure{Kind: facts.NoServer}},
	}
	var checks []checkProcess
	for _, c := range cases {
		startup := 10 * time.Minute // the failure is seen before
		if slices.Contains([]string{"mute", "prints"}, c.command[len(c.command)-1]) {
			startup = 2 * time.Second
		}
		checks = append(checks, startCheck(t, checking{Command: c.command, Startup: startup, Timeout: time.Minute}))
	}
	for i, c := range cases {
		name := filepath.Base(c.command[0]) + " " + strings.Join(c.command[1:], " ")
		f := checks[i].answer(t).Failure
		if f == nil {
			t.Errorf("%s: no failure", name)
			continue
		}
		if f.Kind != c.want.Kind || f.Status != c.want.Status || f.Stdout != c.want.Stdout || c.want.Stderr != "" && f.Stderr != c.want.Stderr {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// An interrupt at any step leaves nothing behind, of processes that would go on for ever.
func TestCheckInterrupted(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for _, at := range []facts.Way{facts.CloseStdin, facts.Terminate, facts.KillClient} {
		for _, later := range []time.Duration{0, 100 * time.Millisecond, 700 * time.Millisecond} {
			file := filepath.Join(t.TempDir(), "helper")
			all.Go(func() { interruptCheck(t, at, later, file) })
		}
	}
	all.Wait()
}

func interruptCheck(t *testing.T, at facts.Way, later time.Duration, file string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	run := rand.Text()
	o := checkOptions(run, "drops", "forks", file)
	if at != facts.CloseStdin {
		o.Timeout = 700 * time.Millisecond // on to the step that is meant
	}
	o.Step = func(w facts.Way) {
		if w == at {
			time.AfterFunc(later, cancel)
		}
	}
	if _, err := Check(ctx, o); !errors.Is(err, context.Canceled) && at != facts.KillClient {
		t.Errorf("%s after %s: %v", at, later, err)
	}
	if left := marked(run); len(left) > 0 {
		t.Errorf("%s after %s: left behind: %v", at, later, left)
	}
	if text, err := os.ReadFile(file); err == nil {
		f := strings.Fields(string(text))
		pid, _ := strconv.Atoi(f[0])
		if start, _ := strconv.ParseInt(f[1], 10, 64); startOf(pid) == start {
			t.Errorf("%s after %s: the helper is left", at, later)
		}
	}
}

// The supervisor terminates everything when mcpdoctor is killed.
func TestCheckKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at    facts.Way
		words []string
		many  int // processes of the run, the supervisor among them
	}{
		{facts.CloseStdin, []string{"drops", "deaf"}, 3},
		{facts.KillClient, []string{"drops", "good"}, 4},
		{facts.Terminate, []string{"forks", filepath.Join(t.TempDir(), "helper")}, 2},
	} {
		run := rand.Text()
		p := startCheck(t, checking{Run: run, Words: c.words, Timeout: brief, Steps: true})
		for lines := bufio.NewScanner(p.out); lines.Scan() && lines.Text() != "step "+string(c.at); {
		}
		for i := 0; len(marked(run)) < c.many && i < 500; i++ {
			time.Sleep(50 * time.Millisecond)
		}
		var pid int
		var start int64
		if c.words[0] == "forks" { // whose helper has no mark
			pid, start = noted(t, c.words[1])
		}
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		for i := 0; len(marked(run)) > 0 || pid != 0 && startOf(pid) == start; i++ {
			if i == 400 {
				t.Fatalf("killed at %s, it left %v", c.at, marked(run))
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// Whoever is killed while a server starts, mcpdoctor or its supervisor, the other ends all of it, also who
// has got away from the tree at once.
func TestCheckKilledInTheStart(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"mcpdoctor", "supervisor"} {
		run, file := rand.Text(), filepath.Join(t.TempDir(), "helper")
		p := startCheck(t, checking{Run: run, Words: []string{"forks and is mute", file}, Timeout: brief})
		pid, start := noted(t, file)
		victim := p.cmd.Process.Pid
		if who == "supervisor" {
			victim = supervisorOf(t, victim)
		}
		if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(p.out)
		_ = p.cmd.Wait()
		if says := "the supervisor of the check exited before it was done (signal: killed)"; who == "supervisor" && !strings.Contains(string(text), says) {
			t.Errorf("when its supervisor was killed it said %s", text)
		}
		for i := 0; len(marked(run)) > 0 || startOf(pid) == start; i++ {
			if i == 400 {
				t.Fatalf("%s was killed, and left %v and the helper (pid %d)", who, marked(run), pid)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// supervisorOf returns the supervisor of a check, which is its only child.
func supervisorOf(t *testing.T, pid int) int {
	t.Helper()
	s, err := scan.Take(t.Context(), scan.Options{Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Processes {
		if p.PPID == pid && len(p.Args) > 1 && p.Args[1] == "supervisor" {
			return p.PID
		}
	}
	t.Fatalf("pid %d has no supervisor", pid)
	return 0
}

// A helper that hides is found whatever children mcpdoctor had before.
func TestCheckFindsWhoHidesBesideStrangers(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stranger := exec.Command(self, "stay")
	stranger.Env = append(os.Environ(), partVar+"=yes")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
	}()
	file := filepath.Join(t.TempDir(), "helper")
	o := checkOptions(rand.Text(), "forks", file)
	o.Timeout = brief
	found, err := Check(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found.Ends {
		if who(e) != "helper" {
			t.Errorf("%s left %q", e.Way, who(e))
		}
	}
	if pid, start := noted(t, file); startOf(pid) == start {
		t.Errorf("the helper (pid %d) is still there", pid)
	}
	if s := stranger.Process.Pid; startOf(s) == 0 {
		t.Error("the stranger was ended")
	}
}

// Children of ours from before the check, and what they leave behind meanwhile, are nobody's.
func TestCheckSparesStrangers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "stranger")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "parent", file)
	c.Env = append(os.Environ(), partVar+"=yes")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	bufio.NewReader(out).ReadString('\n')
	pid, start := noted(t, file)
	defer func() {
		if startOf(pid) == start {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, 0, nil) // when it is ours
		}
	}()

	run := rand.Text()
	o := checkOptions(run, "stubborn")
	o.Timeout = brief
	o.Step = func(w facts.Way) {
		if w == facts.Terminate { // now its child loses its parent, and is ours
			in.Close()
			_ = c.Wait()
		}
	}
	found, err := Check(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if startOf(pid) != start {
		t.Error("a stranger was ended")
	}
	for _, e := range found.Ends {
		if strings.Contains(who(e), "helper") {
			t.Errorf("%s takes a stranger for one of the server's: %s", e.Way, who(e))
		}
	}
	if left := marked(run); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
