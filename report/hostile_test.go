package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

// nasty are strings that any user can put into a command line of their own.
var nasty = map[string]string{
	"escape codes":   "\x1b[2J\x1b]0;owned\x07",
	"a C1 code":      "\u009b31m",
	"new lines":      "a\nERROR  no leak here\r\n\v\f\u2028\u2029\u0085",
	"invalid UTF-8":  "\xff\xfe\xc3\x28",
	"direction":      "\u202egnp.exe\u2066",
	"no width":       "a\u200bb\ufeffc",
	"a NUL":          "a\x00b",
	"a delete":       "a\x7fb",
	"a megabyte":     strings.Repeat("A\x1b", 1<<19),
	"a secret":       "--api-key=hunter2",
	"half a secret":  strings.Repeat("x", longest-4) + " --token hunter2hunter2",
	"JSON":           `{"token":"hunter2","a":"\u0022"}`,
	"format verbs":   "%s%d%!(EXTRA)",
	"percent-n tags": "<script>alert(1)</script>",
}

// hostile is a table in which an orphan, a gateway and a client say what they like.
func hostile(words string) *scan.Snapshot {
	line := words // a command line may be long; a name, a path or a variable may not
	if len(words) > 4*longest {
		words = words[:4*longest]
	}
	now := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	s := &scan.Snapshot{Schema: scan.Schema, Kind: scan.Kind, Taken: now, Host: scan.Host{OS: "linux", Name: words, Services: []scan.Service{}}, Problems: []string{words}}
	add := func(pid, ppid int, args ...string) {
		rss := int64(1 << 20)
		s.Processes = append(s.Processes, scan.Process{
			PID: pid, PPID: ppid, Start: int64(pid), Started: now.Add(-time.Hour + time.Duration(pid)*time.Second), Args: args, Name: words, CWD: words, Exe: words,
			User: words, TTY: words, Cgroup: words, RSSBytes: &rss, Env: map[string]string{"CURSOR_TRACE_ID": words, "pm_id": "1", "name": words},
			Listen: []string{}, Unreadable: []string{words},
		})
	}
	add(1, 0, "/sbin/init")
	add(20, 1, "node", "/x/"+words+"/node_modules/.bin/obsidian-mcp-server", line)
	add(30, 1, "npm exec mcp-server-x "+words)
	add(40, 1, "supergateway", "--stdio", "node s.mjs "+words, "--outputTransport", "streamableHttp", "--port", words)
	for pid := 50; pid < 60; pid++ {
		add(pid, 40, "sh", "-c", "node s.mjs "+words)
	}
	add(70, 1, "claude", words)
	for pid := 80; pid < 90; pid++ {
		add(pid, 70, "python", "-m", "mcp_server_git", words)
	}
	return s
}

func TestHostileCommandLines(t *testing.T) {
	for what, words := range nasty {
		t.Run(what, func(t *testing.T) {
			s := hostile(words)
			r := rules.Judge(process.Recognise(s), rules.Options{})
			if len(r.Findings) == 0 {
				t.Fatal("nothing was found, so nothing is tested")
			}
			for _, o := range []Options{{}, {Width: 80, Verbose: true}} {
				var b bytes.Buffer
				if err := Text(&b, r, o); err != nil {
					t.Fatal(err)
				}
				harmless(t, "text", b.String(), "\n")
				if b.Len() > 1<<20 {
					t.Errorf("the text has %d bytes", b.Len())
				}
			}
			var j, snap bytes.Buffer
			if err := JSON(&j, r); err != nil {
				t.Fatal(err)
			}
			harmless(t, "JSON", j.String(), "\n")
			var back rules.Report
			if err := json.Unmarshal(j.Bytes(), &back); err != nil {
				t.Errorf("the report is no JSON: %v", err)
			}
			if err := Snapshot(&snap, s); err != nil {
				t.Fatal(err)
			}
			harmless(t, "snapshot", snap.String(), "\n")
			again, err := scan.Decode(snap.Bytes())
			if err != nil {
				t.Fatalf("the snapshot cannot be read: %v", err)
			}
			if len(again.Processes) != len(s.Processes) {
				t.Errorf("%d of %d processes came back", len(again.Processes), len(s.Processes))
			}
		})
	}
}

// harmless fails when a terminal would obey something, or a secret is there.
func harmless(t *testing.T, what, s, allowed string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Errorf("%s is not UTF-8", what)
	}
	for i, r := range s {
		if hidden(r) && !strings.ContainsRune(allowed, r) {
			t.Errorf("%s has %U at %d: %q", what, r, i, s[max(0, i-20):min(len(s), i+20)])
			return
		}
	}
	if strings.Contains(s, "hunter2") {
		i := strings.Index(s, "hunter2")
		t.Errorf("%s has the secret: %q", what, s[max(0, i-40):i+7])
	}
	if strings.Contains(s, "\nERROR  no leak here") {
		t.Errorf("%s has a forged line", what)
	}
}

// What one run prints, the next prints too: no map is ranged over on the way out.
func TestSameReportSameBytes(t *testing.T) {
	s := hostile("x")
	var first bytes.Buffer
	if err := Text(&first, rules.Judge(process.Recognise(s), rules.Options{}), Options{Verbose: true}); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		var b bytes.Buffer
		if err := Text(&b, rules.Judge(process.Recognise(s), rules.Options{}), Options{Verbose: true}); err != nil {
			t.Fatal(err)
		}
		if b.String() != first.String() {
			t.Fatal("two runs differ")
		}
	}
}
