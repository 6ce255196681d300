package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/diagnose"
)

// checkCommand is mcpdoctor check, where the packages of the lab are. It and all that it starts have the
// lab's mark.
func (l *lab) checkCommand(args ...string) *exec.Cmd {
	c := exec.Command(l.self("mcpdoctor"), append([]string{"check"}, args...)...)
	c.Dir, c.Env = l.root, l.environment(playAs+"=mcpdoctor")
	return c
}

// check checks a command, and makes sure that nothing is left of it.
func (l *lab) check(timeout string, command ...string) (*diagnose.StdioReport, int) {
	l.t.Helper()
	c := l.checkCommand(append([]string{"--json", "--timeout", timeout, "--"}, command...)...)
	var out, stderr bytes.Buffer
	c.Stdout, c.Stderr = &out, &stderr
	_ = c.Run() // its exit code tells
	var r diagnose.StdioReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Kind != diagnose.StdioKind {
		l.t.Fatalf("check %v: %v\n%s%s", command, err, stderr.String(), out.String())
	}
	if left := l.mine(); len(left) > 0 {
		l.t.Errorf("check %v left %v", command, left)
	}
	return &r, c.ProcessState.ExitCode()
}

// repaired writes a server that does not end by itself with the code that the rule gives out, word for
// word, and returns its file. The code comes behind the first line, which may name the interpreter.
func (l *lab) repaired(runtime, file string) string {
	l.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		l.t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	if runtime == "python" { // the first lines are its documentation, and code may come after it
		first, rest = "", string(text)
	}
	for _, code := range rules.Lookup("orphan").Code {
		if code.Runtime == runtime {
			rest = code.Code + rest
		}
	}
	name := filepath.Join(filepath.Dir(file), fmt.Sprintf("repaired-%d%s", os.Getpid(), filepath.Ext(file)))
	if err := os.WriteFile(name, []byte(first+"\n"+rest), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return name
}

// Each row of the table, for real servers: alone, and behind what clients start them through.
func TestLabCheck(t *testing.T) {
	newLab(t)             // installs, so that the others need not wait for each other
	const patient = "20s" // for who ends
	const enough = "4s"   // to see that somebody stays
	node := func(l *lab, name string) string { return filepath.Join(l.root, "servers", name) }
	for _, c := range []struct {
		name    string
		command func(l *lab) []string
		timeout string
		layers  string // wrappers in parentheses
		rows    string // stdin closed, SIGTERM, client killed, stdout
		left    [3]string
		code    string // the runtime of the code that is given out
	}{
		{"everything", func(l *lab) []string { return []string{"node", l.bin("mcp-server-everything")} }, patient,
			"node", "ok ok ok ok", [3]string{}, ""},
		{"everything npx", func(l *lab) []string { return []string{"npx", "-y", "@modelcontextprotocol/server-everything"} }, enough,
			"(npx) (sh) node", "ok failed ok ok", [3]string{"", "+node", ""}, ""},
		{"echo", func(l *lab) []string { return []string{"node", node(l, "mcp-echo.mjs")} }, patient,
			"node", "ok ok ok ok", [3]string{}, ""},
		{"echo sh", func(l *lab) []string { return []string{"sh", "-c", "node " + node(l, "mcp-echo.mjs") + "; true"} }, enough,
			"(sh) node", "ok failed ok ok", [3]string{"", "+node", ""}, ""},
		{"stubborn echo", func(l *lab) []string { return []string{"node", node(l, "mcp-echo.mjs"), "--keep-alive"} }, enough,
			"node", "failed ok failed ok", [3]string{"node", "", "+node"}, "node"},
		{"stubborn echo sh", func(l *lab) []string {
			return []string{"sh", "-c", "node " + node(l, "mcp-echo.mjs") + " --keep-alive; true"}
		}, enough,
			"(sh) node", "failed failed failed ok", [3]string{"sh node", "+node", "+sh node"}, "node"},
		{"stubborn echo npx", func(l *lab) []string { return []string{"npx", "-y", "lab-echo-mcp", "--keep-alive"} }, enough,
			"(npx) (sh) node", "failed failed failed ok", [3]string{"npx sh node", "+node", "+npx sh node"}, "node"},
		{"repaired echo", func(l *lab) []string {
			return []string{"node", l.repaired("node", node(l, "mcp-echo.mjs")), "--keep-alive"}
		}, patient,
			"node", "ok ok ok ok", [3]string{}, ""},
		{"python", func(l *lab) []string { return []string{"python3", "-m", "lab_mcp_server"} }, patient,
			"python", "ok ok ok ok", [3]string{}, ""},
		{"stubborn python", func(l *lab) []string { return []string{"python3", "-m", "lab_mcp_server", "--watch"} }, enough,
			"python", "failed ok failed ok", [3]string{"python", "", "+python"}, "python"},
		{"repaired python", func(l *lab) []string {
			return []string{"python3", l.repaired("python", node(l, "lab_mcp_server.py")), "--watch"}
		}, patient,
			"python", "ok ok ok ok", [3]string{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			r, code := l.check(c.timeout, c.command(l)...)

			var layers, verdicts []string
			for _, layer := range r.Server.Layers {
				name := layer.Name
				if layer.Kind == diagnose.LayerWrapper {
					name = "(" + name + ")"
				}
				layers = append(layers, name)
			}
			if got := strings.Join(layers, " "); got != c.layers {
				t.Errorf("the layers are %q, want %q", got, c.layers)
			}
			for i, row := range r.Rows {
				verdicts = append(verdicts, string(row.Verdict))
				var left []string
				for _, p := range row.Left {
					left = append(left, map[bool]string{true: "+"}[p.Adopted]+p.Name)
				}
				if i < 3 && strings.Join(left, " ") != c.left[i] {
					t.Errorf("%s: left is %q, want %q", row.ID, left, c.left[i])
				}
			}
			if got := strings.Join(verdicts, " "); got != c.rows {
				t.Errorf("the verdicts are %q, want %q: %+v", got, c.rows, r.Rows)
			}
			if want := map[bool]int{true: exitFindings, false: exitClean}[strings.Contains(c.rows, "failed")]; code != want {
				t.Errorf("exit code %d, want %d", code, want)
			}
			if s := r.Server; s.Name == "" || s.Tools == 0 || len(s.StartupSeconds) != 2 || s.RSSBytes == nil || s.PSSBytes == nil || len(r.Problems) > 0 {
				t.Errorf("the server is %+v, with problems %q", s, r.Problems)
			}
			checkRemedies(t, r, c.code, strings.Contains(c.layers, "("))
		})
	}
}

// checkRemedies makes sure that each row that failed says what to do, in the words of the rule.
func checkRemedies(t *testing.T, r *diagnose.StdioReport, runtime string, wrapped bool) {
	t.Helper()
	for _, row := range r.Rows {
		if (row.Remedy != nil) != (row.Verdict == diagnose.Failed) {
			t.Errorf("%s: the remedy is %+v", row.ID, row.Remedy)
		}
		if row.Remedy == nil {
			continue
		}
		steps := strings.Join(row.Remedy.Steps, "\n")
		if row.ID == diagnose.TopicTerminated {
			holds(t, string(row.ID), strings.Join(row.Because, "\n"), "exited without forwarding SIGTERM; node", "until it received SIGTERM itself")
			holds(t, string(row.ID), steps, "configure the interpreter and the script")
			if !wrapped || row.Remedy.Code != nil {
				t.Errorf("%s: the remedy is %+v", row.ID, row.Remedy)
			}
			continue
		}
		if code := row.Remedy.Code; code == nil || code.Runtime != runtime {
			t.Errorf("%s: the code is %+v, want that for %s", row.ID, code, runtime)
		}
		holds(t, string(row.ID), strings.Join(row.Because, "\n"), "kept running after its stdin was closed")
	}
}

// An interrupt terminates everything, whenever it comes, and the supervisor does when mcpdoctor itself is killed.
func TestLabCheckInterrupted(t *testing.T) {
	newLab(t)
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		group  bool // as a terminal sends it
		step   string
	}{
		{"interrupt at the first start", syscall.SIGINT, true, "closing its stdin"},
		{"terminated at the last", syscall.SIGTERM, false, "killing the client"},
		{"killed at the second", syscall.SIGKILL, false, "SIGTERM"},
		{"hung up at the last", syscall.SIGHUP, true, "killing the client"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			cmd := l.checkCommand("--timeout", "2s", "--", "npx", "-y", "lab-echo-mcp", "--keep-alive")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			for buf := make([]byte, 1<<10); !strings.Contains(said.String(), c.step); {
				n, err := stderr.Read(buf)
				said.Write(buf[:n])
				if err != nil {
					t.Fatalf("it ended: %v\n%s", err, said.String())
				}
			}
			// mcpdoctor, its supervisor and all of the chain; at the last step the client too.
			l.eventually("the chain runs", 30*time.Second, func() bool { return len(l.mine()) >= 5 })
			pid := cmd.Process.Pid
			if c.group {
				pid = -pid
			}
			if err := syscall.Kill(pid, c.signal); err != nil {
				t.Fatal(err)
			}
			_, _ = said.ReadFrom(stderr)
			_ = cmd.Wait()
			if c.signal == syscall.SIGINT || c.signal == syscall.SIGTERM {
				if left := l.mine(); len(left) > 0 {
					t.Errorf("when it had ended there were still %v", left)
				}
				if code := cmd.ProcessState.ExitCode(); code != exitTrouble {
					t.Errorf("exit code %d", code)
				}
				holds(t, "stderr", said.String(), "mcpdoctor: error: interrupted", "mcpdoctor: hint: all processes of the server have been terminated")
			}
			l.eventually("all of it is gone", 30*time.Second, func() bool { return len(l.mine()) == 0 })
		})
	}
}
