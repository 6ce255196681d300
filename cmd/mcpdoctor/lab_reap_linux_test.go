package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpdoctor/rules/reap"
)

// echo is how a client starts the small server of this file, with its manners as flags.
func (l *lab) echo(flags ...string) server {
	return server{Command: "env", Args: append([]string{playAs + "=server", l.self("echo-mcp-server")}, flags...)}
}

// playServer answers what it is asked, and stays when nobody can ask any more. With --deaf it ignores
// SIGTERM, with --fork it starts itself again before it ends.
func playServer() {
	switch {
	case slices.Contains(os.Args, "--deaf"):
		signal.Ignore(syscall.SIGTERM)
	case slices.Contains(os.Args, "--fork"):
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		go func() {
			<-asked
			c := exec.Command(os.Args[0])
			c.Stdin, c.Stdout = os.Stdin, os.Stdout
			if err := c.Start(); err != nil {
				fmt.Fprintln(os.Stderr, "server:", err)
			}
			os.Exit(0)
		}()
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var asked struct {
			ID any `json:"id"`
		}
		if json.Unmarshal(in.Bytes(), &asked) == nil && asked.ID != nil {
			fmt.Printf(`{"jsonrpc":"2.0","id":%v,"result":{}}`+"\n", asked.ID)
		}
	}
	time.Sleep(10 * time.Minute)
}

func init() { parts["server"] = playServer }

// reap runs the real command as cron does, and waits for another reap of this machine to end.
func (l *lab) reap(args ...string) (stdout, stderr string, code int) {
	l.t.Helper()
	l.eventually("no other reap is at work", time.Minute, func() bool {
		stdout, stderr, code = l.doctor(append([]string{"reap"}, args...)...)
		return code != exitTrouble || !strings.Contains(stderr, "another reap")
	})
	return stdout, stderr, code
}

// are returns what processes there are of these, with their starts.
func are(pids ...int) map[int]uint64 {
	out := map[int]uint64{}
	for _, pid := range pids {
		if p, ok := readProcess(pid); ok && p.state != 'Z' {
			out[pid] = p.start
		}
	}
	return out
}

// gone fails the test for each of the processes that is left.
func gone(t *testing.T, pids map[int]uint64) {
	t.Helper()
	for pid, start := range pids {
		if alive(pid, start) {
			t.Errorf("pid %d (%s) is left", pid, command(pid))
		}
	}
}

// stay fails the test for each of the processes that is gone.
func stay(t *testing.T, pids map[int]uint64) {
	t.Helper()
	for pid, start := range pids {
		if !alive(pid, start) {
			t.Errorf("pid %d was to stay, and is gone", pid)
		}
	}
}

// abandon kills the client of these servers and returns what it leaves behind.
func (l *lab) abandon(servers map[string]server) map[int]uint64 {
	l.t.Helper()
	c := l.startClient(client{kind: "go"}, servers)
	left := are(below(c.pid)...)
	l.kill(c.pid)
	return left
}

// What leaked is ended, in all forms that it takes, beside a client that uses the same servers.
func TestLabReap(t *testing.T) {
	t.Parallel()
	l := alone(t)
	if l == nil {
		return
	}
	l.need("python3")
	chains := l.stubborn("direct", "sh", "npx", "python")
	chains["echo"] = l.echo()
	chains["echo sh"] = server{Command: "sh", Args: []string{"-c", playAs + "=server " + l.self("echo-mcp-server") + "; true"}}
	living := l.startClient(client{kind: "go"}, chains)
	used := are(append(below(living.pid), living.pid)...)
	run := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			l.t = t
			f(t)
			stay(t, used)
		})
	}
	defer func() { l.t = t }()

	run("nothing to do", func(t *testing.T) {
		if out, errs, code := l.reap("--older-than", "0s"); out+errs != "" || code != exitClean {
			t.Errorf("a reap with nothing to do prints something, exit code %d\n%s%s", code, out, errs)
		}
	})
	run("chains", func(t *testing.T) {
		left := l.abandon(chains)
		if out, _, code := l.reap("--older-than", "1h"); code != exitClean || out != "" {
			t.Errorf("exit code %d with nothing that is old enough\n%s", code, out)
		}
		for _, args := range [][]string{{}, {"--older-than", "0s", "--dry-run"}} {
			out, _, code := l.reap(args...)
			if code != exitClean {
				t.Errorf("reap %v: exit code %d\n%s", args, code, out)
			}
			for pid := range left {
				holds(t, "the plan", out, fmt.Sprint(pid))
			}
		}
		stay(t, left)
		log := filepath.Join(l.home, "reaped.jsonl")
		out, errs, code := l.reap("--older-than", "1s", "--log", log)
		if code != exitClean || errs != "" {
			t.Errorf("exit code %d\n%s%s", code, out, errs)
		}
		gone(t, left)
		for pid := range left {
			holds(t, "the report", out, fmt.Sprint(pid))
		}
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n != len(chains) {
			t.Errorf("%d lines in the log for %d instances:\n%s", n, len(chains), text)
		}
	})
	run("deaf", func(t *testing.T) {
		left := l.abandon(map[string]server{"deaf": l.echo("--deaf"), "plain": l.echo()})
		out, errs, code := l.reap("--older-than", "0s", "--grace", "1s")
		if code != exitClean || errs != "" {
			t.Errorf("exit code %d\n%s%s", code, out, errs)
		}
		holds(t, "the report", out, "killed")
		gone(t, left)
	})
	run("stopped", func(t *testing.T) {
		left := l.abandon(map[string]server{"stopped": l.echo(), "stopped and deaf": l.echo("--deaf")})
		for pid, start := range left {
			send(pid, start, syscall.SIGSTOP)
		}
		out, errs, code := l.reap("--older-than", "0s", "--grace", "1s")
		if code != exitClean || errs != "" {
			t.Errorf("exit code %d\n%s%s", code, out, errs)
		}
		gone(t, left)
	})
	run("forks when it is asked to end", func(t *testing.T) {
		left := l.abandon(map[string]server{"forks": l.echo("--fork")})
		before := l.mine()
		out, errs, code := l.reap("--older-than", "1s")
		if code != exitClean {
			t.Errorf("exit code %d\n%s%s", code, out, errs)
		}
		gone(t, left)
		// What it started is younger than the limit, so that it is only told of.
		started := l.mine()
		maps.DeleteFunc(started, func(pid int, start uint64) bool { return before[pid] == start })
		if len(started) != 1 {
			t.Fatalf("%d processes are new, not one: %v", len(started), started)
		}
		for pid := range started {
			holds(t, "the report", out, fmt.Sprint(pid))
		}
		l.waitUntilOld(slices.Collect(maps.Keys(started)), 2*time.Second)
		if out, _, code := l.reap("--older-than", "1s"); code != exitClean {
			t.Errorf("exit code %d\n%s", code, out)
		}
		gone(t, started)
	})
	run("200 at once", func(t *testing.T) {
		many := map[string]server{}
		for i := range 200 {
			many[fmt.Sprintf("s%03d", i)] = l.echo()
		}
		left := l.abandon(many)
		if _, errs, code := l.reap("--older-than", "0s", "--max", "199"); code != exitTrouble {
			t.Errorf("exit code %d for more than --max\n%s", code, errs)
		}
		stay(t, left)
		out, errs, code := l.reap("--older-than", "0s")
		if code != exitClean || errs != "" {
			t.Errorf("exit code %d\n%s%s", code, out, errs)
		}
		gone(t, left)
	})
	run("interrupted", func(t *testing.T) {
		left := l.abandon(map[string]server{"deaf": l.echo("--deaf")})
		c := exec.Command(l.self("mcpdoctor"), "reap", "--older-than", "0s", "--grace", "1m")
		c.Dir, c.Env = "/", append(l.environment()[1:], playAs+"=mcpdoctor")
		var out strings.Builder
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		l.eventually("the server was asked to end", time.Minute, func() bool {
			return holdsHandle(c.Process.Pid)
		})
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		if code := c.ProcessState.ExitCode(); code != exitFindings {
			t.Errorf("exit code %d, not %d\n%s", code, exitFindings, out.String())
		}
		holds(t, "the report", out.String(), "interrupted")
		stay(t, left)
		if _, _, code := l.reap("--older-than", "0s", "--grace", "0s"); code != exitClean {
			t.Errorf("exit code %d", code)
		}
		gone(t, left)
	})
	run("as JSON", func(t *testing.T) {
		left := l.abandon(chains)
		out, errs, code := l.reap("--older-than", "0s", "--json")
		var p reap.Plan
		if err := json.Unmarshal([]byte(out), &p); err != nil || code != exitClean {
			t.Fatalf("exit code %d, %v\n%s%s", code, err, errs, out)
		}
		if p.Kind != reap.Kind || !p.Acted || p.Summary.Ended != len(chains) || p.Summary.Processes != len(left) || p.Summary.RSSBytes == 0 || p.Summary.PSSBytes == 0 {
			t.Errorf("%+v", p.Summary)
		}
		gone(t, left)
	})
}

// holdsHandle tells that a process has a pidfd open.
func holdsHandle(pid int) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, _ := os.ReadDir(dir)
	return slices.ContainsFunc(fds, func(e os.DirEntry) bool {
		to, _ := os.Readlink(filepath.Join(dir, e.Name()))
		return strings.Contains(to, "pidfd")
	})
}

// The 24 servers of the story are ended, and their gateway serves on.
func TestLabReapStory(t *testing.T) {
	t.Parallel()
	l := alone(t)
	if l == nil {
		return
	}
	const calls = 25
	g := l.startGateway("3", l.behind())
	for range calls {
		g.call("")
	}
	servers := g.instances()
	if len(servers) != calls {
		t.Fatalf("%d calls left %d servers below the gateway", calls, len(servers))
	}
	old, newest := are(slices.Concat(servers[:calls-1]...)...), are(servers[calls-1]...)
	l.waitUntilOld(slices.Concat(servers...), 6*time.Second)
	out, errs, code := l.reap("--rule", "spawn-per-request", "--older-than", "5s")
	if code != exitClean || errs != "" {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	gone(t, old)
	stay(t, newest)
	g.call("") // the 26th
	if n := len(g.instances()); n != 2 {
		t.Errorf("%d servers are below the gateway, not 2", n)
	}
	holds(t, "the report", out, "24 instances", "freeing")
}
