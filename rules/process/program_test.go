package process

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
	"mcpdoctor/scan"
)

// byRelatives are the programs in testdata/snapshots that no command line tells: they are found by
// what started them and what was born with them.
var byRelatives = []string{"gpt-image-2", "ridewithgps"}

func TestSnapshots(t *testing.T) {
	files, err := filepath.Glob("../../testdata/snapshots/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("there are no snapshots")
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Snapshot scan.Snapshot `json:"snapshot"`
			Expect   struct {
				Findings []struct {
					Rule string `json:"rule"`
					PIDs []int  `json:"pids"`
				} `json:"findings"`
				NotMCP []int `json:"not_mcp"`
			} `json:"expect"`
		}
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found := map[int]Recognition{}
		for i := range c.Snapshot.Processes {
			p := &c.Snapshot.Processes[i]
			found[p.PID] = Classify(p, c.Snapshot.Host.OS)
		}
		for _, pid := range c.Expect.NotMCP {
			if r := found[pid]; r.Role != "" {
				t.Errorf("%s: %d is a %s: %+v", name, pid, r.Role, r.Command)
			}
		}
		for _, f := range c.Expect.Findings {
			for _, pid := range f.PIDs {
				r := found[pid]
				if f.Rule != "zombie" && r.Role == "" && !slices.Contains(byRelatives, r.Command.Program) {
					t.Errorf("%s: %d, of a finding of %s, has no role: %+v", name, pid, f.Rule, r.Command)
				}
			}
		}
	}
}

// A user's machine has thousands of processes that are nobody; to say so must cost nothing.
func TestNobodyIsFree(t *testing.T) {
	catalog.Load()
	for _, p := range []scan.Process{
		{Name: "kworker/0:1"},
		{State: "Z", Name: "node"},
		{Args: []string{"-bash"}},
		{Args: []string{"/usr/lib/systemd/systemd", "--user"}},
		{Args: []string{"/opt/google/chrome/chrome", "--type=renderer", "--lang=en-US"}},
		{Args: []string{"sshd: dev [priv]"}, Exe: "sshd: dev [priv]"},
		{Args: []string{"/usr/bin/some-daemon", "--config", "/etc/some.conf"}},
	} {
		if n := testing.AllocsPerRun(100, func() { Classify(&p, "linux") }); n > 0 {
			t.Errorf("%q: %v allocations", p.Args, n)
		}
	}
}

// What nobody has written by hand must not cost more than its length.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("a ", 1<<19)
	for _, p := range []scan.Process{
		{Args: []string{"sh", "-c", long}},
		{Args: []string{long}},
		{Cmdline: long},
		{Cmdline: "cmd /c " + long},
		{Args: append([]string{"env"}, strings.Fields(strings.Repeat("A=b ", 1<<18))...)},
		{Args: append([]string{"supergateway", "--stdio"}, strings.Fields(long)...)},
		{Args: []string{"node", strings.Repeat("/node_modules", 1<<16)}},
		{Args: slices.Repeat([]string{"nice"}, 1<<18)},
		{Args: slices.Repeat([]string{"/Users/x/Library/Application", "Support/"}, 1<<18)},
		{Args: []string{"docker", "run", "-" + strings.Repeat("i", 1<<20), "mcp/x"}},
	} {
		for _, os := range [...]string{"linux", "windows"} {
			r := Classify(&p, os)
			r.Command.Identity()
			r.Targets(os)
		}
	}
}

func BenchmarkClassify(b *testing.B) {
	processes := examples(b)
	catalog.Load()
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		e := &processes[i%len(processes)]
		Classify(&e.process, e.os)
	}
}

// BenchmarkClassifyNobody is the usual case.
func BenchmarkClassifyNobody(b *testing.B) {
	p := scan.Process{Args: []string{"/opt/google/chrome/chrome", "--type=renderer", "--lang=en-US", "--num-raster-threads=4"}}
	catalog.Load()
	b.ReportAllocs()
	for b.Loop() {
		Classify(&p, "linux")
	}
}

// What a name tells by convention needs no row, unless the row gives it another name.
func TestCatalogIsNeeded(t *testing.T) {
	for _, p := range slices.Concat(slices.Collect(maps.Values(catalog.Load().Programs))...) {
		if p.Family != catalog.Servers || len(p.With)+len(p.Without) > 0 || p.Below != "" {
			continue
		}
		if convention(&command.Command{Kind: command.KindPackage, Program: p.Program}) != "" && (p.Name == "" || command.BinaryName(p.Name) == command.BinaryName(p.Program)) {
			t.Errorf("%s needs no row", p.Program)
		}
	}
}
