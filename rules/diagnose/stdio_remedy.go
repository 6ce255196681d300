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

// remedy returns the steps against a cause, in the words of the rule about orphans; for helpers alone, of the rule
// about leftover helpers.
func (j *stdioJudge) remedy(t *processTree, c cause) *StdioRemedy {
	r := &StdioRemedy{Rule: "orphan", Steps: []string{}}
	if c.stdin {
		runtime := j.runtime(t.main)
		r.Code = rules.Watcher(runtime)
		if step, known := serverSteps[runtime]; known {
			r.Steps = append(r.Steps, step)
		} else {
			r.Steps = append(r.Steps, rules.RemedyNode, rules.RemedyPython, rules.RemedyGo)
		}
	}
	if c.signal {
		r.Steps = append(r.Steps, rules.RemedySignal)
	}
	if c.helper {
		r.Steps = append(r.Steps, rules.RemedyHelper)
		if c == (cause{helper: true}) {
			r.Rule = "leftover-helper"
		}
	}
	if c.wrapper {
		r.Steps = append(r.Steps, rules.RemedyLauncher)
		j.unwrap(t, r)
	}
	return r
}

var serverSteps = map[string]string{"node": rules.RemedyNode, "python": rules.RemedyPython, "go": rules.RemedyGo}

// runtime returns what a server is written for; empty when that is not known.
func (j *stdioJudge) runtime(p *scan.Process) string {
	if runtime := command.Parse(p, j.OS).Runtime; runtime != "" {
		return runtime
	}
	// Only the processes of the first start were examined for Go.
	if first := j.tree(j.Rest).main; first != nil && slices.Contains(j.Go, first.ID()) {
		return "go"
	}
	return ""
}

// unwrap adds how to configure the server without its wrapper.
func (j *stdioJudge) unwrap(t *processTree, r *StdioRemedy) {
	server := &config.Server{Command: j.Command[0], Args: j.Command[1:]}
	item := configured.AdviseWrapper(j.command, server, nil)
	if item == nil {
		return
	}
	r.Commands, r.Entry = item.Commands, item.Entry
	if item.Note != "" {
		r.Steps = append(r.Steps, item.Note)
	}
	if r.Entry == nil && t.main != nil {
		if _, name, ok := strings.Cut(command.CleanPath(command.Parse(t.main, j.OS).Path), "/node_modules/.bin/"); ok {
			r.Entry = &configured.Entry{Command: path.Base(name), Args: j.command.Args}
		}
	}
}
