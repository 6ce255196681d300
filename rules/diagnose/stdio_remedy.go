package diagnose

import (
	"path"
	"slices"
	"strings"

	"mcpdoctor/rules"
	"mcpdoctor/rules/command"
	"mcpdoctor/rules/configured"
	"mcpdoctor/scan"
	"mcpdoctor/scan/config"
)

// remedy is what the rule about orphans says of a server, of a wrapper, or of both; of helpers alone the
// rule about those that are left over.
func (c *checked) remedy(t *trialTree, b blame) *CheckRemedy {
	r := &CheckRemedy{Rule: "orphan", Steps: []string{}}
	if b.end {
		runtime := c.runtimeOf(t.main)
		r.Code = rules.Watcher(runtime)
		r.Steps = append(r.Steps, serverSteps(runtime)...)
	}
	if b.signal {
		r.Steps = append(r.Steps, rules.RemedySignal)
	}
	if b.helper {
		r.Steps = append(r.Steps, rules.RemedyHelper)
		if b == (blame{helper: true}) {
			r.Rule = "leftover-helper"
		}
	}
	if b.wrapper {
		r.Steps = append(r.Steps, rules.RemedyLauncher)
		c.direct(t, r)
	}
	return r
}

// serverSteps are the lines for a runtime; for one that is not known, all.
func serverSteps(runtime string) []string {
	switch runtime {
	case "node":
		return []string{rules.RemedyNode}
	case "python":
		return []string{rules.RemedyPython}
	case "go":
		return []string{rules.RemedyGo}
	}
	return []string{rules.RemedyNode, rules.RemedyPython, rules.RemedyGo}
}

// runtimeOf tells what a server was written for; empty when it cannot be told.
func (c *checked) runtimeOf(p *scan.Process) string {
	if runtime := command.Parse(p, c.OS).Runtime; runtime != "" {
		return runtime
	}
	// Each start has its own processes; it was the first that was looked at.
	if first := c.treeOf(c.Rest).main; first != nil && slices.Contains(c.Go, first.ID()) {
		return "go"
	}
	return ""
}

// direct adds how the server is configured without its wrapper, as the advice on configurations has it.
func (c *checked) direct(t *trialTree, r *CheckRemedy) {
	server := &config.Server{Command: c.Command[0], Args: c.Command[1:]}
	item := configured.AdviseWrapper(c.command, server, nil)
	if item == nil {
		return
	}
	r.Commands, r.Entry = item.Commands, item.Entry
	if item.Note != "" {
		r.Steps = append(r.Steps, item.Note)
	}
	if r.Entry == nil && t.main != nil {
		if _, name, ok := strings.Cut(command.CleanPath(command.Parse(t.main, c.OS).Path), "/node_modules/.bin/"); ok {
			r.Entry = &configured.Entry{Command: path.Base(name), Args: c.command.Args}
		}
	}
}
