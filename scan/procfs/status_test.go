package procfs

import (
	"strings"
	"testing"
)

var cgroups = []struct{ name, content, want string }{
	{"unified", "0::/user.slice/user-1000.slice/session-2.scope\n", "/user.slice/user-1000.slice/session-2.scope"},
	{"in a namespace of its own", "0::/\n", "/"},
	{"hybrid", "12:memory:/system.slice/a.service\n1:name=systemd:/system.slice/a.service\n0::/system.slice/a.service\n", "/system.slice/a.service"},
	{"first version, systemd", "3:cpu:/\n1:name=systemd:/user.slice/x\n0::/\n", "/user.slice/x"},
	{"first version, container", "9:name=systemd:/\n8:pids:/docker/abc\n", "/docker/abc"},
	{"a colon in the path", "0::/a:b\n", "/a:b"},
	{"none", "", ""},
	{"not of that form", "hello\n", ""},
}

func TestParseCgroup(t *testing.T) {
	for _, c := range cgroups {
		if got := ParseCgroup([]byte(c.content)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzParseCgroup(f *testing.F) {
	for _, c := range cgroups {
		f.Add([]byte(c.content))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := ParseCgroup(b)
		if got != "/" && !strings.Contains(string(b), got) {
			t.Errorf("%q is not in %q", got, b)
		}
	})
}

func TestKilobytes(t *testing.T) {
	const status = "Name:\tnode\nVmRSS:\t   68100 kB\nVmSwap:\t    1024 kB\nThreads:\t11\n"
	if n, ok := ParseSwap([]byte(status)); !ok || n != 1024<<10 {
		t.Errorf("swap %d %v", n, ok)
	}
	if n, ok := ParsePSS([]byte("55d0-7ffc ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss:                 512 kB\nPss_Dirty: 9 kB\n")); !ok || n != 512<<10 {
		t.Errorf("pss %d %v", n, ok)
	}
	for _, content := range []string{"", "Name:\tkthreadd\n", "VmSwap:\n", "VmSwap: x kB\n", "VmSwap: -1 kB\n"} {
		if n, ok := ParseSwap([]byte(content)); ok {
			t.Errorf("swap of %q is %d", content, n)
		}
	}
}
