package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"mcpdoctor/rules"
	"mcpdoctor/rules/diagnose"
	"mcpdoctor/scan"
	"mcpdoctor/scan/facts"
	"mcpdoctor/scan/terminate"
)

// checkedServer is a stubborn server behind npx, whose SIGTERM is lost, and who says what it likes.
func checkedServer(words string) *diagnose.StdioReport {
	if len(words) > 4*longest { // a longer line of shell is not looked into
		words = words[:4*longest]
	}
	proc := func(pid, ppid int, args ...string) scan.Process {
		rss, pss := int64(pid)<<20, int64(pid)<<19
		return scan.Process{PID: pid, PPID: ppid, Start: int64(pid), Args: args, RSSBytes: &rss, PSSBytes: &pss}
	}
	tree := []scan.Process{
		proc(70, 10, "npm exec some-mcp@1.2.3 --token hunter2 "+words),
		proc(71, 70, "sh", "-c", "some-mcp --token hunter2 "+words),
		proc(72, 71, "node", "/home/u/.npm/_npx/0a/node_modules/.bin/some-mcp", "--token", "hunter2", words),
	}
	left := func(of scan.Process, ppid int) facts.Leftover {
		adopted := of.PPID != ppid
		of.PPID = ppid
		return facts.Leftover{Process: of, Adopted: adopted, CPU: 37, Outcome: terminate.Ended}
	}
	c := diagnose.Stdio(&facts.Stdio{
		Command: []string{"npx", "-y", "some-mcp@1.2.3", "--token", "hunter2", words}, OS: "linux", Self: 10, Timeout: 20 * time.Second, Rest: tree,
		Startups: []time.Duration{2500 * time.Millisecond, 600 * time.Millisecond},
		Server:   facts.Server{Name: "some " + words, Version: "1.2.3", Protocol: "2025-06-18", Tools: 3},
		Noise:    facts.Noise{Lines: 1, First: "Welcome " + words},
		Ends: []facts.End{
			{Way: facts.CloseStdin, Before: tree, Left: []facts.Leftover{left(tree[0], 10), left(tree[1], 70), left(tree[2], 71)}},
			{Way: facts.Terminate, Before: tree, Left: []facts.Leftover{left(tree[2], 10)}},
			{Way: facts.KillClient, Untried: "it did not start again (" + words + ")"},
		},
		Left:     []scan.Process{proc(73, 1, "sudo", words)},
		Problems: []string{"its tools could not be listed: " + words},
	})
	c.Tool, c.Taken = rules.Tool{Name: "mcpdoctor", Version: "test"}, time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	return c
}

func TestGoldenCheck(t *testing.T) {
	well := diagnose.Stdio(&facts.Stdio{
		Command: []string{"node", "server.mjs"}, OS: "linux", Self: 10, Timeout: 20 * time.Second, Startups: []time.Duration{600 * time.Millisecond},
		Server: facts.Server{Name: "some", Version: "1.2.3", Protocol: "2025-06-18", Tools: 1},
		Rest:   []scan.Process{{PID: 70, PPID: 10, Start: 70, Args: []string{"node", "server.mjs"}}},
		Ends:   []facts.End{{Way: facts.CloseStdin, Took: 40 * time.Millisecond}, {Way: facts.Terminate, Took: 40 * time.Millisecond}, {Way: facts.KillClient, Took: 2400 * time.Millisecond}},
	})
	for name, write := range map[string]func(*bytes.Buffer) error{
		"check.txt":      func(b *bytes.Buffer) error { return CheckText(b, checkedServer("x"), Options{Width: 100}) },
		"check-pipe.txt": func(b *bytes.Buffer) error { return CheckText(b, checkedServer("x"), Options{}) },
		"check.json":     func(b *bytes.Buffer) error { return CheckJSON(b, checkedServer("x")) },
		"check-well.txt": func(b *bytes.Buffer) error { return CheckText(b, well, Options{Width: 80, Color: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, name, b.Bytes())
		})
	}
}

// Of many processes the first are written, and how many more there are.
func TestCheckOfMany(t *testing.T) {
	for n, says := range map[int]string{11: "", 30: "  and 20 more, see --json\n"} {
		seen := &facts.Stdio{Command: []string{"node"}, OS: "linux", Self: 10, Timeout: time.Second}
		end := facts.End{Way: facts.CloseStdin}
		for i := range n {
			p := scan.Process{PID: 100 + i, PPID: 10, Start: int64(i), Args: []string{"helper", "one-of-many"}}
			seen.Rest = append(seen.Rest, p)
			end.Left = append(end.Left, facts.Leftover{Process: p, CPU: -1})
		}
		end.Before = seen.Rest
		seen.Ends = []facts.End{end}
		var b bytes.Buffer
		if err := CheckText(&b, diagnose.Stdio(seen), Options{}); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Count(b.String(), "one-of-many"), 2*min(n, 10+n%10); got != want || says != "" && strings.Count(b.String(), says) != 3 || says == "" && strings.Contains(b.String(), " more, ") {
			t.Errorf("of %d there are %d lines:\n%s", n, got, b.String())
		}
	}
}

// Nothing of what a server is called or writes reaches a terminal raw, and no secret does at all.
func TestHostileCheck(t *testing.T) {
	for name, words := range nasty {
		for _, width := range []int{0, 80} {
			var text, asJSON bytes.Buffer
			c := checkedServer(words)
			before, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			if err := CheckText(&text, c, Options{Width: width}); err != nil {
				t.Fatal(err)
			}
			if err := CheckJSON(&asJSON, c); err != nil {
				t.Fatal(err)
			}
			if after, _ := json.Marshal(c); !bytes.Equal(before, after) {
				t.Errorf("%s: writing has changed the check", name)
			}
			for _, out := range []string{text.String(), asJSON.String(), Line("x " + words)} {
				if strings.Contains(out, "hunter2") || !utf8.ValidString(out) {
					t.Errorf("%s: a secret or invalid text in %.2000q", name, out)
				}
				for _, r := range out {
					if r != '\n' && hidden(r) {
						t.Errorf("%s: %q is written", name, r)
						break
					}
				}
			}
			if strings.Contains(text.String(), "\nERROR") {
				t.Errorf("%s: a server begins a line of ours:\n%s", name, text.String())
			}
			var back diagnose.StdioReport
			if err := json.Unmarshal(asJSON.Bytes(), &back); err != nil || back.Kind != diagnose.StdioKind || len(back.Rows) != 4 {
				t.Errorf("%s: the JSON is %v, %+v", name, err, back)
			}
			if code := back.Rows[0].Remedy.Code; code == nil || code.Code != rules.Lookup("orphan").Code[0].Code {
				t.Errorf("%s: the code has changed on its way: %+v", name, code)
			}
		}
	}
}
