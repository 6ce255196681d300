package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpdoctor/rules/command"
	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

var _ = register(Rule{
	ID:       "memory-growth",
	Order:    80,
	Title:    "a server's memory keeps growing, or is far beyond its working set",
	Severity: Warning,
	Reap:     "on request",
	Why: "An HTTP server that keeps a session for each initialize, or a server with a memory leak of its own, grows until the " +
		"machine is out of memory. " +
		"A session costs 7 to 190 KB of heap, so it takes days, or one client that connects in a loop.",
	Evidence: []string{
		"two looks (--baseline): growth by at least 64 MB and a quarter, with its rate and the time until memory is full",
		"one look: at least 2 GB, and eight times the size of the same program elsewhere in the table; or a quarter of the machine's memory",
	},
	Wrong: []string{
		"warming up: a process younger than five minutes at the first look is not compared",
		"a server that is working on something large: look again later",
		"RSS falls when the system swaps, and varies by tens of MB in a healthy server",
	},
	Remedy: []string{
		"take two looks an hour apart: mcpdoctor snapshot --out before.json, later mcpdoctor scan --baseline before.json",
		"server: expire idle sessions, limit their number, and answer 404 to an unknown session so that clients start a new one",
		"server: serve without sessions (stateless) where no state is needed",
		"update the server; until then, let its supervisor restart it regularly",
	},
	check: findGrowth,
})

const (
	growthLeast   = 64 << 20        // less is noise: 200 requests grow a healthy Node server by 29 MB
	growthPart    = 0.25            // of its size at the first look
	growthBetween = time.Minute     // two looks closer than this show no rate
	warmUp        = 5 * time.Minute // how long a server loads what it needs

	hugeLeast = 2 << 30 // language servers and browsers stay below
	hugeTimes = 8       // times the usual size of the same program
	hugeShare = 0.25    // of the machine's memory
)

func findGrowth(j *judgement) {
	before := j.before()
	program := func(in *process.Instance) string { return command.Canonical(in.Recognition.Command.Program) }
	for _, like := range grouped(j.WithRole(process.RoleServer, process.RoleGateway), program) {
		slices.SortFunc(like, func(a, b *process.Instance) int { return cmp.Compare(a.Size(), b.Size()) })
		usual := like[(len(like)-1)/2].Size()
		for _, in := range j.oldEnough(like) {
			evidence := j.grown(in, before)
			if len(evidence) == 0 {
				evidence = j.huge(in, usual)
			}
			if len(evidence) > 0 {
				j.growth(in, evidence)
			}
		}
	}
}

// before returns the processes of the baseline. That it cannot show growth is a problem.
func (j *judgement) before() map[scan.ID]*scan.Process {
	if j.Baseline == nil {
		return nil
	}
	if between := j.Now.Sub(j.Baseline.Taken); between < growthBetween {
		j.out.Problems = append(j.out.Problems, fmt.Sprintf("the baseline is only %s older: growth needs at least %s",
			format.Age(max(0, between)), format.Age(growthBetween)))
		return nil
	}
	before := map[scan.ID]*scan.Process{}
	for i := range j.Baseline.Processes {
		before[j.Baseline.Processes[i].ID()] = &j.Baseline.Processes[i]
	}
	if !slices.ContainsFunc(j.Instances, func(in *process.Instance) bool {
		return in.Role != process.RoleClient && in.Main().Start != 0 && before[in.Main().ID()] != nil
	}) {
		j.out.Problems = append(j.out.Problems,
			"no server of the baseline is still running: it is of another machine, or has no exact start times (text of ps)")
	}
	return before
}

// grown compares an instance with itself in the baseline.
func (j *judgement) grown(in *process.Instance, before map[scan.ID]*scan.Process) []string {
	var was, is int64
	for _, m := range in.Members {
		p := j.Process(m)
		old := before[p.ID()]
		if old == nil || p.Start == 0 || p.RSSBytes == nil || old.RSSBytes == nil {
			continue // started since: a new helper is no growth
		}
		if old.Started.IsZero() || j.Baseline.Taken.Sub(old.Started) < warmUp {
			continue
		}
		was, is = was+old.RSS()+old.Swap(), is+p.RSS()+p.Swap()
	}
	more := is - was
	if was == 0 || more < growthLeast || float64(more) < growthPart*float64(was) {
		return nil
	}
	between := j.Now.Sub(j.Baseline.Taken)
	perHour := float64(more) / between.Hours()
	out := []string{fmt.Sprintf("from %s to %s in %s: %s an hour",
		format.Bytes(was), format.Bytes(is), format.Age(between), format.Bytes(int64(perHour)))}
	if left := j.Snapshot.Host.MemoryAvailableBytes; left > 0 {
		lasts := time.Duration(float64(left) / perHour * float64(time.Hour))
		out = append(out, fmt.Sprintf("at this rate the %s that are free last %s", format.Bytes(left), format.Age(lasts)))
	}
	return out
}

// huge compares an instance with the usual size of its program, and with the machine.
func (j *judgement) huge(in *process.Instance, usual int64) []string {
	size := in.Size()
	if size < hugeLeast {
		return nil
	}
	var out []string
	if usual > 0 && size/usual >= hugeTimes {
		out = append(out, fmt.Sprintf("it holds %s; the same program elsewhere holds %s", format.Bytes(size), format.Bytes(usual)))
	}
	if total := j.Snapshot.Host.MemoryTotalBytes; total > 0 && float64(size) >= hugeShare*float64(total) {
		out = append(out, fmt.Sprintf("it holds %s, %.0f %% of the machine's memory", format.Bytes(size), 100*float64(size)/float64(total)))
	}
	if age, ok := in.Age(); ok && len(out) > 0 && age > 0 {
		perMinute := format.Bytes(int64(float64(size) / age.Minutes()))
		out = append(out, fmt.Sprintf("that is %s for each minute of its %s", perMinute, format.Age(age)))
	}
	return out
}

func (j *judgement) growth(in *process.Instance, evidence []string) {
	c := claim{
		key: fmt.Sprint(in.Main().ID()), subjects: []*process.Instance{in}, evidence: evidence, instead: true,
		title: fmt.Sprintf("%s has grown to %s", in, format.Bytes(in.Size())),
		remedy: Remedy{
			Summary:  "restart it, update it, and look again in an hour",
			Steps:    []string{"if it keeps HTTP sessions: expire idle ones, limit their number, answer 404 to an unknown one; or serve stateless"},
			Commands: []string{"mcpdoctor snapshot --out before.json", "mcpdoctor scan --baseline before.json"},
		},
	}
	if j.decisions[in] == nil && in.Service == nil { // what another rule has claimed is not offered a second time
		c.onRequest = c.subjects
	}
	if len(in.Listen()) > 0 {
		c.evidence = append(c.evidence, "it listens on "+strings.Join(in.Listen(), ", "))
	}
	j.report(c)
}
