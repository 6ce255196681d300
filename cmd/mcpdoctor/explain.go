package main

import (
	"context"

	"github.com/spf13/cobra"

	"mcpdoctor/report"
	"mcpdoctor/rules"
)

func newExplain(w *world) *cobra.Command {
	return verb(&cobra.Command{
		Use:               "explain [RULE]",
		Short:             "Explain a rule: what it looks for, when it can be wrong, what to change.",
		Example:           "  mcpdoctor explain\n  mcpdoctor explain orphan",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(titles(rules.Rules()), cobra.ShellCompDirectiveNoFileComp),
	}, func(_ context.Context, args []string) error {
		o := report.Options{Width: w.width(), Color: w.colour("auto")}
		if len(args) == 0 {
			return report.RuleList(w.out, rules.Rules(), o)
		}
		r := rules.Lookup(args[0])
		if r == nil {
			return &problem{what: "there is no rule " + args[0], hint: "mcpdoctor rules lists them"}
		}
		return report.Explain(w.out, r, o)
	})
}

func newRules(w *world) *cobra.Command {
	var asJSON bool
	c := verb(&cobra.Command{
		Use: "rules", Short: "List the rules.", Example: "  mcpdoctor rules --json", Args: cobra.NoArgs,
	}, func(context.Context, []string) error {
		if asJSON {
			return report.RulesJSON(w.out, rules.Rules())
		}
		return report.RuleList(w.out, rules.Rules(), report.Options{Width: w.width(), Color: w.colour("auto")})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print the rules, with all their texts, as JSON")
	return c
}
