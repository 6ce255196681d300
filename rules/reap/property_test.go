package reap_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/rules/reap"
	"mcpdoctor/scan"
	"mcpdoctor/testdata/tables"
)

// planned is one plan on a generated table, with what it was made from.
type planned struct {
	what    string
	snap    *scan.Snapshot
	seen    *process.Recognised
	report  *rules.Report
	consent reap.Consent
	plan    *reap.Plan
}

func planOn(what string, s *scan.Snapshot, c reap.Consent) planned {
	p := planned{what: what, snap: s, seen: process.Recognise(s), consent: c}
	p.report = rules.Judge(p.seen, rules.Options{})
	p.plan = reap.New(p.seen, p.report, c)
	return p
}

func everyRule() []string {
	var ids []string
	for _, r := range rules.Rules() {
		ids = append(ids, r.ID)
	}
	return ids
}

// eachPlan plans on generated tables, with all kinds of consent, and as all kinds of processes: mostly as one started
// from a shell of its own, sometimes as any other, and on a saved table as none.
func eachPlan(t *testing.T, seeds uint64, visit func(*testing.T, *rand.Rand, uint64, planned)) {
	if testing.Short() {
		seeds /= 8
	}
	var next atomic.Uint64
	for range runtime.GOMAXPROCS(0) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for seed := next.Add(1) - 1; seed < seeds && !t.Failed(); seed = next.Add(1) - 1 {
				r := rand.New(rand.NewPCG(seed, 11))
				visit(t, r, seed, planOf(r, seed))
			}
		})
	}
}

func planOf(r *rand.Rand, seed uint64) planned {
	s := tables.Generate(seed, int(20+seed%130))
	c := reap.Consent{
		OlderThan: []time.Duration{0, time.Minute, time.Hour, 10 * time.Hour}[r.IntN(4)],
		Rules:     [][]string{nil, nil, everyRule(), {"orphan"}, {"stale-generation", "spawn-per-request"}}[r.IntN(5)],
		AllUsers:  r.IntN(3) == 0,
	}
	switch r.IntN(4) {
	case 0:
		c.Self = s.Processes[r.IntN(len(s.Processes))].PID
	case 1:
	default:
		c.Self = addSelf(s, 1)
	}
	return planOn(fmt.Sprintf("seed %d, consent %+v", seed, c), s, c)
}

// addSelf adds a shell and mcpdoctor below it, and returns its PID.
func addSelf(s *scan.Snapshot, up int) int {
	uid := 501
	if s.Host.UID != nil {
		uid = *s.Host.UID
	}
	last := 0
	for _, p := range s.Processes {
		last = max(last, p.PID)
	}
	for i, line := range []string{"-bash", "mcpdoctor"} {
		s.Processes = append(s.Processes, scan.Process{
			PID: last + 1 + i, PPID: up, Args: []string{line}, State: "S", UID: &uid, TTY: "pts/9",
			Start: int64(1e9) + int64(i), Started: s.Taken.Add(-time.Second),
		})
		up = last + 1 + i
	}
	return up
}

func (p planned) byPID() map[int]*scan.Process {
	of := map[int]*scan.Process{}
	for i := range p.snap.Processes {
		of[p.snap.Processes[i].PID] = &p.snap.Processes[i]
	}
	return of
}

// covered returns the PIDs that the consent covers.
func (p planned) covered() map[int]bool {
	out := map[int]bool{}
	for _, f := range p.report.Findings {
		named := slices.Contains(p.consent.Rules, f.Rule)
		if named || len(p.consent.Rules) == 0 {
			for _, pid := range f.Reap.Safe {
				out[pid] = true
			}
		}
		if named {
			for _, pid := range f.Reap.OnRequest {
				out[pid] = true
			}
		}
	}
	return out
}

// counts shows that the generator tests what it is for.
type counts struct {
	mu                                           sync.Mutex
	planned, kept, younger, confirmed, unplanned int
	byRule                                       map[string]int
}

// TestEveryPlan checks what holds for every plan, in other words than the plan's own.
func TestEveryPlan(t *testing.T) {
	n := counts{byRule: map[string]int{}}
	t.Run("seeds", func(t *testing.T) {
		eachPlan(t, 1000, func(t *testing.T, r *rand.Rand, seed uint64, p planned) {
			checkPlan(t, p)
			n.mu.Lock()
			n.planned += len(p.plan.Instances)
			n.kept += len(p.plan.Kept)
			for _, d := range p.plan.Instances {
				n.byRule[d.Rule]++
			}
			n.mu.Unlock()
			checkOlder(t, r, p, &n)
			if seed%10 == 0 {
				checkOrderOfInput(t, r, p)
			}
			if seed%2 == 0 {
				checkConfirm(t, r, p, &n) // which changes the plan
			}
		})
	})
	if testing.Short() {
		return
	}
	if n.planned < 1000 || n.kept < 1000 || len(n.byRule) < 5 || n.younger == 0 || n.confirmed == 0 || n.unplanned == 0 {
		t.Errorf("the generator does not test the plan: %d planned (by rule %v), %d kept, %d too young, %d confirmed, %d not confirmed",
			n.planned, n.byRule, n.kept, n.younger, n.confirmed, n.unplanned)
	}
}

func checkPlan(t *testing.T, p planned) {
	t.Helper()
	of, covered := p.byPID(), p.covered()
	above := map[int]bool{}
	for at, steps := of[p.consent.Self], 0; at != nil && steps < 1000; steps++ {
		above[at.PID] = true
		up := of[at.PPID]
		if up != nil && up.Start > at.Start {
			break // not the parent, but a process with its PID: Windows
		}
		at = up
	}
	owner := of[p.consent.Self]
	if p.consent.Self == 0 {
		owner = &scan.Process{UID: p.snap.Host.UID}
	}
	all := p.consent.AllUsers && p.snap.Host.UID != nil && *p.snap.Host.UID == 0
	twice := map[int]bool{}
	for _, d := range p.plan.Instances {
		if d.Outcome != reap.Planned || len(d.Processes) == 0 || d.Rule == "" || d.Finding == "" {
			t.Errorf("%s: an incomplete instance: %+v", p.what, d)
		}
		for _, one := range d.Processes {
			proc := of[one.PID]
			switch {
			case one.PID <= 1, proc == nil, proc.State == "Z", proc.Start == 0, proc.Started.IsZero(), len(proc.Args) == 0 && proc.Cmdline == "":
				t.Errorf("%s: pid %d must never be signalled: %+v", p.what, one.PID, proc)
			case twice[one.PID]:
				t.Errorf("%s: pid %d is planned twice", p.what, one.PID)
			case above[one.PID]:
				t.Errorf("%s: pid %d is mcpdoctor or above it", p.what, one.PID)
			case !covered[one.PID]:
				t.Errorf("%s: pid %d is planned without consent", p.what, one.PID)
			case p.snap.Taken.Sub(proc.Started) < p.consent.OlderThan:
				t.Errorf("%s: pid %d is too young", p.what, one.PID)
			case !all && owner.UID != nil && *proc.UID != *owner.UID:
				t.Errorf("%s: pid %d is another user's", p.what, one.PID)
			case slices.ContainsFunc(p.snap.Host.Services, func(s scan.Service) bool { return s.MainPID == one.PID }):
				t.Errorf("%s: pid %d is a service", p.what, one.PID)
			case one.Role == string(process.RoleClient) && (d.Role != process.RoleClient || proc.TTY != "-"):
				t.Errorf("%s: pid %d is a client that may be in use", p.what, one.PID)
			}
			twice[one.PID] = true
		}
		checkStages(t, p, d, of)
		checkWhole(t, p, d)
	}
	if p.consent.Self != 0 && len(p.plan.Instances) > 0 && owner == nil {
		t.Errorf("%s: planned without mcpdoctor in the table", p.what)
	}
	for _, k := range p.plan.Kept {
		if k.Reason == "" || len(k.PIDs) == 0 {
			t.Errorf("%s: kept without a reason: %+v", p.what, k)
		}
		for _, pid := range k.PIDs {
			if twice[pid] {
				t.Errorf("%s: pid %d is planned and kept", p.what, pid)
			}
		}
	}
	said := map[int]bool{}
	for _, k := range p.plan.Kept {
		for _, pid := range k.PIDs {
			said[pid] = true
		}
	}
	for _, d := range p.plan.Instances {
		for _, k := range d.Left {
			said[k.PIDs[0]] = true
		}
	}
	for pid := range covered {
		if !twice[pid] && !said[pid] {
			t.Errorf("%s: pid %d is selected and not mentioned", p.what, pid)
		}
	}
}

// checkStages checks the order in which an instance is terminated: launchers after servers,
// helpers last, and within a stage children before their parents.
func checkStages(t *testing.T, p planned, d reap.PlannedInstance, of map[int]*scan.Process) {
	t.Helper()
	stage := func(s reap.Target) int {
		switch {
		case d.Role == process.RoleHelper && s.PID == d.RootPID:
			return 0
		case s.Role == string(process.RoleHelper), d.Role == process.RoleHelper:
			return 2
		case s.Role == string(process.RoleLauncher):
			return 1
		}
		return 0
	}
	asked := map[int]bool{}
	for i, s := range d.Processes {
		if i > 0 && stage(s) < stage(d.Processes[i-1]) {
			t.Errorf("%s: pid %d (%s) comes after pid %d (%s)", p.what, s.PID, s.Role, d.Processes[i-1].PID, d.Processes[i-1].Role)
		}
		up := of[s.PID].PPID
		parentInStage := func(o reap.Target) bool { return o.PID == up && stage(o) == stage(s) }
		if asked[up] && slices.ContainsFunc(d.Processes, parentInStage) {
			t.Errorf("%s: pid %d is asked after its parent %d", p.what, s.PID, up)
		}
		asked[s.PID] = true
	}
	ids := 0
	for _, g := range p.plan.Groups() {
		for _, st := range g.Stages {
			ids += len(st)
			for _, id := range st {
				if id.Start == 0 || of[id.PID].Start != id.Start {
					t.Errorf("%s: a group names %+v", p.what, id)
				}
			}
		}
	}
	want := p.plan.Summary.Processes
	if p.consent.Self == 0 {
		want = 0 // nothing will be signalled
	}
	if ids != want {
		t.Errorf("%s: %d processes are in groups, not %d", p.what, ids, want)
	}
}

// checkWhole checks that launchers and servers of an instance are terminated together or not at all.
func checkWhole(t *testing.T, p planned, d reap.PlannedInstance) {
	t.Helper()
	has := map[int]bool{}
	for _, s := range d.Processes {
		has[s.PID] = true
	}
	if !has[d.RootPID] {
		t.Errorf("%s: %s is planned without its first process %d", p.what, d.Server, d.RootPID)
	}
	role := map[int]string{}
	for _, f := range p.report.Findings {
		for _, row := range f.Processes {
			role[row.PID] = row.Role
		}
	}
	for _, s := range p.report.Servers {
		if s.RootPID != d.RootPID {
			continue
		}
		for _, pid := range s.PIDs {
			if !has[pid] && role[pid] != string(process.RoleHelper) {
				t.Errorf("%s: %s (pid %d) is planned without pid %d, its %s", p.what, d.Server, d.RootPID, pid, role[pid])
			}
		}
	}
}

// checkOlder checks that a larger age only takes away.
func checkOlder(t *testing.T, r *rand.Rand, p planned, n *counts) {
	t.Helper()
	older := p.consent
	older.OlderThan += time.Duration(r.Int64N(int64(48 * time.Hour)))
	after := reap.New(p.seen, p.report, older).PIDs()
	subset(t, p.what+", older than "+older.OlderThan.String(), after, p.plan.PIDs())
	if len(after) < len(p.plan.PIDs()) {
		n.mu.Lock()
		n.younger++
		n.mu.Unlock()
	}
}

// checkConfirm checks that what is confirmed was planned twice, whatever happened between the looks; and that all of
// it is confirmed if nothing happened.
func checkConfirm(t *testing.T, r *rand.Rand, first planned, n *counts) {
	t.Helper()
	same := reap.New(first.seen, first.report, first.consent)
	same.Confirm(first.plan)
	if got, want := jsonOf(t, same), jsonOf(t, first.plan); got != want {
		t.Errorf("%s: a plan does not confirm itself:\n%s\n%s", first.what, want, got)
	}
	second := planOn(first.what, tables.Later(r, first.snap, first.consent.Self), first.consent)
	plannedFirst, plannedSecond := first.plan.PIDs(), second.plan.PIDs()
	left := second.plan
	left.Confirm(first.plan)
	subset(t, first.what+": confirmed, and not planned at first,", left.PIDs(), plannedFirst)
	subset(t, first.what+": confirmed, and not planned later,", left.PIDs(), plannedSecond)
	was, now := first.byPID(), second.byPID()
	for _, pid := range left.PIDs() {
		if now[pid].Start != was[pid].Start {
			t.Errorf("%s: pid %d was reused", first.what, pid)
		}
	}
	mentioned := map[int]bool{}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range left.Instances {
		for _, s := range d.Processes {
			mentioned[s.PID] = true
		}
		if d.Outcome == reap.Planned {
			n.confirmed++
			checkWhole(t, second, d)
			continue
		}
		n.unplanned++
		if d.Reason == "" {
			t.Errorf("%s: %d is %s without a reason", first.what, d.RootPID, d.Outcome)
		}
	}
	for _, d := range first.plan.Instances {
		if !slices.ContainsFunc(d.Processes, func(s reap.Target) bool { return mentioned[s.PID] }) {
			t.Errorf("%s: %d was planned and is not mentioned", first.what, d.RootPID)
		}
	}
}

// checkOrderOfInput checks that a plan does not depend on the order of the processes.
func checkOrderOfInput(t *testing.T, r *rand.Rand, p planned) {
	t.Helper()
	shuffled := *p.snap
	shuffled.Processes = slices.Clone(p.snap.Processes)
	r.Shuffle(len(shuffled.Processes), func(i, j int) {
		shuffled.Processes[i], shuffled.Processes[j] = shuffled.Processes[j], shuffled.Processes[i]
	})
	if got, want := jsonOf(t, planOn(p.what, &shuffled, p.consent).plan), jsonOf(t, p.plan); got != want {
		t.Errorf("%s: the plan depends on the order of the input:\n%s\n%s", p.what, want, got)
	}
}

func jsonOf(t *testing.T, p *reap.Plan) string {
	t.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func subset(t *testing.T, what string, some, all []int) {
	t.Helper()
	for _, pid := range some {
		if !slices.Contains(all, pid) {
			t.Errorf("%s: pid %d", what, pid)
		}
	}
}
