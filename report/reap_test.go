package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/rules/reap"
	"mcpdoctor/scan"
	"mcpdoctor/scan/terminate"
)

// atNight is when the tables of these tests were taken.
var atNight = time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)

// tableBuilder makes a table of one machine on which root runs mcpdoctor from cron.
type tableBuilder struct{ s *scan.Snapshot }

func newTable() tableBuilder {
	root := 0
	b := tableBuilder{&scan.Snapshot{
		Schema: scan.Schema, Kind: scan.Kind, Taken: atNight, Problems: []string{},
		Host: scan.Host{OS: "linux", Name: "night", UID: &root, Services: []scan.Service{}},
	}}
	b.add(1, 0, 99*time.Hour, 10<<20, "/sbin/init")
	b.add(self, 1, time.Second, 10<<20, "mcpdoctor", "reap", "--older-than", "1h")
	return b
}

// self is the PID of mcpdoctor in these tables.
const self = 9

func (b tableBuilder) add(pid, ppid int, age time.Duration, rss int64, args ...string) *scan.Process {
	root := 0
	b.s.Processes = append(b.s.Processes, scan.Process{
		PID: pid, PPID: ppid, Start: int64(pid), Started: atNight.Add(-age), Args: args, State: "S", UID: &root, User: "root", RSSBytes: &rss,
		Stdin: &scan.Stdin{Type: scan.StdinPipe, Peer: scan.PeerOpen, Holders: []int{ppid}}, Listen: []string{},
	})
	return b.at(pid)
}

// lost adds a process that init has adopted and whose stdin is closed.
func (b tableBuilder) lost(pid int, age time.Duration, rss int64, args ...string) *scan.Process {
	p := b.add(pid, 1, age, rss, args...)
	p.Stdin = &scan.Stdin{Type: scan.StdinPipe, Peer: scan.PeerClosed}
	return p
}

func (b tableBuilder) at(pid int) *scan.Process {
	return &b.s.Processes[slices.IndexFunc(b.s.Processes, func(p scan.Process) bool { return p.PID == pid })]
}

// weigh makes the memory known that comes back.
func (b tableBuilder) weigh() tableBuilder {
	for i := range b.s.Processes {
		pss := b.s.Processes[i].RSS() * 3 / 10
		b.s.Processes[i].PSSBytes = &pss
	}
	return b
}

// story is a gateway after 25 calls, as the README has it.
func story() tableBuilder {
	b := newTable()
	open := 0
	gateway := b.add(11884, 1, 75*time.Second, 81<<20, "node", "/srv/node_modules/.bin/supergateway", "--stdio", "node /srv/mcp-echo.mjs", "--outputTransport", "streamableHttp", "--port", "57809")
	gateway.Version, gateway.Listen, gateway.InboundConnections = "3.4.3", []string{"tcp:0.0.0.0:57809"}, &open
	for i := range 25 {
		age := time.Duration(74_000-i*340) * time.Millisecond
		b.add(11895+12*i, 11884, age, 17<<17, "/bin/sh", "-c", "node /srv/mcp-echo.mjs")
		b.add(11896+12*i, 11895+12*i, age, 58<<20, "node", "/srv/mcp-echo.mjs")
	}
	return b
}

// nested is what a killed client left behind: two servers, of which one has a browser and a program
// that may not be its own, beside others that are kept for several reasons.
func nested() tableBuilder {
	const day, mb, chrome, profile = 26 * time.Hour, 1 << 20, "/opt/chrome/chrome", "--user-data-dir=/tmp/playwright_chromiumdev_profile-x1"
	b := newTable()
	b.lost(20, day, 70*mb, "npm exec @playwright/mcp@latest")
	b.add(21, 20, day, 2*mb, "sh", "-c", "playwright-mcp").Stdin = b.at(20).Stdin
	b.add(22, 21, day, 90*mb, "node", "/home/dev/.npm/_npx/9/node_modules/.bin/playwright-mcp").Stdin = b.at(20).Stdin
	b.add(23, 22, day-time.Hour, 210*mb, chrome, "--headless", "--remote-debugging-pipe", profile)
	for pid := 24; pid < 27; pid++ {
		b.add(pid, 23, day-time.Hour, 80*mb, chrome, "--type=renderer", profile)
	}
	b.add(28, 22, day-time.Second, 12*mb, "git", "gc")
	b.lost(30, day, 45*mb, "python3", "-m", "mcp_server_git")
	for i := range 6 {
		b.lost(40+i, time.Duration(5+i)*time.Minute, 44*mb, "python3", "-m", "mcp_server_time")
	}
	b.lost(50, day, 44*mb, "python3", "-m", "mcp_server_fetch").Start = 0
	bob := 1001
	for pid := 60; pid < 62; pid++ {
		p := b.lost(pid, day, 44*mb, "python3", "-m", "mcp_server_sqlite")
		p.UID, p.User = &bob, "bob"
	}
	return b
}

// several is eight servers that one client left behind.
func several() tableBuilder {
	b := newTable()
	for i, name := range []string{"fetch", "git", "time", "sqlite", "memory", "filesystem", "everything", "brave_search", "github"} {
		b.lost(100+10*i, time.Duration(2+i)*time.Hour, 40<<20, "uv", "tool", "uvx", "mcp_server_"+name)
		b.add(101+10*i, 100+10*i, time.Duration(2+i)*time.Hour, 60<<20, "python3", "-m", "mcp_server_"+name).Stdin = b.at(100 + 10*i).Stdin
	}
	return b
}

// planned returns the plan on a table.
func planned(b tableBuilder, c reap.Consent) *reap.Plan {
	seen, r := judgedTable(b)
	c.Self = self
	return reap.New(seen, r, c)
}

func judgedTable(b tableBuilder) (*process.Recognised, *rules.Report) {
	seen := process.Recognise(b.s)
	r := rules.Judge(seen, rules.Options{})
	r.Tool = rules.Tool{Name: "mcpdoctor", Version: "test"}
	return seen, r
}

// confirmed returns what a second look at another table leaves of a plan.
func confirmed(first *reap.Plan, b tableBuilder, c reap.Consent) *reap.Plan {
	seen, r := judgedTable(b)
	c.Self = self
	second := reap.New(seen, r, c)
	second.Confirm(first)
	return second
}

// told returns a copy of a plan that was carried out, with what fate says of each instance and process.
func told(p *reap.Plan, fate func(instance, process int) terminate.Outcome) *reap.Plan {
	var all [][]terminate.Result
	for _, d := range p.Instances {
		if d.Outcome != reap.Planned {
			continue
		}
		var fates []terminate.Result
		for range d.Processes {
			f := terminate.Result{Outcome: fate(len(all), len(fates))}
			if f.Outcome == terminate.Refused {
				f.Err = errors.New("operation not permitted")
			}
			fates = append(fates, f)
		}
		all = append(all, fates)
	}
	done := *p
	done.Instances = slices.Clone(p.Instances)
	for i := range done.Instances {
		done.Instances[i].Processes = slices.Clone(p.Instances[i].Processes)
	}
	done.Record(all)
	return &done
}

func allEnd(int, int) terminate.Outcome { return terminate.Ended }

// eventful is a reap in which everything happened that can.
func eventful() *reap.Plan {
	hour := reap.Consent{OlderThan: time.Hour}
	second := several()
	second.at(100).Stdin = &scan.Stdin{Type: scan.StdinPipe, Peer: scan.PeerOpen, Holders: []int{90}} // it is in use
	second.at(101).Stdin = second.at(100).Stdin
	second.add(90, 1, 3*time.Hour, 300<<20, "claude").TTY = "pts/3"
	second.s.Processes = slices.DeleteFunc(second.s.Processes, func(p scan.Process) bool { return p.PID/10 == 11 }) // it has ended
	fates := [][]terminate.Outcome{
		{terminate.Ended, terminate.Ended}, {terminate.Killed, terminate.Ended}, {terminate.Killed, terminate.Killed}, {terminate.Refused, terminate.Refused},
		{terminate.Ended, terminate.Survived}, {terminate.NotFinished, terminate.NotStarted}, {terminate.Gone, terminate.Gone},
	}
	p := told(confirmed(planned(several(), hour), second, hour), func(i, process int) terminate.Outcome { return fates[i][process] })
	p.Problems = append(p.Problems, "the processes of 2 containers could not be seen")
	return p
}

// Read the difference before you accept it with -update.
func TestGoldenReap(t *testing.T) {
	hour := reap.Consent{OlderThan: time.Hour}
	calls := planned(story(), reap.Consent{OlderThan: time.Minute})
	weighed := planned(story().weigh(), reap.Consent{OlderThan: time.Minute})
	orphans := planned(nested(), hour)
	if len(calls.Instances) != 24 || len(orphans.Instances) != 2 || len(orphans.Kept) != 9 || len(orphans.Instances[0].Left) != 1 {
		t.Fatalf("the plans are not those that these files are to show: %d, %d, %d, %v", len(calls.Instances), len(orphans.Instances), len(orphans.Kept), orphans.Instances[0].Left)
	}
	terminal := Options{Width: 100}
	for name, write := range map[string]func(io.Writer) error{
		"reap-story-plan.txt":     func(w io.Writer) error { return Plan(w, calls, terminal) },
		"reap-story-weighed.txt":  func(w io.Writer) error { return Plan(w, weighed, terminal) },
		"reap-story-results.txt":  func(w io.Writer) error { return Results(w, told(weighed, allEnd), Options{}) },
		"reap-story-log.jsonl":    func(w io.Writer) error { return PlanLog(w, told(weighed, allEnd), atNight) },
		"reap-nested-plan.txt":    func(w io.Writer) error { return Plan(w, orphans, terminal) },
		"reap-nested-verbose.txt": func(w io.Writer) error { return Plan(w, orphans, Options{Width: 100, Verbose: true}) },
		"reap-nested-narrow.txt":  func(w io.Writer) error { return Plan(w, orphans, Options{Width: 50}) },
		"reap-nested-colour.txt":  func(w io.Writer) error { return Plan(w, orphans, Options{Width: 80, Color: true}) },
		"reap-nested-request.txt": func(w io.Writer) error {
			return Plan(w, planned(nested(), reap.Consent{OlderThan: time.Hour, Rules: []string{"orphan"}}), terminal)
		},
		"reap-nested-results.txt":  func(w io.Writer) error { return Results(w, told(orphans, allEnd), Options{}) },
		"reap-nested-plan.json":    func(w io.Writer) error { return PlanJSON(w, orphans) },
		"reap-nested-results.json": func(w io.Writer) error { return PlanJSON(w, told(orphans, allEnd)) },
		"reap-mixed-results.txt":   func(w io.Writer) error { return Results(w, eventful(), Options{}) },
		"reap-mixed-colour.txt":    func(w io.Writer) error { return Results(w, eventful(), Options{Width: 80, Color: true}) },
		"reap-mixed-log.jsonl":     func(w io.Writer) error { return PlanLog(w, eventful(), atNight) },
		"reap-nothing.txt":         nothingAtAll,
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

// nothingAtAll writes the plans that are empty, for all that may have been asked.
func nothingAtAll(w io.Writer) error {
	young := planned(nested(), reap.Consent{OlderThan: 48 * time.Hour})
	plans := []*reap.Plan{young}
	for _, c := range []reap.Consent{{}, {OlderThan: time.Hour}, {Rules: []string{"orphan"}}, {Rules: []string{"orphan", "zombie"}, OlderThan: 90 * time.Minute}} {
		plans = append(plans, planned(newTable(), c))
	}
	for _, p := range plans {
		if err := errors.Join(Plan(w, p, Options{}), Results(w, p, Options{}), PlanLog(w, p, atNight)); err != nil {
			return err
		}
	}
	return nil
}

// everyPlan calls f with the plans on all cases and on the tables of this file, before and after they
// were carried out, with all kinds of outcomes.
func everyPlan(t *testing.T, f func(t *testing.T, p *reap.Plan)) {
	files, err := filepath.Glob("../testdata/snapshots/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no cases", err)
	}
	tables := map[string]*scan.Snapshot{"story": story().s, "weighed": story().weigh().s, "nested": nested().s, "several": several().s, "hostile": hostile(nasty["new lines"])}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c struct{ Snapshot scan.Snapshot }
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		tables[strings.TrimSuffix(filepath.Base(file), ".json")] = &c.Snapshot
	}
	var all []string
	for _, r := range rules.Rules() {
		all = append(all, r.ID)
	}
	outcomes := []terminate.Outcome{terminate.Ended, terminate.Ended, terminate.Killed, terminate.Gone, terminate.Refused, terminate.Survived, terminate.NotStarted, terminate.NotFinished}
	for name, s := range tables {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(len(s.Processes)), 4))
			for _, c := range []reap.Consent{{}, {OlderThan: time.Hour}, {Rules: all}} {
				seen := process.Recognise(s)
				p := reap.New(seen, rules.Judge(seen, rules.Options{}), c)
				f(t, p)
				f(t, told(p, allEnd))
				f(t, told(p, func(int, int) terminate.Outcome { return outcomes[r.IntN(len(outcomes))] }))
			}
		})
	}
	t.Run("mixed", func(t *testing.T) { f(t, eventful()) })
	t.Run("zero", func(t *testing.T) { f(t, &reap.Plan{}) })
	t.Run("bare", func(t *testing.T) { f(t, &reap.Plan{Instances: []reap.PlannedInstance{{}}, Kept: []reap.Kept{{}}}) })
}

// Cron mails any output: there is none without instances, and otherwise every signalled process is named.
func TestResultsNameEveryProcessOrNothing(t *testing.T) {
	seen := 0
	everyPlan(t, func(t *testing.T, p *reap.Plan) {
		var b bytes.Buffer
		if err := Results(&b, p, Options{}); err != nil {
			t.Fatal(err)
		}
		if (b.Len() == 0) != (len(p.Instances) == 0) {
			t.Fatalf("%d instances, and %q", len(p.Instances), b.String())
		}
		lines := strings.Split(b.String(), "\n")
		for i, d := range p.Instances {
			_, list, _ := strings.Cut(lines[i], "(pid ")
			if d.Server == "" {
				_, list, _ = strings.Cut(lines[i], "pid ")
			}
			for _, s := range d.Processes {
				seen++
				if !slices.Contains(strings.FieldsFunc(list, func(r rune) bool { return r < '0' || r > '9' }), fmt.Sprint(s.PID)) {
					t.Errorf("pid %d is not named in %q", s.PID, lines[i])
				}
			}
		}
	})
	if seen < 100 {
		t.Errorf("only %d processes were planned, so that little is tested", seen)
	}
}

// What survived or was refused is never called terminated, and the reverse.
func TestResultsSayWhatIsLeft(t *testing.T) {
	everyPlan(t, func(t *testing.T, p *reap.Plan) {
		var b bytes.Buffer
		if err := Results(&b, p, Options{}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(b.String(), "\n")
		for i, d := range p.Instances {
			left := slices.ContainsFunc(d.Processes, func(s reap.Target) bool {
				return !s.Outcome.Exited() && s.Outcome != reap.Skipped
			}) || len(d.Processes) == 0
			if got := strings.HasPrefix(lines[i], "still running"); got != left {
				t.Errorf("%v: %q", d.Outcome, lines[i])
			}
		}
		if len(p.Instances) > 0 {
			if s, got := p.Summary, strings.Contains(lines[len(p.Instances)], "Still running: "); p.Acted && got != p.Failed() {
				t.Errorf("%+v: %q", s, lines[len(p.Instances)])
			}
		}
	})
}

func TestPlanJSONLosesNothing(t *testing.T) {
	everyPlan(t, func(t *testing.T, p *reap.Plan) {
		var b bytes.Buffer
		if err := PlanJSON(&b, p); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), ": null") {
			t.Errorf("there is a null in\n%s", b.String())
		}
		var back reap.Plan
		decoder := json.NewDecoder(bytes.NewReader(b.Bytes()))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&back); err != nil {
			t.Fatal(err)
		}
		if got, want := plainJSON(t, &back), plainJSON(t, clean(p)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if len(back.Instances) != len(p.Instances) || len(back.Kept) != len(p.Kept) || !reflect.DeepEqual(back.Summary, p.Summary) {
			t.Errorf("%d of %d instances, %d of %d kept, %+v", len(back.Instances), len(p.Instances), len(back.Kept), len(p.Kept), back.Summary)
		}
	})
}

func plainJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// writes counts the calls of Write, each of which is one write(2) to a file.
type writes struct {
	text bytes.Buffer
	n    int
}

func (w *writes) Write(p []byte) (int, error) {
	w.n++
	return w.text.Write(p)
}

func TestPlanLogIsOneWriteOfLines(t *testing.T) {
	everyPlan(t, func(t *testing.T, p *reap.Plan) {
		var w writes
		if err := PlanLog(&w, p, atNight); err != nil {
			t.Fatal(err)
		}
		want := slices.DeleteFunc(slices.Clone(p.Instances), func(d reap.PlannedInstance) bool { return d.Outcome == reap.Planned })
		if w.n != min(len(want), 1) {
			t.Fatalf("%d calls of Write for %d lines", w.n, len(want))
		}
		lines := slices.Collect(strings.Lines(w.text.String()))
		if len(lines) != len(want) {
			t.Fatalf("%d lines for %d instances", len(lines), len(want))
		}
		for i, line := range lines {
			var got struct {
				Time      time.Time
				Server    string
				Outcome   string
				PIDs      []int `json:"pids"`
				Command   string
				Processes []struct {
					PID     int
					Outcome string
				}
			}
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Fatalf("%v: %q", err, line)
			}
			d := want[i]
			if got.Outcome != string(d.Outcome) || !got.Time.Equal(atNight) || !slices.Equal(got.PIDs, pidsOf(d.Processes)) || len(got.Processes) != len(d.Processes) {
				t.Errorf("%q is not about %+v", line, d)
			}
			if len(d.Processes) > 0 && got.Command == "" {
				t.Errorf("%q does not say what ran", line)
			}
		}
	})
}

// The command in the log is that of the server, not of what started it or of what it started.
func TestLogNamesTheServersCommand(t *testing.T) {
	for _, d := range planned(nested(), reap.Consent{OlderThan: time.Hour}).Instances {
		if got := worker(d).PID; got != 22 && got != 30 {
			t.Errorf("the command of %s is that of pid %d", d.Server, got)
		}
	}
	for _, d := range planned(several(), reap.Consent{}).Instances {
		if got := worker(d); got.Role != "server" {
			t.Errorf("the command of %s is %q", d.Server, got.Command)
		}
	}
	browser := reap.PlannedInstance{Role: process.RoleHelper, RootPID: 7, Processes: []reap.Target{
		{Row: rules.Row{PID: 7, Role: "helper"}}, {Row: rules.Row{PID: 9, Role: "helper"}}, {Row: rules.Row{PID: 8, Role: "helper"}},
	}}
	if got := worker(browser).PID; got != 7 {
		t.Errorf("the command of a browser is that of pid %d, one of its renderers", got)
	}
}

// Whatever a process calls itself, a terminal obeys nothing of it, no secret is shown, and no line is
// forged.
func TestHostileReap(t *testing.T) {
	var all []string
	for _, r := range rules.Rules() {
		all = append(all, r.ID)
	}
	for what, words := range nasty {
		t.Run(what, func(t *testing.T) {
			seen := process.Recognise(hostile(words))
			p := reap.New(seen, rules.Judge(seen, rules.Options{}), reap.Consent{Rules: all})
			if len(p.Instances) == 0 {
				t.Fatal("there are no instances, so that nothing is tested")
			}
			p = told(p, func(i, process int) terminate.Outcome {
				return []terminate.Outcome{terminate.Ended, terminate.Killed, terminate.Refused}[(i+process)%3]
			})
			foul := *p
			foul.Instances = slices.Clone(p.Instances)
			for i := range foul.Instances {
				d := &foul.Instances[i]
				d.Title, d.Server, d.Reason, d.Rule, d.Finding, d.Evidence = words, words, words, words, words, []string{words}
				d.Left = []reap.Kept{{Server: words, PIDs: []int{5}, Rule: words, Reason: words}}
				for k := range d.Processes {
					d.Processes[k].Reason, d.Processes[k].Role, d.Processes[k].Command = words, words, words
				}
			}
			foul.Instances = append(foul.Instances, reap.PlannedInstance{Server: words, Outcome: reap.Skipped, Reason: words})
			foul.Kept = append(slices.Clone(p.Kept), reap.Kept{Server: words, Rule: words, Reason: words})
			foul.Problems, foul.Rules = []string{words}, []string{words}
			nothing := reap.Plan{Rules: []string{words}, OlderThanSeconds: -1, Host: words}
			for _, p := range []*reap.Plan{p, &foul, &nothing} {
				for name, write := range map[string]func(io.Writer) error{
					"plan":         func(w io.Writer) error { return Plan(w, p, Options{}) },
					"verbose plan": func(w io.Writer) error { return Plan(w, p, Options{Width: 80, Verbose: true}) },
					"results":      func(w io.Writer) error { return Results(w, p, Options{}) },
					"wide results": func(w io.Writer) error { return Results(w, p, Options{Width: 80}) },
					"JSON":         func(w io.Writer) error { return PlanJSON(w, p) },
					"log":          func(w io.Writer) error { return PlanLog(w, p, atNight) },
				} {
					var b bytes.Buffer
					if err := write(&b); err != nil {
						t.Fatal(err)
					}
					harmless(t, name, b.String(), "\n")
					if b.Len() > 2<<20 {
						t.Errorf("%s has %d bytes", name, b.Len())
					}
				}
			}
		})
	}
}

func TestReapColourOnlyWhenAsked(t *testing.T) {
	escapes := func(o Options) int {
		var b bytes.Buffer
		p := eventful()
		if err := errors.Join(Plan(&b, p, o), Results(&b, p, o)); err != nil {
			t.Fatal(err)
		}
		return strings.Count(b.String(), "\x1b")
	}
	for _, o := range []Options{{}, {Width: 80}, {Width: 80, Verbose: true}} {
		if n := escapes(o); n > 0 {
			t.Errorf("%+v: %d escape bytes", o, n)
		}
		if o.Color = true; escapes(o) == 0 {
			t.Errorf("%+v: no colour", o)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A reap that cannot be written down says so.
func TestReapKeepsTheErrorOfWriting(t *testing.T) {
	p := eventful()
	for name, err := range map[string]error{
		"plan": Plan(full{}, p, Options{}), "results": Results(full{}, p, Options{}), "JSON": PlanJSON(full{}, p), "log": PlanLog(full{}, p, atNight),
	} {
		if err == nil {
			t.Errorf("the %s was lost without an error", name)
		}
	}
}
