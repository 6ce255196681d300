package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
)

// Sentences that several rules use as evidence.

// agesOf returns how old the instances are, and how regularly they were started.
func (j *judgement) agesOf(ins []*process.Instance) []string {
	var starts []time.Time
	for _, in := range ins {
		if _, ok := in.Age(); ok {
			starts = append(starts, in.Root().Started)
		}
	}
	if len(starts) == 0 {
		return nil
	}
	slices.SortFunc(starts, time.Time.Compare)
	oldest, newest := j.Now.Sub(starts[0]), j.Now.Sub(starts[len(starts)-1])
	if len(starts) == 1 {
		return []string{"it is " + format.Age(oldest) + " old"}
	}
	line := fmt.Sprintf("the oldest is %s old, the newest %s", format.Age(oldest), format.Age(newest))
	if every := format.Cadence(starts); every != "" {
		line += "; " + every
	}
	return []string{line}
}

// tally turns counted facts into sentences, the most frequent first, each with the number of subjects that
// it is true of. Only the first few are kept: the servers of a hundred gateways would each name their own.
func tally(facts map[string]int, of int) []string {
	const most = 4
	keys := slices.Sorted(maps.Keys(facts))
	slices.SortStableFunc(keys, func(a, b string) int { return facts[b] - facts[a] })
	var out []string
	for i, fact := range keys {
		switch {
		case i == most && len(keys) > most:
			return append(out, fmt.Sprintf("... and %d more like these", len(keys)-most))
		case facts[fact] == of:
			out = append(out, fact)
		default:
			out = append(out, fmt.Sprintf("%d of %d: %s", facts[fact], of, fact))
		}
	}
	return out
}

// busy is the share of one core, in percent, from which an orphan spins: servers that poll a closed stdin
// use 50 to 100 %, idle ones less than one.
const busy = 50.0

// spinning returns how many instances use the processor without a client.
func (j *judgement) spinning(ins []*process.Instance) []string {
	hot, most := 0, 0.0
	for _, in := range ins {
		for _, m := range in.Members {
			if pct, ok := j.cpu(m); ok && pct >= busy {
				hot++
				most = max(most, pct)
				break
			}
		}
	}
	if hot == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s up to %.0f %% of a core without a client", format.Plural(hot, "it uses", fmt.Sprintf("%d of them use", hot)), most)}
}

// cpu returns a process's use of one core in percent: as the source has it, else the average over its life.
func (j *judgement) cpu(node int32) (float64, bool) {
	p := j.Process(node)
	if p.CPUPercent != nil {
		return *p.CPUPercent, true
	}
	age := j.Now.Sub(p.Started)
	if p.CPUSeconds == nil || p.Started.IsZero() || age < time.Minute { // it may be starting up
		return 0, false
	}
	return *p.CPUSeconds / age.Seconds() * 100, true
}

// origins names the clients that started the instances, as their environment has it.
func (j *judgement) origins(ins []*process.Instance) string {
	seen := map[string]bool{}
	for _, in := range ins {
		for _, m := range in.Members { // the topmost is asked, since what is below inherits
			if o := origin(j.Process(m).Env); o != "" {
				seen[o] = true
				break
			}
		}
	}
	if len(seen) == 0 {
		return ""
	}
	return "started by " + format.List(slices.Sorted(maps.Keys(seen)), 3) + ", according to its environment"
}

// origin names the client whose variables a process inherited, the innermost first: an agent in an editor's
// terminal has the editor's variables too.
func origin(env map[string]string) string {
	switch {
	case env["CLAUDECODE"] != "" || env["CLAUDE_CODE_ENTRYPOINT"] != "":
		return "Claude Code"
	case env["HERMES_MCP_PARENT_PID"] != "":
		return "hermes-agent (pid " + env["HERMES_MCP_PARENT_PID"] + ")"
	case env["CURSOR_TRACE_ID"] != "":
		return "Cursor"
	case env["VSCODE_PID"] != "":
		return "VS Code (pid " + env["VSCODE_PID"] + ")"
	case env["pm_id"] != "":
		return strings.TrimSpace("pm2 app " + env["name"])
	case env["SUPERVISOR_PROCESS_NAME"] != "":
		return "supervisord program " + env["SUPERVISOR_PROCESS_NAME"]
	}
	return ""
}

// youngest returns the age of the youngest process that a reap would check: of each instance all but the
// helpers.
func (j *judgement) youngest(ins []*process.Instance) time.Duration {
	least := time.Duration(-1)
	for _, in := range ins {
		for _, m := range in.Members {
			started := j.Process(m).Started
			if j.Recognitions[m] == nil || started.IsZero() || j.Now.IsZero() {
				continue
			}
			if age := max(0, j.Now.Sub(started)); least < 0 || age < least {
				least = age
			}
		}
	}
	if least < 0 {
		return reapAges[0].least // no age is known: the usual limit
	}
	return least
}

// reapLine is the command that terminates these instances. Its age is a round one that all of them have
// reached, an hour at most.
func (j *judgement) reapLine(ins []*process.Instance, named bool) string {
	age, youngest := reapAges[len(reapAges)-1].word, j.youngest(ins) // all will have reached the last
	for _, step := range reapAges {
		if youngest >= step.least {
			age = step.word
			break
		}
	}
	line := "mcpdoctor reap --older-than " + age
	if named {
		line += " --rule " + j.rule.ID
	}
	if me := j.Snapshot.Host.UID; me != nil && *me == 0 && slices.ContainsFunc(ins, func(in *process.Instance) bool {
		uid := in.Root().UID
		return uid != nil && *uid != 0
	}) {
		line += " --all-users"
	}
	return line
}

var reapAges = []struct {
	least time.Duration
	word  string
}{
	{time.Hour, "1h"}, {30 * time.Minute, "30m"}, {10 * time.Minute, "10m"}, {5 * time.Minute, "5m"},
	{time.Minute, "1m"}, {30 * time.Second, "30s"}, {10 * time.Second, "10s"},
}
