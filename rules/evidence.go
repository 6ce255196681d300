package rules

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
)

// What several rules use to count instances and to describe them.

func name(in *process.Instance) string     { return in.Name }
func identity(in *process.Instance) string { return in.Identity }

// grouped returns the groups of instances that have a key in common, ordered by that key.
func grouped(all []*process.Instance, key func(*process.Instance) string) [][]*process.Instance {
	groups := map[string][]*process.Instance{}
	for _, in := range all {
		groups[key(in)] = append(groups[key(in)], in)
	}
	var out [][]*process.Instance
	for _, k := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, groups[k])
	}
	return out
}

// distinct returns the different values that the instances have, sorted, without the empty one.
func distinct(all []*process.Instance, value func(*process.Instance) string) []string {
	var out []string
	for _, group := range grouped(all, value) {
		if v := value(group[0]); v != "" {
			out = append(out, v)
		}
	}
	return out
}

// tally turns the fact that is known of each subject into sentences, the most frequent first, each with the number
// of subjects that it is true of. Only the first few are kept: the servers of a hundred gateways would each name
// their own.
func tally(subjects []*process.Instance, fact func(*process.Instance) string) []string {
	const most = 4
	groups := slices.DeleteFunc(grouped(subjects, fact), func(g []*process.Instance) bool { return fact(g[0]) == "" })
	slices.SortStableFunc(groups, func(a, b []*process.Instance) int { return len(b) - len(a) })
	var out []string
	for i, g := range groups {
		switch {
		case i == most:
			return append(out, fmt.Sprintf("... and %d more like these", len(groups)-most))
		case len(g) == len(subjects):
			out = append(out, fact(g[0]))
		default:
			out = append(out, fmt.Sprintf("%d of %d: %s", len(g), len(subjects), fact(g[0])))
		}
	}
	return out
}

// rss is what the instances have resident.
func rss(ins []*process.Instance) (sum int64) {
	for _, in := range ins {
		sum += in.RSS()
	}
	return sum
}

// agesOf describes how old the instances are, and how regularly they were started; "" when that is not known.
func (j *judgement) agesOf(ins []*process.Instance) string {
	var starts []time.Time
	for _, in := range ins {
		if _, ok := in.Age(); ok {
			starts = append(starts, in.Root().Started)
		}
	}
	if len(starts) == 0 {
		return ""
	}
	slices.SortFunc(starts, time.Time.Compare)
	oldest, newest := j.Now.Sub(starts[0]), j.Now.Sub(starts[len(starts)-1])
	if len(starts) == 1 {
		return "it is " + format.Age(oldest) + " old"
	}
	line := fmt.Sprintf("the oldest is %s old, the newest %s", format.Age(oldest), format.Age(newest))
	if every := format.Cadence(starts); every != "" {
		line += "; " + every
	}
	return line
}

// busy is the share of one core, in percent, from which an orphan spins: servers that poll a closed stdin
// use 50 to 100 %, idle ones less than one.
const busy = 50.0

// spinning describes how many instances use the processor without a client; "" for none.
func (j *judgement) spinning(ins []*process.Instance) string {
	hot, most := 0, 0.0
	for _, in := range ins {
		if i := slices.IndexFunc(in.Members, func(m int32) bool { return j.cpu(m) >= busy }); i >= 0 {
			hot++
			most = max(most, j.cpu(in.Members[i]))
		}
	}
	if hot == 0 {
		return ""
	}
	return fmt.Sprintf("%s up to %.0f %% of a core without a client",
		format.Plural(hot, "it uses", fmt.Sprintf("%d of them use", hot)), most)
}

// cpu returns a process's use of one core in percent: as the source has it, else the average over its life;
// 0 when neither is known.
func (j *judgement) cpu(node int32) float64 {
	p := j.Process(node)
	if p.CPUPercent != nil {
		return *p.CPUPercent
	}
	age := j.Now.Sub(p.Started)
	if p.CPUSeconds == nil || p.Started.IsZero() || age < time.Minute { // it may be starting up
		return 0
	}
	return *p.CPUSeconds / age.Seconds() * 100
}

// origins names the clients that started the instances, as their environment has it; "" for none.
func (j *judgement) origins(ins []*process.Instance) string {
	from := distinct(ins, func(in *process.Instance) string {
		for _, m := range in.Members { // the topmost is asked, since what is below inherits
			if o := origin(j.Process(m).Env); o != "" {
				return o
			}
		}
		return ""
	})
	if len(from) == 0 {
		return ""
	}
	return "started by " + format.List(from, 3) + ", according to its environment"
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

// reapLine is the command that terminates these instances, whose age is a round one that all of them have
// reached, an hour at most. The rule is named when the user has to.
func (j *judgement) reapLine(ins []*process.Instance, named bool) string {
	youngest := time.Duration(math.MaxInt64) // of what has no known age
	others := false
	for _, in := range ins {
		uid := in.Root().UID
		others = others || uid != nil && *uid != 0
		for _, m := range in.Members {
			started := j.Process(m).Started
			if j.Recognitions[m] != nil && !started.IsZero() && !j.Now.IsZero() { // a reap asks no helper's age
				youngest = min(youngest, j.Now.Sub(started))
			}
		}
	}
	age := "10s"
	for _, round := range []string{"30s", "1m", "5m", "10m", "30m", "1h"} {
		if d, _ := time.ParseDuration(round); youngest >= d {
			age = round
		}
	}
	line := "mcpdoctor reap --older-than " + age
	if named {
		line += " --rule " + j.rule.ID
	}
	if me := j.Snapshot.Host.UID; me != nil && *me == 0 && others {
		line += " --all-users"
	}
	return line
}
