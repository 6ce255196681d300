package main

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scheduled runs schedule as if mcpdoctor lay at the path.
func scheduled(t *testing.T, program string, args ...string) result {
	t.Helper()
	w := &world{
		program: func() (string, error) { return program, nil },
		getenv: func(name string) string {
			return map[string]string{"HOME": "/home/ada", "USERPROFILE": "/home/ada"}[name]
		},
	}
	return doctorIn(t, w, "", append([]string{"schedule"}, args...)...)
}

// written is what schedule prints, which must be without a word on stderr.
func written(t *testing.T, program string, args ...string) string {
	t.Helper()
	r := scheduled(t, program, args...)
	if r.code != 0 || r.err != "" {
		t.Fatalf("schedule %v for %q: exit code %d, stderr %q", args, program, r.code, r.err)
	}
	return r.out
}

func TestScheduleGolden(t *testing.T) {
	for word, name := range map[string]string{"cron": "schedule.crontab", "systemd": "schedule.systemd.sh", "launchd": "schedule.launchd.plist"} {
		got := written(t, "/usr/local/bin/mcpdoctor", word)
		file := filepath.Join("../../testdata/golden", name)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("%v: make golden writes it", err)
		}
		if got != string(want) {
			t.Errorf("%s has changed (make golden writes it anew):\n%s", name, got)
		}
		if again := written(t, "/usr/local/bin/mcpdoctor", "--older-than", "60m", word); again != got {
			t.Errorf("the same age, written otherwise, makes another schedule for %s:\n%s", word, again)
		}
	}
}

func TestScheduleArguments(t *testing.T) {
	for args, want := range map[string]string{
		"":                                "cron, systemd or launchd",
		"corn":                            "did you mean cron? it is one of cron, systemd or launchd",
		"crontab":                         "did you mean cron?",
		"systmed":                         "did you mean systemd?",
		"timer":                           "did you mean systemd?",
		"plist":                           "did you mean launchd?",
		"LaunchD":                         "did you mean launchd?",
		"whenever":                        "hint: it is one of cron, systemd or launchd",
		"cron systemd":                    "schedule cron --help",
		"cron 1h":                         "schedule cron --help",
		"cron --older-than yesterday":     "such as 90s, 10m, 1h30m or 2d",
		"--older-than -1h cron":           "such as 90s, 10m, 1h30m or 2d",
		"cron --older-than":               "needs an argument",
		"launchd --every 5m":              "unknown flag: --every",
		"--older-than 2h \x1b[2J\nlaunch": `\x1b[2J`,
	} {
		r := scheduled(t, "/usr/local/bin/mcpdoctor", strings.Split(args, " ")...)
		if args == "" {
			r = scheduled(t, "/usr/local/bin/mcpdoctor")
		}
		if r.code != 2 || r.out != "" || !strings.Contains(r.err, want) {
			t.Errorf("schedule %s: exit code %d, stdout %q, stderr %q, which should have %q", args, r.code, r.out, r.err, want)
		}
		checkErrorForm(t, args, r.err)
	}
}

func TestScheduleWhereverTheFlagStands(t *testing.T) {
	for args, want := range map[string]string{
		"cron --older-than 2d": "2d", "--older-than 2d cron": "2d", "--older-than=48h cron": "2d", "cron --older-than 90m": "1h30m",
	} {
		if text := written(t, "/opt/mcpdoctor", strings.Fields(args)...); !strings.HasSuffix(text, "* /opt/mcpdoctor reap --settle 20s --older-than "+want+"\n") {
			t.Errorf("schedule %s:\n%s", args, text)
		}
	}
}

func TestScheduleHelpAndCompletion(t *testing.T) {
	help := doctor(t, "", "schedule", "--help").out
	for _, want := range []string{"mcpdoctor schedule [--older-than DUR] cron|systemd|launchd\n", "(default 1h)", "(crontab -l 2>/dev/null; mcpdoctor schedule cron) | crontab -"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help has no %q:\n%s", want, help)
		}
	}
	offered := doctor(t, "", "__complete", "schedule", "").out
	for _, s := range schedulers {
		if !strings.Contains(offered, s.word+"\t"+s.short+"\n") {
			t.Errorf("the shell is not offered %s:\n%s", s.word, offered)
		}
	}
}

func TestSpanText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 90 * time.Second: "1m30s", 10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m",
		time.Hour + time.Second: "1h0m1s", 24 * time.Hour: "1d", 48 * time.Hour: "2d", 36 * time.Hour: "1d12h", 24*time.Hour + time.Minute: "1d1m",
		10 * time.Hour: "10h", 1500 * time.Millisecond: "1.5s", time.Hour + time.Millisecond: "1h0m0.001s", math.MaxUint16 * 24 * time.Hour: "65535d",
	} {
		if got := (&span{d}).String(); got != want {
			t.Errorf("%v is written %s, want %s", d, got, want)
		}
	}
	for d := time.Duration(1); d > 0; d = d*3 + 7*time.Minute/11 {
		var back span
		if err := back.Set((&span{d}).String()); err != nil || back.Duration != d {
			t.Errorf("%v comes back from %s as %v (%v)", d, &span{d}, back.Duration, err)
		}
	}
}

// refusedPaths are those that can stand in no schedule.
var refusedPaths = map[string]string{
	"newline": "/opt/a\nb/mcpdoctor", "carriage return": "/opt/a\rb/mcpdoctor", "tab": "/opt/a\tb/mcpdoctor", "escape": "/opt/\x1b[2J/mcpdoctor",
	"delete": "/opt/\x7f/mcpdoctor", "next line": "/opt/\u0085/mcpdoctor", "line separator": "/opt/\u2028/mcpdoctor", "not UTF-8": "/opt/\xff/mcpdoctor",
	"right to left": "/opt/\u202etxt/mcpdoctor", "no character": "/opt/\ufffe/mcpdoctor", "zero byte": "/opt/\x00/mcpdoctor",
	"Windows": `C:\Program Files\mcpdoctor.exe`, "relative": "mcpdoctor", "empty": "",
}

func TestScheduleRefusesPaths(t *testing.T) {
	check := func(name, word, path string) {
		r := scheduled(t, path, word)
		if r.code != 2 || r.out != "" {
			t.Errorf("%s: schedule %s for %q: exit code %d, %q", name, word, path, r.code, r.out)
		}
		checkErrorForm(t, name, r.err)
		if strings.ContainsFunc(r.err, func(c rune) bool { return c < ' ' && c != '\n' }) {
			t.Errorf("%s: stderr has %q", name, r.err)
		}
	}
	for name, path := range refusedPaths {
		for _, s := range schedulers {
			check(name, s.word, path)
		}
	}
	for _, path := range []string{`/opt/it's/mcpdoctor`, `/opt/"x"/mcpdoctor`, `/opt/a\b/mcpdoctor`} {
		check("systemd", "systemd", path)
		written(t, path, "cron")
		written(t, path, "launchd")
	}
	if r := scheduled(t, `C:\mcpdoctor.exe`, "cron", "--older-than", "2d"); !strings.Contains(r.err, `schtasks /create /tn mcpdoctor /sc minute /mo 15 /tr "mcpdoctor reap --settle 20s --older-than 2d"`) {
		t.Errorf("on Windows: %s", r.err)
	}
}

// A schedule that cannot be made or written is an error and never an empty one.
func TestScheduleBroken(t *testing.T) {
	w := &world{program: func() (string, error) { return "", errors.New("no own path") }}
	if r := doctorIn(t, w, "", "schedule", "cron"); r.code != 2 || r.out != "" || !strings.Contains(r.err, "no own path") {
		t.Errorf("%+v", r)
	}
	w = &world{program: func() (string, error) { return "/opt/mcpdoctor", nil }, getenv: func(string) string { return "not/a/home" }}
	if r := doctorIn(t, w, "", "schedule", "launchd"); r.code != 2 || r.out != "" || !strings.Contains(r.err, "set HOME") {
		t.Errorf("%+v", r)
	}
	var stderr strings.Builder
	w = &world{program: w.program, getenv: w.getenv, out: brokenPipe{}, err: &stderr}
	if code := run(t.Context(), []string{"schedule", "cron"}, w); code != 2 || !strings.Contains(stderr.String(), "cannot write the schedule: no space") {
		t.Errorf("exit code %d, stderr %q", code, stderr.String())
	}
}

// hostileNames are names of folders that something between schedule and the start of the program
// might take for more than a name.
var hostileNames = []string{
	"a b", " a  b ", `it's`, `"quoted"`, `'"'"'`, "100%", "%h%%", `a\b`, `a\\b`, `a\\\b`, `\%`, `\\%`, `%\`, `\`, `\'`, `\"`, "$HOME", "$", "$$", "${HOME}", "a$(id)b",
	"`id`", "a&b", "&amp;", "<x>", "]]>", "--", "-->", "a;b|c", "ä€😀", "a\u00a0b", "-dash", "!x", "!!", "#x", " #x", "~", "*?[a]{b,c}", "END", "@x", ":x", "+x", "a=b", ";",
}

func TestLaunchdAgent(t *testing.T) {
	for _, name := range hostileNames {
		program := "/opt/" + name + "/mcpdoctor"
		plist := parsePlist(t, written(t, program, "launchd", "--older-than", "2d"))
		if got := strings.Join(plist["ProgramArguments"], "\n"); got != program+"\nreap\n--settle\n20s\n--older-than\n2d" {
			t.Errorf("for %q the agent runs %q", program, got)
		}
		for key, want := range map[string]string{"Label": "mcpdoctor.reap", "StartInterval": "900", "StandardOutPath": "/home/ada/Library/Logs/mcpdoctor.reap.log"} {
			if strings.Join(plist[key], "\n") != want {
				t.Errorf("%s is %q, want %s", key, plist[key], want)
			}
		}
	}
}

// parsePlist returns the values of each key of the outermost dictionary.
func parsePlist(t *testing.T, text string) map[string][]string {
	t.Helper()
	values := map[string][]string{}
	key, within := "", ""
	d := xml.NewDecoder(strings.NewReader(text)) // strict, also about hyphens in comments
	for {
		token, err := d.Token()
		if err == io.EOF {
			return values
		}
		if err != nil {
			t.Fatalf("the property list cannot be read: %v\n%s", err, text)
		}
		switch x := token.(type) {
		case xml.StartElement:
			within = x.Name.Local
			if within == "string" || within == "integer" {
				values[key] = append(values[key], "")
			}
		case xml.EndElement:
			within = ""
		case xml.CharData:
			switch within {
			case "key":
				key = string(x)
			case "string", "integer":
				values[key][len(values[key])-1] += string(x)
			}
		}
	}
}

func TestLastingPath(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	place := func(parts ...string) string {
		path := filepath.Join(append([]string{root}, parts...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := func(parts ...string) string {
		path := place(parts...)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := func(target string, parts ...string) string {
		path := place(parts...)
		if err := os.Symlink(target, path); err != nil {
			t.Skip("SKIPPED: no symbolic link can be made here: ", err)
		}
		return path
	}
	cellar := file("Cellar", "mcpdoctor", "0.1.0", "bin", "mcpdoctor.exe")
	brewed := link(cellar, "bin", "mcpdoctor.exe")
	other := file("elsewhere", "mcpdoctor.exe")
	built := file("tmp", "go-build1", "exe", "mcpdoctor.exe")
	throughTemporary := link(cellar, "tmp", "mcpdoctor.exe")
	intoTemporary := link(built, "sbin", "mcpdoctor.exe")
	cached := file("cache", "4e", strings.Repeat("4ed37cc5", 8)+"-d", "mcpdoctor.exe")
	sibling := file("tmpfiles", "mcpdoctor.exe")
	gone := filepath.Join(root, "gone", "mcpdoctor.exe")
	temporary := []string{filepath.Join(root, "tmp")}

	t.Setenv("PATH", filepath.Dir(brewed))
	t.Chdir(filepath.Dir(other))
	for _, c := range []struct{ name, called, file, want, trouble string }{
		{"a package manager's link in PATH", "mcpdoctor.exe", cellar, brewed, ""},
		{"a package manager's link by its path", brewed, cellar, brewed, ""},
		{"the file by its own path", cellar, cellar, cellar, ""},
		{"a relative path", "." + string(filepath.Separator) + "mcpdoctor.exe", other, other, ""},
		{"another program of that name in PATH", "mcpdoctor.exe", other, other, ""},
		{"a name that leads nowhere", "-mcpdoctor", cellar, cellar, ""},
		{"no name", "", cellar, cellar, ""},
		{"a link in a temporary folder", throughTemporary, cellar, cellar, ""},
		{"a folder whose name begins like a temporary one", sibling, sibling, sibling, ""},
		{"a file in a temporary folder", built, built, "", "is in a temporary directory"},
		{"a link into a temporary folder", intoTemporary, built, "", "is in a temporary directory"},
		{"the build cache", cached, cached, "", "is in a temporary directory"},
		{"removed", gone, gone, "", "no longer where it was started"},
	} {
		got, err := lastingPath(c.called, c.file, temporary)
		if got != c.want || (err != nil) != (c.trouble != "") {
			t.Errorf("%s: %q (%v), want %q", c.name, got, err, c.want)
		}
		if p := (*problem)(nil); err != nil && (!errors.As(err, &p) || !strings.Contains(p.what, c.trouble) || p.hint == "") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
