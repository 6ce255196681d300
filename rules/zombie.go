package rules

import (
	"fmt"

	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
)

var _ = register(Rule{
	ID:       "zombie",
	Order:    70,
	Title:    "a client or gateway does not wait for its exited children",
	Severity: Warning,
	Reap:     "never: a zombie has exited already, and only its parent can clear it",
	Why: "An exited process stays in the table as a zombie until its parent waits for it (wait(2)). It holds no memory, but a " +
		"PID; a parent that never waits " +
		"uses PIDs up, and does not notice that its servers exit. PID 1 of a container has to wait for processes that it did not " +
		"start, and most programs do not.",
	Evidence: []string{"two or more processes in state Z below one client, gateway or server"},
	Wrong:    []string{"children that exited just now: a busy parent may need a second to wait for them"},
	Remedy: []string{
		"give the container an init that waits: docker run --init, init: true in compose, or tini or dumb-init as its entry point",
		"restart the parent: its zombies then go to PID 1, which waits for them; then update it",
	},
	check: findZombies,
})

// manyZombies is the number that is no passing moment any more: one exited child may be waited for shortly.
const manyZombies = 2

func findZombies(j *judgement) {
	below := map[*process.Instance][]*process.Instance{}
	for i, p := range j.Forest.Processes {
		if p.State != "Z" || j.Forest.Parent[i] == process.None {
			continue
		}
		if over := j.InstanceOf[j.Forest.Parent[i]]; over != nil && over.Role != process.RoleHelper {
			node := int32(i)
			below[over] = append(below[over], &process.Instance{Table: j.Table, RootNode: node, MainNode: node, Members: []int32{node}})
		}
	}
	for _, parent := range j.Instances {
		if dead := j.oldEnough(below[parent]); len(dead) >= manyZombies {
			j.zombies(parent, dead)
		}
	}
}

func (j *judgement) zombies(parent *process.Instance, dead []*process.Instance) {
	pid := j.Process(j.Forest.Parent[dead[0].RootNode]).PID
	c := claim{
		confidence: process.Certain, subjects: dead, parent: parent, key: fmt.Sprint(parent.Root().ID()),
		title:    fmt.Sprintf("%s (pid %d) has not waited for %s", parent.Name, pid, format.Count(len(dead), "exited child process")),
		evidence: []string{"they are in state Z: exited, holding a PID and no memory", j.agesOf(dead)},
		remedy: Remedy{
			Summary: fmt.Sprintf("restart %s (pid %d): a kill does nothing to a zombie", parent.Name, pid),
			Steps:   []string{"update it: it has to wait for each child that it starts"},
		},
	}
	if pid == 1 {
		c.evidence = append(c.evidence, "it is PID 1 and adopts other processes, so not all of them were MCP servers")
		c.remedy.Summary = "give the container an init that waits for children; a kill does nothing to a zombie"
		c.remedy.Steps = []string{"docker run --init, init: true in compose, or tini or dumb-init as the entry point"}
	}
	j.report(c)
}
