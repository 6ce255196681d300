//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What cron does with a command before its shell gets it differs.
var crons = map[string]*strings.Replacer{
	"Vixie":   strings.NewReplacer(`\%`, `%`, `\\`, `\`),
	"cronie":  strings.NewReplacer(`\%`, `%`),
	"busybox": strings.NewReplacer(),
}

// recorder writes a program that puts down its name and its arguments, one a line, and returns its path
// and a function that reads and removes what it put down.
func recorder(t *testing.T, name string) (string, func() string) {
	t.Helper()
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	program := filepath.Join(dir, "in", name, "mcpdoctor")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s\\n' \"$0\" \"$@\" >>'"+said+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return program, func() string {
		text, _ := os.ReadFile(said) // empty when it was not started
		_ = os.Remove(said)
		return string(text)
	}
}

// shell runs a script with this environment and returns its output and its error.
func shell(t *testing.T, script string, env ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "/bin/sh")
	c.Stdin, c.Env, c.Dir = strings.NewReader(script), env, t.TempDir()
	out, err := c.CombinedOutput()
	return string(out), err
}

func TestCronLine(t *testing.T) {
	for _, name := range hostileNames {
		program, said := recorder(t, name)
		table := written(t, program, "cron", "--older-than", "36h")
		lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
		for _, l := range lines[:len(lines)-1] {
			if !strings.HasPrefix(l, "# mcpdoctor: ") {
				t.Errorf("for %q a line above the last is no comment of ours: %s", program, l)
			}
		}
		command, ok := strings.CutPrefix(lines[len(lines)-1], "7,22,37,52 * * * * ")
		if !ok {
			t.Fatalf("the last line is %s", lines[len(lines)-1])
		}
		if regexp.MustCompile(`(^|[^\\])%`).MatchString(command) {
			t.Errorf("a percent sign ends the command: %s", command)
		}
		for cron, undo := range crons {
			c := exec.CommandContext(t.Context(), "/bin/sh", "-c", undo.Replace(command))
			c.Env, c.Dir = []string{"PATH=/usr/bin:/bin", "HOME=/"}, "/"
			out, err := c.CombinedOutput()
			if got := said(); err != nil || len(out) > 0 || got != program+"\nreap\n--settle\n20s\n--older-than\n1d12h\n" {
				t.Errorf("%s runs %s and starts %q (%v, %s)", cron, command, got, err, out)
			}
		}
	}
}

// The comments of the crontab are commands too. A crontab(1) of our own stands in for the real one.
func TestCrontabComesAndGoes(t *testing.T) {
	dir := t.TempDir()
	bin, table := filepath.Join(dir, "bin"), filepath.Join(dir, "table")
	const mine = "# mine\nMAILTO=ada\n0 4 * * * /usr/bin/mcpdoctor reap --older-than 1h --rule zombie\n5 * * * * mcpdoctor scan\n"
	crontab := `case $1 in -l) cat "$TABLE" ;; -) cat >"$TABLE.new" && mv "$TABLE.new" "$TABLE" ;; *) exit 1 ;; esac`
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	added := written(t, "/opt/it's a/mcpdoctor", "cron")
	if err := os.WriteFile(filepath.Join(dir, "added"), []byte(added), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{filepath.Join(bin, "crontab"): crontab, filepath.Join(bin, "mcpdoctor"): `[ "$*" = "schedule --older-than 1h cron" ] && cat "$ADDED"`} {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	command := func(after string) string {
		_, rest, _ := strings.Cut(added, after)
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	env := []string{"PATH=" + bin + ":/usr/bin:/bin", "TABLE=" + table, "ADDED=" + filepath.Join(dir, "added")}
	for _, before := range []string{"", mine} {
		if before != "" {
			if err := os.WriteFile(table, []byte(before), 0o644); err != nil {
				t.Fatal(err)
			}
		} // else the user has no crontab yet
		for _, step := range []struct{ say, command, want string }{
			{"installed", command("install with "), before + added},
			{"removed", command("remove with "), before},
		} {
			out, err := shell(t, step.command, env...)
			got, _ := os.ReadFile(table)
			if err != nil || out != "" || string(got) != step.want {
				t.Errorf("%s, the crontab is\n%s\nand should be\n%s(%v, %s)", step.say, got, step.want, err, out)
			}
		}
	}
}

// systemctl is one that only puts down what it was told, and fails as told.
func systemctl(t *testing.T, status string) (path string, told func() string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := "#!/bin/sh\necho \"$*\" >>'" + log + "'\necho is of no interest\nexit " + status + "\n"
	if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return "PATH=" + dir + ":/usr/bin:/bin", func() string {
		text, _ := os.ReadFile(log) // empty when it was not asked
		_ = os.Remove(log)
		return string(text)
	}
}

// installed runs the script for systemd and returns the folder of the units.
func installed(t *testing.T, script string) string {
	t.Helper()
	home := filepath.Join(t.TempDir(), "my home")
	path, _ := systemctl(t, "0")
	if out, err := shell(t, script, path, "HOME="+home); err != nil {
		t.Fatalf("the script fails: %v\n%s", err, out)
	}
	return filepath.Join(home, ".config/systemd/user")
}

func TestSystemdScript(t *testing.T) {
	script := written(t, "/usr/local/bin/mcpdoctor", "systemd", "--older-than", "90m")
	home := filepath.Join(t.TempDir(), "my home")
	path, told := systemctl(t, "0")
	for _, c := range []struct {
		env   string
		units string
	}{
		{"A=b", filepath.Join(home, ".config/systemd/user")},
		{"A=again", filepath.Join(home, ".config/systemd/user")}, // over what is there
		{"XDG_CONFIG_HOME=" + home + "/xdg", filepath.Join(home, "xdg/systemd/user")},
		{"XDG_CONFIG_HOME=", filepath.Join(home, ".config/systemd/user")},
	} {
		if out, err := shell(t, script, path, "HOME="+home, c.env); err != nil {
			t.Fatalf("%s: %v\n%s", c.env, err, out)
		}
		if got, want := told(), "--user show-environment\n--user daemon-reload\n--user enable --now mcpdoctor-reap.timer\n"; got != want {
			t.Errorf("%s: systemctl was told %q", c.env, got)
		}
		files, _ := filepath.Glob(filepath.Join(c.units, "*"))
		if len(files) != 2 {
			t.Errorf("%s: the files are %q", c.env, files)
		}
		service, timer := parseUnit(t, c.units, "mcpdoctor-reap.service"), parseUnit(t, c.units, "mcpdoctor-reap.timer")
		for key, want := range map[string]string{"Service.Type": "oneshot", "Service.ExecStart": "/usr/local/bin/mcpdoctor reap --settle 20s --older-than 1h30m"} {
			if service[key] != want {
				t.Errorf("%s is %q, want %q", key, service[key], want)
			}
		}
		for key, want := range map[string]string{"Timer.OnCalendar": "*:7/15", "Install.WantedBy": "timers.target"} {
			if timer[key] != want {
				t.Errorf("%s is %q, want %q", key, timer[key], want)
			}
		}
		for key := range service {
			if strings.HasPrefix(key, "Service.Private") || strings.HasPrefix(key, "Service.Protect") || strings.HasPrefix(key, "Service.Restrict") {
				t.Errorf("%s hides processes from mcpdoctor", key)
			}
		}
	}
	t.Run("no user manager", func(t *testing.T) {
		home := t.TempDir()
		path, told := systemctl(t, "1")
		if out, err := shell(t, script, path, "HOME="+home); err == nil || told() != "--user show-environment\n" {
			t.Errorf("the script goes on: %s", out)
		}
		if files, _ := os.ReadDir(home); len(files) > 0 {
			t.Errorf("it wrote %v", files)
		}
	})
}

// parseUnit returns the values of a unit file by Section.Key.
func parseUnit(t *testing.T, dir, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	values, section := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		key, value, isValue := strings.Cut(line, "=")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = strings.Trim(line, "[]")
		case isValue && values[section+"."+key] == "":
			values[section+"."+key] = value
		default:
			t.Errorf("%s has the line %q", name, line)
		}
	}
	return values
}

// systemdNames are the hostile names that systemd can start a program in.
func systemdNames() []string {
	var names []string
	for _, n := range hostileNames {
		if !strings.ContainsAny(n, `"'\`) {
			names = append(names, n)
		}
	}
	return names
}

// The quoting, undone as systemd.service(5) says: quotes, then specifiers. Variables are not replaced in
// the first word.
func TestSystemdQuoting(t *testing.T) {
	for _, name := range systemdNames() {
		program := "/opt/" + name + "/mcpdoctor"
		line := parseUnit(t, installed(t, written(t, program, "systemd")), "mcpdoctor-reap.service")["Service.ExecStart"]
		word, ok := strings.CutSuffix(line, " reap --settle 20s --older-than 1h")
		if inner := strings.Trim(word, `"`); len(inner) == len(word)-2 {
			word = inner
		} else if strings.ContainsFunc(word, special) {
			t.Errorf("%s is not quoted", word)
		}
		if got := strings.ReplaceAll(word, "%%", "%"); !ok || got != program || strings.Contains(strings.ReplaceAll(word, "%%", ""), "%") {
			t.Errorf("for %q systemd starts %q, from %s", program, got, line)
		}
	}
}

// The units, read by systemd itself, which also looks whether the program can be started.
func TestSystemdVerifies(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SYSTEMD SKIPPED: there is no systemd-analyze that could read the units; TestSystemdQuoting reads them")
	}
	verify := func(units string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), analyze, "--user", "verify", filepath.Join(units, "mcpdoctor-reap.service"), filepath.Join(units, "mcpdoctor-reap.timer"))
		c.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir(), "LC_ALL=C")
		out, err := c.CombinedOutput()
		if bytes.Contains(out, []byte("Failed to initialize manager")) {
			t.Skip("SYSTEMD SKIPPED: systemd-analyze cannot work here: " + string(out))
		}
		var ours []string // it also speaks of units of this machine
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "mcpdoctor") {
				ours = append(ours, line)
			}
		}
		if err != nil && len(ours) == 0 {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.Join(ours, "")
	}
	names := systemdNames()
	if testing.Short() {
		names = names[:3]
	}
	for _, name := range names {
		program, _ := recorder(t, name)
		if said := verify(installed(t, written(t, program, "systemd"))); said != "" {
			t.Errorf("for %q systemd says: %s", program, said)
		}
	}
	if said := verify(installed(t, written(t, "/nowhere/mcpdoctor", "systemd"))); !strings.Contains(said, "not executable") {
		t.Errorf("systemd does not see that the program is missing: %q", said)
	}
}

// The real command knows where it lies: here in a folder for temporary files.
func TestScheduleFromTemporaryFolder(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, "schedule", "cron")
	c.Env = append(os.Environ(), playAs+"=mcpdoctor", "TMPDIR="+filepath.Dir(self))
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	_ = c.Run() // its exit code is looked at
	if c.ProcessState.ExitCode() != 2 || stdout.Len() > 0 || !strings.Contains(stderr.String(), "is in a temporary directory: "+self) || !strings.Contains(stderr.String(), "hint: ") {
		t.Errorf("exit code %d, stdout %q, stderr %q", c.ProcessState.ExitCode(), stdout.String(), stderr.String())
	}
}
