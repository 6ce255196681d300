package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpdoctor/report"
	"mcpdoctor/rules"
)

// choice is a flag that takes one of a few words.
type choice struct {
	value string
	of    []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.of, "|") }

// add adds the flag to a verb.
func (c *choice) add(to *cobra.Command, flag, usage string) {
	to.Flags().Var(c, flag, usage)
	offer(to, flag, c.of)
}

func (c *choice) Set(s string) error {
	if !slices.Contains(c.of, s) {
		return fmt.Errorf("use one of %s", strings.Join(c.of, ", "))
	}
	c.value = s
	return nil
}

// output is how a verb prints its result.
type output struct {
	json    bool
	color   choice
	verbose bool
}

// flags adds --json, --color and --verbose to a verb; the last only if it says what it prints.
func (o *output) flags(c *cobra.Command, json, verbose string) {
	o.color = choice{value: "auto", of: []string{"auto", "always", "never"}}
	c.Flags().BoolVar(&o.json, "json", false, json)
	o.color.add(c, "color", "when to use colour")
	if verbose != "" {
		c.Flags().BoolVarP(&o.verbose, "verbose", "v", false, verbose)
	}
}

// printResult writes what a verb has found, as JSON or as text.
func printResult[T any](w *world, o output, what string, r T,
	asJSON func(io.Writer, T) error, asText func(io.Writer, T, report.Options) error) error {
	var err error
	if o.json {
		err = asJSON(w.out, r)
	} else {
		err = asText(w.out, r, report.Options{Width: w.width(), Color: w.colour(o.color.value), Verbose: o.verbose})
	}
	if err != nil {
		return fmt.Errorf("cannot write the %s: %w", what, err)
	}
	return nil
}

// fileFlag adds a flag that takes the name of a file. An empty name is an unset variable of a script, and not a flag
// that was not given.
func fileFlag(c *cobra.Command, to *string, flag, usage string) {
	c.Flags().Func(flag, usage, func(name string) error {
		if name == "" {
			return errors.New("the name is empty")
		}
		*to = name
		return nil
	})
}

// span is a flag that takes a duration, days included: 90s, 10m, 1h30m, 2d.
type span struct{ time.Duration }

func (s *span) Type() string { return "duration" }

// String is the shortest form that Set accepts: 1h and not 1h0m0s, 2d and not 48h0m0s.
func (s *span) String() string {
	const day = 24 * time.Hour
	days := min(s.Duration/day, math.MaxUint16) // Set takes no more of them
	rest := (s.Duration - days*day).String()
	for _, none := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(rest, none) {
			rest = rest[:len(rest)-2]
		}
	}
	switch {
	case days == 0:
		return rest
	case rest == "0s":
		return fmt.Sprintf("%dd", days)
	}
	return fmt.Sprintf("%dd%s", days, rest)
}

func (s *span) Set(text string) error {
	var badDays error
	if days, rest, ok := strings.Cut(text, "d"); ok {
		var n uint64
		n, badDays = strconv.ParseUint(days, 10, 16)
		text = fmt.Sprintf("%dh%s", n*24, rest)
	}
	d, err := time.ParseDuration(text)
	if badDays != nil || err != nil || d < 0 {
		return errors.New("use a duration such as 90s, 10m, 1h30m or 2d")
	}
	s.Duration = d
	return nil
}

// ruleFlag adds the repeatable flag that names a rule which judges processes.
func ruleFlag(c *cobra.Command, to *[]string, usage string) {
	scanned := slices.DeleteFunc(rules.Rules(), func(r *rules.Rule) bool { return r.Probe })
	c.Flags().Func("rule", usage, func(id string) error {
		switch rule := rules.Lookup(id); {
		case rule == nil:
			var ids []string
			for _, r := range scanned {
				ids = append(ids, r.ID)
			}
			return fmt.Errorf("no such rule; there are %s", strings.Join(ids, ", "))
		case rule.Probe:
			return errors.New("mcpdoctor probe URL finds it, scan and reap do not")
		}
		if !slices.Contains(*to, id) {
			*to = append(*to, id)
		}
		return nil
	})
	offer(c, "rule", titles(scanned))
}

// titles are the IDs of rules with their titles, for completion.
func titles(of []*rules.Rule) []string {
	var out []string
	for _, r := range of {
		out = append(out, r.ID+"\t"+r.Title)
	}
	return out
}

// offer completes a flag from a few words.
func offer(c *cobra.Command, flag string, words []string) {
	// It fails only for a flag that does not exist.
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}
