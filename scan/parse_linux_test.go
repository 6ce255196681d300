package scan

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestParseTarget(t *testing.T) {
	for target, want := range map[string]struct {
		kind  StdinType
		inode uint64
	}{
		"pipe:[4711]":            {StdinPipe, 4711},
		"socket:[12]":            {StdinSocket, 12},
		"/dev/null":              {StdinNull, 0},
		"/dev/pts/3":             {StdinTTY, 0},
		"/dev/pts/0 (deleted)":   {StdinTTY, 0},
		"/dev/tty1":              {StdinTTY, 0},
		"/dev/console":           {StdinTTY, 0},
		"/tmp/fifo":              {StdinFile, 0},
		"/tmp/pipe:[1]":          {StdinFile, 0},
		"pipe:[1":                {StdinFile, 0},
		"pipe:[-1]":              {StdinFile, 0},
		"pipe:[]":                {StdinFile, 0},
		"socket:[1] (deleted)":   {StdinFile, 0},
		"anon_inode:[eventpoll]": {StdinFile, 0},
		"":                       {StdinFile, 0},
	} {
		if kind, inode := parseTarget(target); kind != want.kind || inode != want.inode {
			t.Errorf("parseTarget(%q) = %q %d, want %q %d", target, kind, inode, want.kind, want.inode)
		}
	}
}

func TestParseEnviron(t *testing.T) {
	long := strings.Repeat("x", maxEnvValue+1)
	for _, c := range []struct {
		name, content string
		want          map[string]string
	}{
		{"chosen names only", "PATH=/bin\x00CLAUDECODE=1\x00AWS_SECRET_ACCESS_KEY=s3cret\x00", map[string]string{"CLAUDECODE": "1"}},
		{"the first of two", "VSCODE_PID=1\x00VSCODE_PID=2\x00", map[string]string{"VSCODE_PID": "1"}},
		{"empty value, = in value", "TMUX=\x00npm_config_user_agent=a=b\x00", map[string]string{"TMUX": "", "npm_config_user_agent": "a=b"}},
		{"name of a pm2 app", "name=gate\x00pm_id=0\x00", map[string]string{"name": "gate", "pm_id": "0"}},
		{"name of anything", "name=Jane\x00", nil},
		{"too long", "CLAUDECODE=" + long + "\x00", nil},
		{"case matters", "claudecode=1\x00", nil},
		{"no environment", "", nil},
		{"a title written over it", "my title\x00\x00\x00\x00", nil},
		{"without the last NUL", "UV=/usr/bin/uv", map[string]string{"UV": "/usr/bin/uv"}},
	} {
		if got := parseEnviron([]byte(c.content)); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A name that was cut off with its value must not be kept with half of it.
func TestParseEnvironCut(t *testing.T) {
	const tail = "CLAUDECODE=1\x00VSCODE_PID=12"
	b := append(make([]byte, maxEnviron-len(tail)), tail...)
	if got := parseEnviron(b); !maps.Equal(got, map[string]string{"CLAUDECODE": "1"}) {
		t.Errorf("%v", got)
	}
}

func FuzzParseEnviron(f *testing.F) {
	f.Add([]byte("CLAUDECODE=1\x00name=x\x00pm_id=0\x00"))
	f.Add([]byte("=\x00==\x00CLAUDECODE\x00\xff=\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, value := range parseEnviron(b) {
			if !slices.Contains(envNames, name) {
				t.Errorf("%q is not a chosen name", name)
			}
			if !strings.Contains(string(b), name+"="+value) {
				t.Errorf("%s=%s is not in %q", name, value, b)
			}
		}
	})
}

func TestUnitOf(t *testing.T) {
	for cgroup, want := range map[string]unit{
		"/system.slice/mcp-gateway.service":                                                {"mcp-gateway.service", -1},
		"/system.slice/mcp.service/worker":                                                 {"mcp.service", -1},
		"/system.slice/system-mcp.slice/mcp@1.service":                                     {"mcp@1.service", -1},
		"/user.slice/user-1000.slice/user@1000.service/app.slice/gate.service":             {"gate.service", 1000},
		"/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-Code-7.scope":   {"", 1000},
		"/user.slice/user-1000.slice/user@1000.service/init.scope":                         {"", 1000},
		"/user.slice/user-1000.slice/user@1000.service":                                    {"", 1000},
		"/user.slice/user-1000.slice/session-3.scope":                                      {"", -1},
		"/system.slice/docker-0123.scope":                                                  {"", -1},
		"/system.slice/docker.service/docker-0123.scope/payload":                           {"", -1},
		"/user.slice/user-1000.slice/user@1000.service/app.slice/app-x@autostart.service/": {"app-x@autostart.service", 1000},
		"/": {"", -1},
		"":  {"", -1},
	} {
		if got := unitOf(cgroup); got != want {
			t.Errorf("unitOf(%q) = %+v, want %+v", cgroup, got, want)
		}
	}
}

func TestParseUnits(t *testing.T) {
	const out = "Id=cron.service\nMainPID=612\n\nMainPID=0\nId=done.service\n\nId=gate.service\nMainPID=4001\n"
	if got, want := parseUnits([]byte(out)), map[int]string{612: "cron.service", 4001: "gate.service"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := parseUnits([]byte("MainPID=1\n\nId=x\n\nfoo\n\nId=y\nMainPID=-3")); len(got) > 0 {
		t.Errorf("%v of nothing", got)
	}
}
