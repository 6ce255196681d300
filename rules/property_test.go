package rules_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/testdata/tables"
)

// What holds for every table, whatever is in it.
func TestEveryReport(t *testing.T) {
	findings := map[string]int{}
	for seed := range uint64(400) {
		s := tables.Generate(seed, int(10+seed%120))
		r := rules.Judge(process.Recognise(s), rules.Options{})
		for _, f := range r.Findings {
			findings[f.Rule]++
		}
		checkReport(t, fmt.Sprintf("seed %d", seed), s, r)
		if t.Failed() {
			return
		}
	}
	if len(findings) < 6 {
		t.Errorf("the generated tables have findings of %d rules only, so they test little: %v", len(findings), findings)
	}
}

func checkReport(t *testing.T, what string, s *scan.Snapshot, r *rules.Report) {
	t.Helper()
	byPID := map[int]*scan.Process{}
	for i := range s.Processes {
		byPID[s.Processes[i].PID] = &s.Processes[i]
	}
	kept := map[int]string{}
	for _, srv := range r.Servers {
		for _, pid := range srv.PIDs {
			if before, twice := kept[pid]; twice {
				t.Errorf("%s: pid %d belongs to %s and %s", what, pid, before, srv.Server)
			}
			kept[pid] = srv.Server
		}
		if srv.Verdict == "" || srv.Because == "" || srv.Owner.Kind == "" {
			t.Errorf("%s: server %d is kept without a reason: %+v", what, srv.RootPID, srv)
		}
		if srv.Verdict == rules.Supervised != (srv.Owner.Kind == process.OwnerService) {
			t.Errorf("%s: server %d of %s is %s", what, srv.RootPID, srv.Owner.Kind, srv.Verdict)
		}
	}
	ids, safe := map[string]bool{}, map[int]bool{}
	for i, f := range r.Findings {
		if ids[f.ID] {
			t.Errorf("%s: two findings are %s", what, f.ID)
		}
		ids[f.ID] = true
		if len(f.PIDs) == 0 || f.Title == "" || len(f.Evidence) == 0 || f.Remedy.Summary == "" || len(f.Remedy.Commands) == 0 {
			t.Errorf("%s: an incomplete finding: %+v", what, f)
		}
		if i > 0 && f.Severity.Rank() > r.Findings[i-1].Severity.Rank() {
			t.Errorf("%s: a worse finding comes later", what)
		}
		var sum int64
		listed := map[int]bool{}
		for _, row := range f.Processes {
			listed[row.PID] = true
			if row.PID != f.ParentPID && row.RSSBytes != nil {
				sum += *row.RSSBytes
			}
		}
		if sum < f.RSSBytes {
			t.Errorf("%s: %s holds %d bytes, but its processes only %d", what, f.ID, f.RSSBytes, sum)
		}
		for _, list := range [][]int{f.PIDs, f.Reap.Safe, f.Reap.OnRequest} {
			if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
				t.Errorf("%s: %s has a list that is not ascending: %v", what, f.ID, list)
			}
			for _, pid := range list {
				if !listed[pid] {
					t.Errorf("%s: %s names pid %d and does not show it", what, f.ID, pid)
				}
			}
		}
		subjectsOnly := f.Rule != "runaway-parent" && f.Rule != "duplicate-sessions" // these give up what hangs on their subjects
		for _, pid := range append(slices.Clone(f.Reap.Safe), f.Reap.OnRequest...) {
			p := byPID[pid]
			if pid <= 1 || p == nil || p.State == "Z" {
				t.Errorf("%s: %s gives up pid %d", what, f.ID, pid)
				continue
			}
			if subjectsOnly && !slices.Contains(f.PIDs, pid) {
				t.Errorf("%s: %s gives up pid %d, which is no subject", what, f.ID, pid)
			}
			if f.Rule == "zombie" || f.Rule == "runaway-parent" && slices.Contains(f.PIDs, pid) {
				t.Errorf("%s: %s gives something up", what, f.ID)
			}
			if s.Host.UID != nil && *s.Host.UID != 0 && *p.UID != *s.Host.UID {
				t.Errorf("%s: %s gives up pid %d of another user", what, f.ID, pid)
			}
		}
		for _, pid := range f.Reap.Safe {
			if slices.Contains(f.Reap.OnRequest, pid) {
				t.Errorf("%s: pid %d is in both lists of %s", what, pid, f.ID)
			}
			safe[pid] = true
			for _, svc := range s.Host.Services {
				if svc.MainPID == pid {
					t.Errorf("%s: pid %d is supervised and given up", what, pid)
				}
			}
			checkSafe(t, what, f, byPID, pid)
		}
	}
	if r.Summary.Reapable.Processes != len(safe) {
		t.Errorf("%s: %d processes are said to be reapable, %d are", what, r.Summary.Reapable.Processes, len(safe))
	}
}

// checkSafe says again, in other words than the rules, what may be ended unasked.
func checkSafe(t *testing.T, what string, f rules.Finding, byPID map[int]*scan.Process, pid int) {
	t.Helper()
	p := byPID[pid]
	if len(p.Listen) > 0 && f.Rule == "orphan" {
		t.Errorf("%s: pid %d listens and is given up as safe: %+v", what, pid, f)
	}
	// Outside of a proved per-request gateway nothing that can be talked to is safe to end: going
	// up from it there must be a dead stdin, or a parent that is gone or adopts.
	if f.Rule != "orphan" {
		return
	}
	for at, steps := p, 0; at != nil && steps < 100; at, steps = byPID[at.PPID], steps+1 {
		if at.Stdin != nil && at.Stdin.Peer == scan.PeerClosed {
			return
		}
		for _, row := range f.Processes {
			if row.Role == "client" && row.PID == at.PID {
				t.Errorf("%s: %s gives up pid %d below the client %d", what, f.ID, pid, at.PID)
			}
		}
		if at.PID == 1 || byPID[at.PPID] == nil {
			return
		}
	}
}

// The report's bytes do not depend on the order in which the processes came.
func TestOrderOfInputDoesNotMatter(t *testing.T) {
	for seed := range uint64(60) {
		s := tables.Generate(seed, 100)
		want := bytesOf(t, s)
		shuffled := *s
		shuffled.Processes = slices.Clone(s.Processes)
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(shuffled.Processes), func(i, j int) {
			shuffled.Processes[i], shuffled.Processes[j] = shuffled.Processes[j], shuffled.Processes[i]
		})
		if got := bytesOf(t, &shuffled); got != want {
			t.Fatalf("seed %d: the report depends on the order of the input:\n%s\n%s", seed, want, got)
		}
	}
}

func bytesOf(t *testing.T, s *scan.Snapshot) string {
	t.Helper()
	b, err := json.Marshal(rules.Judge(process.Recognise(s), rules.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Judging a snapshot leaves it as it was.
func TestJudgingChangesNothing(t *testing.T) {
	for seed := range uint64(40) {
		s, again := tables.Generate(seed, 80), tables.Generate(seed, 80)
		rules.Judge(process.Recognise(s), rules.Options{})
		a, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if string(a) != string(b) {
			t.Fatalf("seed %d: the snapshot was changed", seed)
		}
	}
}

// An age limit only ever takes away, and what is left has the age.
func TestOlderThanOnlyTakesAway(t *testing.T) {
	for seed := range uint64(100) {
		s := tables.Generate(seed, 120)
		given := map[int]bool{}
		for _, f := range rules.Judge(process.Recognise(s), rules.Options{}).Findings {
			for _, pid := range append(f.Reap.Safe, f.Reap.OnRequest...) {
				given[pid] = true
			}
		}
		const limit = 10 * time.Hour
		for _, f := range rules.Judge(process.Recognise(s), rules.Options{OlderThan: limit}).Findings {
			for _, pid := range append(f.Reap.Safe, f.Reap.OnRequest...) {
				if !given[pid] {
					t.Fatalf("seed %d: pid %d is only given up with an age limit", seed, pid)
				}
			}
			old := false
			for _, row := range f.Processes {
				old = old || row.AgeSeconds != nil && *row.AgeSeconds >= int64(limit.Seconds())
			}
			if !old {
				t.Fatalf("seed %d: %s has nothing that is old enough", seed, f.ID)
			}
		}
	}
}

func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := tables.Generate(1, n)
			b.ReportAllocs()
			for b.Loop() {
				rules.Judge(process.Recognise(s), rules.Options{})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/process")
		})
	}
}

// Judging takes memory, and so time, in proportion to the table: what compares every server with
// every other one would show here by a factor.
func TestJudgingIsLinear(t *testing.T) {
	taken := func(processes int) float64 {
		s := tables.Generate(1, processes)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		rules.Judge(process.Recognise(s), rules.Options{})
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	taken(100) // loads the catalog
	small, large := taken(2_000), taken(20_000)
	if ratio := large / small; ratio > 15 {
		t.Errorf("ten times the processes take %.1f times the memory", ratio)
	}
}
