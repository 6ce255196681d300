package rules

import (
	"fmt"
	"slices"
	"time"

	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
)

var _ = register(Rule{
	ID:       "stale-generation",
	Order:    30,
	Title:    "a running client started its servers again and kept the old ones",
	Severity: Warning,
	Reap:     "on request: the client may still use an older generation",
	Why: "Clients start their servers again on every resume, reload, new conversation or reconnection. Some never terminate the former set: " +
		"complete generations of servers run below one parent, each with an open stdin, and none is adopted.",
	Evidence: []string{
		"two or more different servers, each running several times directly below one client",
		"their start times form generations: a set starts within seconds",
		"generations older than the newest",
	},
	Wrong: []string{
		"a client that keeps one set per open conversation: the process table does not show which are open",
		"sets started within 20 seconds of the newest may belong to parallel agents: they are counted, but kept",
		"a server that was started in an older generation only, and is shared by the later ones",
	},
	Remedy: []string{
		"quit and reopen the client, which terminates the whole tree; then update it",
		"client: keep one connection per configured server and close it before opening another",
		"disable servers that you do not need in every conversation, or run them once over Streamable HTTP",
	},
	check: findGenerations,
})

const (
	// generationGap separates two generations: within one, servers start at most this far apart. A set
	// starts within a second; npx and uv may take several to fetch a package.
	generationGap = 5 * time.Second

	// parallelAgents is how close to the newest generation others are likely to be in use as well: a client
	// starts the sets of its parallel agents within seconds of each other.
	parallelAgents = 20 * time.Second
)

func findGenerations(j *judgement) {
	for _, client := range j.WithRole(process.RoleClient, process.RoleGateway) {
		j.generations(client)
	}
}

func (j *judgement) generations(client *process.Instance) {
	var repeated []*process.Instance
	for _, copies := range grouped(j.ownedServers(client), identity) {
		if len(copies) > 1 {
			repeated = append(repeated, copies...)
		}
	}
	repeated = slices.DeleteFunc(repeated, func(in *process.Instance) bool { return in.Root().Started.IsZero() })
	kinds := len(distinct(repeated, identity))
	if kinds < 2 {
		return
	}
	j.SortByStart(repeated)
	gens := split(repeated)
	newest := gens[len(gens)-1]
	var stale, parallel []*process.Instance
	sets := 1
	for _, gen := range gens[:len(gens)-1] {
		if newest[0].Root().Started.Sub(gen[0].Root().Started) <= parallelAgents {
			parallel = append(parallel, gen...)
			sets++
		} else {
			stale = append(stale, gen...)
		}
	}
	if len(distinct(stale, identity)) < 2 && sets < 3 {
		// Some clients start everything twice (Claude Desktop has two managers), and one server alone is
		// no generation: runaway-parent counts copies.
		return
	}
	c := claim{subjects: stale, onRequest: j.oldEnough(stale), parent: client, key: fmt.Sprint(client.Root().ID())}
	if sets > 1 {
		c.subjects = slices.Concat(stale, parallel, newest)
	}
	if c.subjects = j.claim(c.subjects); len(c.subjects) == 0 {
		return
	}
	c.title = fmt.Sprintf("%s keeps %s of its servers: %s where %d would do",
		client, format.Count(len(gens), "generation"), format.Count(len(repeated), "instance"), kinds)
	for i, gen := range gens {
		switch {
		case len(gens) <= 8 || i < 3 || i >= len(gens)-3: // of many, the first and last few tell enough
			c.evidence = append(c.evidence, generationLine(i, gen, gen[0] == newest[0]))
		case i == 3:
			c.evidence = append(c.evidence, fmt.Sprintf("... %d more generations ...", len(gens)-6))
		}
	}
	kept := "the newest generation is assumed to be in use"
	if sets > 1 {
		kept = fmt.Sprintf("the newest %d started within %s and may belong to parallel agents: they are kept", sets, format.Age(parallelAgents))
	}
	c.evidence = append(c.evidence, kept)
	latest := distinct(newest, identity)
	for _, name := range distinct(repeated, func(in *process.Instance) string {
		if slices.Contains(latest, in.Identity) {
			return ""
		}
		return in.Name
	}) {
		c.evidence = append(c.evidence, name+" has no copy in the newest generation: an older one may be in use")
	}
	c.remedy = Remedy{
		Summary: fmt.Sprintf("%s %s, which terminates all of them; then update it", client.Recognition.Client.Restart(), client.Name),
		Steps:   []string{"disable servers that you do not need in every conversation, or run them once over Streamable HTTP"},
	}
	j.report(c)
}

func generationLine(i int, gen []*process.Instance, newest bool) string {
	names := make([]string, len(gen))
	for k, in := range gen {
		names[k] = in.Name
	}
	line := fmt.Sprintf("generation %d: %s (%s)", i+1, format.Count(len(gen), "server"), format.List(names, 5))
	if age, ok := gen[0].Age(); ok {
		line += ", " + format.Age(age) + " old"
	}
	if newest {
		line += ", the newest"
	}
	return line
}

// split cuts instances, ordered by start, into generations: at each pause, and where a server comes a
// second time.
func split(ins []*process.Instance) [][]*process.Instance {
	var gens [][]*process.Instance
	seen := map[string]bool{}
	for i, in := range ins {
		if i == 0 || in.Root().Started.Sub(ins[i-1].Root().Started) > generationGap || seen[in.Identity] {
			gens = append(gens, nil)
			clear(seen)
		}
		gens[len(gens)-1] = append(gens[len(gens)-1], in)
		seen[in.Identity] = true
	}
	return gens
}
