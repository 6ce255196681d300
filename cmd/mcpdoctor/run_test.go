package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/scan"
	"mcpdoctor/scan/pasted"
)

const (
	leaky   = "../../testdata/snapshots/supergateway-stateless-container.json"
	healthy = "../../testdata/snapshots/names-in-arguments.json"
	noteful = "../../testdata/snapshots/claude-desktop-closed-tabs.json" // has an info only
	warned  = "../../testdata/snapshots/opencode-serve-26-children.json" // has a warning only
)

type result struct {
	code     int
	out, err string
}

// doctor runs the whole command with a world of its own: this machine's processes are those of the
// leaky case, unless a test says otherwise.
func doctor(t *testing.T, in string, args ...string) result {
	t.Helper()
	return doctorIn(t, &world{}, in, args...)
}

func doctorIn(t *testing.T, w *world, in string, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	w.in, w.out, w.err = strings.NewReader(in), &out, &err
	if w.getenv == nil {
		w.getenv = func(string) string { return "" }
	}
	if w.person == nil {
		w.person = func() bool { return true }
	}
	w.now = func() time.Time { return time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC) }
	if w.machine == nil {
		w.machine = savedMachine(func(now time.Time) (*scan.Snapshot, error) {
			f, err := os.Open(leaky)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			s, err := pasted.Read(f, now)
			if err != nil {
				t.Fatal(err)
			}
			return s, nil
		})
	}
	code := run(context.Background(), args, w)
	return result{code, out.String(), err.String()}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
	}{
		{"scan", 1}, {"scan --json", 1}, {"scan --from " + healthy, 0}, {"scan --from " + leaky, 1}, {"scan --from " + leaky + " --fail-on never", 0},
		{"scan --from " + noteful, 0}, {"scan --from " + noteful + " --fail-on info", 1}, {"scan --json --from " + noteful, 0},
		{"scan --from " + warned, 1}, {"scan --from " + warned + " --fail-on error", 0}, {"scan --from " + warned + " --fail-on warning", 1},
		{"scan --from " + leaky + " --rule orphan", 0}, {"scan --from " + leaky + " --rule orphan --rule spawn-per-request", 1},
		{"scan --from " + leaky + " --older-than 2h", 1}, {"scan --from " + leaky + " --older-than 2d", 0},
		{"", 0}, {"--help", 0}, {"scan --help", 0}, {"version", 0}, {"--version", 0}, {"rules", 0}, {"rules --json", 0}, {"explain", 0}, {"explain orphan", 0},
		{"completion bash", 0}, {"snapshot", 0},
		{"scam", 2}, {"scan extra", 2}, {"scan --bogus", 2}, {"scan --fail-on sometimes", 2}, {"scan --older-than yesterday", 2}, {"scan --older-than -1h", 2},
		{"scan --rule nonsense", 2}, {"scan --color blue", 2}, {"scan --from /nowhere/at/all", 2}, {"scan --from ../../testdata", 2}, {"scan --from", 2},
		{"scan --baseline /nowhere", 2}, {"explain nonsense", 2}, {"explain orphan zombie", 2}, {"rules extra", 2}, {"snapshot --out /nowhere/at/all", 2},
	} {
		r := doctor(t, "", strings.Fields(c.args)...)
		if r.code != c.code {
			t.Errorf("mcpdoctor %s: exit code %d, want %d\n%s%s", c.args, r.code, c.code, r.out, r.err)
		}
		if c.code == 2 {
			if r.out != "" {
				t.Errorf("mcpdoctor %s: an error wrote results: %q", c.args, r.out)
			}
			checkErrorForm(t, c.args, r.err)
		} else if r.err != "" {
			t.Errorf("mcpdoctor %s: stderr has %q", c.args, r.err)
		}
	}
}

// checkErrorForm holds errors to their form: one error line, then hints, lower-case, no full stop.
func checkErrorForm(t *testing.T, what, err string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(err, "\n"), "\n")
	for i, l := range lines {
		rest, ok := strings.CutPrefix(l, "mcpdoctor: error: ")
		if i > 0 {
			rest, ok = strings.CutPrefix(l, "mcpdoctor: hint: ")
		}
		if !ok || rest == "" || strings.HasSuffix(rest, ".") || rest[0] >= 'A' && rest[0] <= 'Z' {
			t.Errorf("%s: line %d of stderr is %q", what, i+1, l)
		}
	}
	if len(lines) < 2 {
		t.Errorf("%s: the error has no hint: %q", what, err)
	}
}

func TestUnusableInput(t *testing.T) {
	whole, err := os.ReadFile(leaky)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty":          "",
		"white space":    " \n\t\n",
		"truncated":      string(whole[:len(whole)/2]),
		"other JSON":     `{"a":1}`,
		"a list":         `[1,2]`,
		"later schema":   `{"schema":2,"kind":"mcpdoctor.snapshot","processes":[]}`,
		"a report":       `{"schema":1,"kind":"mcpdoctor.report","findings":[]}`,
		"words":          "what is this\nthing\n",
		"zeros":          strings.Repeat("\x00", 4096),
		"escape codes":   "\x1b[2J\x1b]0;x\x07",
		"wrong types":    `{"schema":1,"kind":"mcpdoctor.snapshot","processes":[{"pid":"x"}]}`,
		"deeply nested":  strings.Repeat(`{"snapshot":`, 100_000),
		"a header alone": "  PID  PPID ELAPSED   RSS COMMAND\n",
	} {
		r := doctor(t, text, "scan", "--from", "-")
		if r.code != 2 || r.out != "" {
			t.Errorf("%s: exit code %d, %q", name, r.code, r.out)
		}
		checkErrorForm(t, name, r.err)
		if strings.ContainsRune(r.err, 0x1b) || len(r.err) > 1000 {
			t.Errorf("%s: stderr has %q", name, r.err)
		}
	}
}

func TestNoViewOfTheProcesses(t *testing.T) {
	w := &world{machine: savedMachine(func(time.Time) (*scan.Snapshot, error) {
		return nil, &problem{what: "cannot see the processes: permission denied", hint: "mount /proc"}
	})}
	if r := doctorIn(t, w, "", "scan"); r.code != 2 || r.err != "mcpdoctor: error: cannot see the processes: permission denied\nmcpdoctor: hint: mount /proc\n" {
		t.Errorf("exit code %d, stderr %q", r.code, r.err)
	}
}

// A report that cannot be written is an error and never a clean bill of health.
func TestBrokenOutput(t *testing.T) {
	for _, args := range [][]string{{"scan"}, {"scan", "--json"}, {"snapshot"}, {"rules"}, {"explain", "orphan"}} {
		var stderr bytes.Buffer
		w := &world{getenv: func(string) string { return "" }, now: time.Now}
		doctorIn(t, w, "", "version") // fills in the rest
		w.out, w.err = brokenPipe{}, &stderr
		if code := run(context.Background(), args, w); code != 2 || !strings.Contains(stderr.String(), "no space") {
			t.Errorf("%v: exit code %d, stderr %q", args, code, stderr.String())
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestSnapshotReplays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.json")
	if r := doctor(t, "", "snapshot", "--out", file); r.code != 0 || r.out != "" || r.err != "" {
		t.Fatalf("snapshot: %+v", r)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the snapshot has mode %v (%v): it tells a lot, even without secrets", info.Mode(), err)
	}
	live, replayed := doctor(t, "", "scan", "--json"), doctor(t, "", "scan", "--json", "--from", file)
	if live.out != replayed.out || live.code != replayed.code {
		t.Errorf("the replay is not the scan:\n%s\n%s", live.out, replayed.out)
	}
	var r rules.Report
	if err := json.Unmarshal([]byte(live.out), &r); err != nil || r.Kind != "mcpdoctor.report" || r.Tool.Name != "mcpdoctor" || len(r.Findings) != 1 {
		t.Errorf("the report is %+v (%v)", r, err)
	}
}

// The text of ps, as people paste it.
func TestPastedPS(t *testing.T) {
	const pasted = "$ ps -eo pid,ppid,etimes,rss,args --forest\n" +
		"    PID    PPID ELAPSED   RSS COMMAND\n" +
		"      1       0  900000 11000 /sbin/init\n" +
		"   4000       1   10000 90000 node /opt/node_modules/.bin/supergateway --stdio node server.mjs --outputTransport streamableHttp --port 8000\n" +
		"   4001    4000    9000  1500  \\_ /bin/sh -c node server.mjs\n" +
		"   4002    4001    9000 60000  |   \\_ node server.mjs\n" +
		"   4003    4000    6000  1500  \\_ /bin/sh -c node server.mjs\n" +
		"   4004    4003    6000 60000  |   \\_ node server.mjs\n" +
		"   4005    4000    3000  1500  \\_ /bin/sh -c node server.mjs\n" +
		"   4006    4005    3000 60000      \\_ node server.mjs\n"
	r := doctor(t, pasted, "scan", "--from", "-")
	for _, want := range []string{"supergateway (pid 4000, port 8000) keeps one server per request: 3 instances", "2 instances (4 processes, 120 MB RSS) are safe to terminate", "--stateful and --sessionTimeout are missing"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the output has no %q:\n%s%s", want, r.out, r.err)
		}
	}
	if r.code != 1 {
		t.Errorf("exit code %d", r.code)
	}
}

func TestColour(t *testing.T) {
	for _, c := range []struct {
		env    map[string]string
		flag   string
		colour bool
	}{
		{nil, "auto", false}, {nil, "always", true}, {nil, "never", false},
		{map[string]string{"CLICOLOR_FORCE": "1"}, "auto", true}, {map[string]string{"CLICOLOR_FORCE": "0"}, "auto", false},
		{map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, "auto", false}, {map[string]string{"NO_COLOR": "1"}, "always", true},
		{map[string]string{"TERM": "dumb", "CLICOLOR_FORCE": "1"}, "never", false},
	} {
		w := &world{getenv: func(name string) string { return c.env[name] }}
		if r := doctorIn(t, w, "", "scan", "--color", c.flag); strings.Contains(r.out, "\x1b[") != c.colour {
			t.Errorf("%v --color %s: colour is not %t", c.env, c.flag, c.colour)
		}
	}
}

func TestBaselineShowsGrowth(t *testing.T) {
	table := func(taken time.Time, mb string) string {
		return `{"schema":1,"kind":"mcpdoctor.snapshot","taken":"` + taken.Format(time.RFC3339) + `","host":{"os":"linux","container":false,"memory_available_bytes":4294967296,"services":[]},"processes":[
{"pid":1,"ppid":0,"start":1,"started":"2026-08-01T00:00:00Z","args":["/sbin/init"],"rss_bytes":1000000},
{"pid":70,"ppid":1,"start":70,"started":"2026-08-31T00:00:00Z","args":["claude"],"rss_bytes":1000000},
{"pid":71,"ppid":70,"start":71,"started":"2026-08-31T00:00:00Z","args":["github-mcp-server","stdio"],"rss_bytes":` + mb + `000000}]}`
	}
	dir := t.TempDir()
	before, after := filepath.Join(dir, "before.json"), filepath.Join(dir, "after.json")
	at := time.Date(2026, 9, 1, 10, 0, 0, 0, time.UTC)
	for name, text := range map[string]string{before: table(at, "200"), after: table(at.Add(2*time.Hour), "600")} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := doctor(t, "", "scan", "--from", after, "--baseline", before)
	for _, want := range []string{"github-mcp-server (pid 71) has grown to 572 MB", "from 191 MB to 572 MB in 2 h: 191 MB an hour", "the 4.0 GB that are free last 21 h"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the output has no %q:\n%s%s", want, r.out, r.err)
		}
	}
	if r := doctor(t, "", "scan", "--from", after, "--baseline", after); r.code != 0 {
		t.Errorf("a table has grown against itself:\n%s", r.out)
	}
}

func TestSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "10m": 10 * time.Minute, "1h30m": 90 * time.Minute, "2d": 48 * time.Hour, "1d12h": 36 * time.Hour, "0s": 0} {
		var s span
		if err := s.Set(text); err != nil || s.Duration != want {
			t.Errorf("%s is %v (%v), want %v", text, s.Duration, err, want)
		}
	}
	for _, text := range []string{"", "d", "1", "-1h", "1w", "99999999d", "1d-2h", "h", "2d2d", "65535d2000000h"} {
		if err := new(span).Set(text); err == nil {
			t.Errorf("%q is taken for a length of time", text)
		}
	}
}
