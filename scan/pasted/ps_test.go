package pasted

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpdoctor/scan"
)

// noon is when the texts in testdata/pasted are read.
var noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// ago is the start of a process that old at noon.
func ago(d time.Duration) time.Time { return noon.Add(-d) }

const day = 24 * time.Hour

// born returns p with a start that long before noon.
func born(p scan.Process, age time.Duration) scan.Process {
	p.Started = ago(age)
	p.Start = p.Started.UnixMilli()
	return p
}

func TestReadPS(t *testing.T) {
	tests := []struct {
		file      string
		os        string
		processes []scan.Process // those that are compared
		count     int            // of all
		gaps      []string       // the columns that a problem misses
		problems  []string       // a part of each other problem
	}{
		{
			file: "linux-eo.txt", os: "linux", count: 7,
			processes: []scan.Process{
				born(scan.Process{PID: 2, PPID: 0, Name: "kthreadd", RSSBytes: ptr[int64](0)}, 1828800*time.Second),
				born(scan.Process{PID: 48213, PPID: 871, RSSBytes: ptr[int64](71680 << 10), Cmdline: "npm exec @modelcontextprotocol/server-filesystem /home/dev"}, 93611*time.Second),
				born(scan.Process{PID: 51177, PPID: 50900, RSSBytes: ptr[int64](0), Name: "node", State: "Z"}, 12*time.Second),
			},
		},
		{
			file: "linux-ef.txt", os: "linux", count: 5,
			gaps: []string{"ELAPSED", "RSS"},
			processes: []scan.Process{
				{PID: 1466, PPID: 1410, User: "dev", TTY: "pts/3", CPUSeconds: ptr(93784.0), Cmdline: "node /usr/bin/context7-mcp --api-key x"},
				{PID: 1500, PPID: 1, UID: ptr(1007), TTY: "-", CPUSeconds: ptr(0.0), Cmdline: "uvx   mcp-server-git"},
			},
		},
		{
			file: "linux-ef-forest.txt", os: "linux", count: 7,
			gaps: []string{"ELAPSED", "RSS"},
			processes: []scan.Process{
				{PID: 9, PPID: 2, User: "root", TTY: "-", CPUSeconds: ptr(0.0), Name: "kworker/0:0-mm_percpu_wq"},
				{PID: 1412, PPID: 1411, User: "dev", TTY: "pts/3", CPUSeconds: ptr(1.0), Cmdline: "node server.mjs"},
				{PID: 1421, PPID: 1420, User: "dev", TTY: "pts/3", CPUSeconds: ptr(1.0), Cmdline: "node server.mjs | tee log"},
			},
		},
		{
			file: "linux-auxww-forest.txt", os: "linux", count: 7,
			gaps: []string{"PPID", "ELAPSED"},
			processes: []scan.Process{
				{PID: 1410, PPID: scan.UnknownPPID, User: "dev", TTY: "pts/3", State: "S", CPUPercent: ptr(0.3), CPUSeconds: ptr(100.0), RSSBytes: ptr[int64](90112 << 10), Cmdline: "bun supergateway --stdio node server.mjs"},
				{PID: 1412, PPID: 1411, User: "dev", TTY: "pts/3", State: "S", CPUPercent: ptr(0.1), CPUSeconds: ptr(1.0), RSSBytes: ptr[int64](68000 << 10), Cmdline: "node server.mjs"},
				{PID: 1421, PPID: 1420, User: "dev", TTY: "pts/3", State: "S", CPUPercent: ptr(12.5), CPUSeconds: ptr(7381.0), RSSBytes: ptr[int64](68000 << 10), Cmdline: "node server.mjs"},
				{PID: 1500, PPID: scan.UnknownPPID, User: "dev", TTY: "-", State: "Z", CPUPercent: ptr(0.0), CPUSeconds: ptr(0.0), RSSBytes: ptr[int64](0), Name: "npm exec @scope"},
			},
		},
		{
			file: "linux-columns.txt", count: 2,
			processes: []scan.Process{
				born(scan.Process{PID: 1410, PPID: 900, PGID: 1410, SID: 900, State: "S", CPUPercent: ptr(0.3), RSSBytes: ptr[int64](90112 << 10), TTY: "pts/3", User: "dev", Name: "npm exec hold-m", Cmdline: "npm exec hold-mcp"}, 25*time.Hour+27*time.Minute+55*time.Second),
				born(scan.Process{PID: 1411, PPID: 1410, PGID: 1410, SID: 900, State: "R", CPUPercent: ptr(99.9), RSSBytes: ptr[int64](1536 << 10), TTY: "-", UID: ptr(501), Name: "node", Cmdline: "node /srv/hold-mcp/index.js --stdio"}, time.Hour),
			},
		},
		{
			file: "command-first.txt", count: 2, gaps: []string{"RSS"},
			processes: []scan.Process{
				born(scan.Process{PID: 1410, PPID: 1, State: "S", Cmdline: "node server.mjs --port 80"}, 2*day+3*time.Hour+4*time.Minute+5*time.Second),
				born(scan.Process{PID: 1411, PPID: 1410, State: "S", Cmdline: "sh -c node server.mjs"}, 4*time.Minute+5*time.Second),
			},
		},
		{
			file: "macos-axo.txt", os: "darwin", count: 5,
			processes: []scan.Process{
				born(scan.Process{PID: 1201, PPID: 612, RSSBytes: ptr[int64](88064 << 10), Cmdline: "npm exec @modelcontextprotocol/server-memory"}, time.Hour+10*time.Minute+11*time.Second),
				born(scan.Process{PID: 1300, PPID: 612, RSSBytes: ptr[int64](0), State: "Z"}, 9*time.Second),
			},
		},
		{
			file: "macos-ef.txt", os: "darwin", count: 3, gaps: []string{"ELAPSED", "RSS"},
			processes: []scan.Process{
				{PID: 1, PPID: 0, UID: ptr(0), TTY: "-", CPUSeconds: ptr(754.56), Cmdline: "/sbin/launchd"},
				{PID: 1201, PPID: 612, UID: ptr(501), TTY: "ttys003", CPUSeconds: ptr(0.12), Cmdline: "node /Users/dev/bin/mcp-server"},
			},
		},
		{
			file: "macos-aux.txt", os: "darwin", count: 2, gaps: []string{"PPID", "ELAPSED"},
			processes: []scan.Process{
				{PID: 1201, PPID: scan.UnknownPPID, User: "dev", TTY: "-", State: "S", CPUPercent: ptr(0.0), CPUSeconds: ptr(0.12), RSSBytes: ptr[int64](88064 << 10), Cmdline: "node /Users/dev/bin/mcp-server"},
			},
		},
		{
			file: "issue.md", count: 3, problems: []string{"2 lines are not processes and were left out, the first is line 8"},
			processes: []scan.Process{
				born(scan.Process{PID: 4001, PPID: 1, RSSBytes: ptr[int64](70000 << 10), Cmdline: "node /srv/a-mcp/index.js"}, day+time.Second),
				born(scan.Process{PID: 4099, PPID: 1, RSSBytes: ptr[int64](70000 << 10), Cmdline: "node /srv/a-mcp/index.js"}, time.Second),
			},
		},
		{
			file: "quoted-twice.md", count: 2, gaps: []string{"ELAPSED", "RSS"}, problems: []string{"more than one line for pid 100:", "line 7 is not a process"},
			processes: []scan.Process{
				{PID: 100, PPID: 99, User: "dev", TTY: "pts/0", CPUSeconds: ptr(1.0), Cmdline: "node server.mjs"},
				{PID: 200, PPID: 100, CPUPercent: ptr(1.0), Cmdline: "node worker.mjs"},
			},
		},
		{
			file: "names-only.txt", os: "darwin", count: 2, gaps: []string{"ELAPSED", "RSS"}, problems: []string{"names of programs only"},
			processes: []scan.Process{{PID: 612, PPID: 1, Name: "Claude"}},
		},
		{
			file: "busybox.txt", count: 2, gaps: []string{"PPID", "ELAPSED", "RSS"},
			processes: []scan.Process{
				{PID: 1, PPID: scan.UnknownPPID, User: "root", CPUSeconds: ptr(0.0), Cmdline: "node /app/node_modules/.bin/supergateway --stdio mcp-server"},
				{PID: 31, PPID: scan.UnknownPPID, User: "root", Name: "npm exec mcp-se", Cmdline: "npm exec mcp-server"},
			},
		},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("../../testdata/pasted", test.file))
			if err != nil {
				t.Fatal(err)
			}
			s, err := Read(bytes.NewReader(text), noon)
			if err != nil {
				t.Fatal(err)
			}
			if s.Host.OS != test.os || len(s.Processes) != test.count || !s.Taken.Equal(noon) {
				t.Errorf("system %q, %d processes, taken %v; want %q, %d, %v", s.Host.OS, len(s.Processes), s.Taken, test.os, test.count, noon)
			}
			for _, want := range test.processes {
				i := slices.IndexFunc(s.Processes, func(p scan.Process) bool { return p.PID == want.PID })
				if i < 0 {
					t.Errorf("pid %d is missing", want.PID)
				} else if g, w := asJSON(t, s.Processes[i]), asJSON(t, want); g != w {
					t.Errorf("got  %s\nwant %s", g, w)
				}
			}
			problems := s.Problems
			if len(test.gaps) > 0 && len(problems) > 0 {
				for _, column := range []string{"PPID", "ELAPSED", "RSS"} {
					if strings.Contains(problems[0], "no "+column+" column") != slices.Contains(test.gaps, column) {
						t.Errorf("the first problem is %q, want one about %q", problems[0], test.gaps)
					}
				}
				problems = problems[1:]
			}
			if len(problems) != len(test.problems) {
				t.Errorf("problems %q, want %q", problems, test.problems)
			}
			for i := range min(len(problems), len(test.problems)) {
				if !strings.Contains(problems[i], test.problems[i]) {
					t.Errorf("problem %q, want %q", problems[i], test.problems[i])
				}
			}
		})
	}
}

// TestForestOutOfColumns: where a chat program has squeezed the spaces, the drawing tells no parent.
func TestForestOutOfColumns(t *testing.T) {
	s, err := Read(strings.NewReader(`USER PID %CPU COMMAND
dev 10 0.0 claude
dev 11 0.0 \_ sh -c node server.mjs
dev 12 0.0 \_ node server.mjs
`), noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.Processes {
		if p.PPID != scan.UnknownPPID || strings.Contains(p.Cmdline, `\_`) {
			t.Errorf("%s", asJSON(t, p))
		}
	}
}

func TestPSDuration(t *testing.T) {
	tests := map[string]time.Duration{
		"0":          0,
		"3600":       time.Hour,
		"00:07":      7 * time.Second,
		"1:02:03":    time.Hour + 2*time.Minute + 3*time.Second,
		"2-03:04:05": 2*day + 3*time.Hour + 4*time.Minute + 5*time.Second,
		"0:00.12":    120 * time.Millisecond,
		"123:01":     123*time.Minute + time.Second,
		"":           -1, "-": -1, "x": -1, "1:2:3:4": -1, "-1:00": -1, "1h02": -1, "NaN": -1, "1e300": -1,
	}
	for text, want := range tests {
		if got, ok := psDuration(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("psDuration(%q) = %v, %v", text, got, ok)
		}
	}
}

func FuzzReadPS(f *testing.F) {
	files, err := filepath.Glob("../../testdata/pasted/*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no texts of ps: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := readPS(text, noon)
		if err != nil {
			return
		}
		checkTable(t, s)
		for _, p := range s.Processes {
			if p.Started.After(noon) {
				t.Errorf("pid %d starts after now: %v", p.PID, p.Started)
			}
		}
	})
}
