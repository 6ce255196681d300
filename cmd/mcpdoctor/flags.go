package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpdoctor/rules"
)

// choice is a flag that takes one of a few words.
type choice struct {
	value string
	of    []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.of, "|") }

func (c *choice) Set(s string) error {
	if !slices.Contains(c.of, s) {
		return fmt.Errorf("use one of %s", strings.Join(c.of, ", "))
	}
	c.value = s
	return nil
}

// fileName is a flag that takes the name of a file. An empty name is an unset variable of a script, and not a flag
// that was not given.
type fileName struct{ name *string }

func (f *fileName) String() string {
	if f.name == nil {
		return ""
	}
	return *f.name
}
func (f *fileName) Type() string { return "file" }

func (f *fileName) Set(name string) error {
	if name == "" {
		return fmt.Errorf("the name is empty")
	}
	*f.name = name
	return nil
}

// span is a flag that takes a duration, days included: 90s, 10m, 1h30m, 2d.
type span struct{ time.Duration }

func (s *span) Type() string { return "duration" }

// String is the shortest form that Set accepts: 1h and not 1h0m0s, 2d and not 48h0m0s.
func (s *span) String() string {
	const day = 24 * time.Hour
	days := min(s.Duration/day, math.MaxUint16) // Set takes no more of them
	rest := s.Duration - days*day
	if rest == 0 && days > 0 {
		return fmt.Sprintf("%dd", days)
	}
	text := rest.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	if days > 0 {
		text = fmt.Sprintf("%dd%s", days, text)
	}
	return text
}

func (s *span) Set(text string) error {
	rest := text
	var days time.Duration
	if d, after, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseUint(d, 10, 16)
		if err != nil {
			return fmt.Errorf("use a duration such as 90s, 10m, 1h30m or 2d")
		}
		days, rest = time.Duration(n)*24*time.Hour, after
	}
	var d time.Duration
	if rest != "" || days == 0 {
		var err error
		if d, err = time.ParseDuration(rest); err != nil || d < 0 {
			return fmt.Errorf("use a duration such as 90s, 10m, 1h30m or 2d")
		}
	}
	if days > math.MaxInt64-d {
		return fmt.Errorf("the duration is too long")
	}
	s.Duration = days + d
	return nil
}

// ruleIDs is a repeatable flag that names a rule.
type ruleIDs struct{ ids []string }

func (r *ruleIDs) String() string { return strings.Join(r.ids, ",") }
func (r *ruleIDs) Type() string   { return "rule" }

func (r *ruleIDs) Set(id string) error {
	switch rule := rules.Lookup(id); {
	case rule == nil:
		return fmt.Errorf("no such rule; there are %s", strings.Join(scanned(), ", "))
	case rule.Probe:
		return fmt.Errorf("mcpdoctor probe URL finds it, scan and reap do not")
	}
	if !slices.Contains(r.ids, id) {
		r.ids = append(r.ids, id)
	}
	return nil
}

// scanned returns the IDs of the rules that judge processes.
func scanned() []string {
	var ids []string
	for _, r := range rules.Rules() {
		if !r.Probe {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// completeRules completes rule IDs.
func completeRules(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return titles(rules.Rules())
}

// completeScanned completes the IDs of rules that judge processes.
func completeScanned(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return titles(slices.DeleteFunc(rules.Rules(), func(r *rules.Rule) bool { return r.Probe }))
}

func titles(of []*rules.Rule) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, r := range of {
		out = append(out, r.ID+"\t"+r.Title)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// offer completes a flag from a few words.
func offer(c *cobra.Command, flag string, words []string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that does not exist
}
