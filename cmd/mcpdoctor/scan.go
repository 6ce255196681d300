package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpdoctor/report"
	"mcpdoctor/rules"
	"mcpdoctor/rules/format"
	"mcpdoctor/rules/look"
)

type scanOptions struct {
	output
	from      string
	baseline  string
	rules     []string
	failOn    choice
	olderThan span
	all       bool
	pss       bool
}

func newScan(w *world) *cobra.Command {
	o := &scanOptions{failOn: choice{value: "warning", of: []string{"info", "warning", "error", "never"}}}
	c := verb(&cobra.Command{
		Use:   "scan",
		Short: "Find leaked MCP servers, and what made them leak.",
		Long: "Find leaked MCP servers, and what made them leak. Terminates nothing.\n\n" +
			"Exit code: 0 nothing at or above --fail-on, 1 findings, 2 wrong usage or no view of the processes.",
		Example: "  mcpdoctor scan\n  mcpdoctor scan --json --fail-on error\n  mcpdoctor scan --from snapshot.json\n" +
			"  ps -eo pid,ppid,etimes,rss,args | mcpdoctor scan --from -",
		Args: cobra.NoArgs,
	}, func(ctx context.Context, _ []string) error { return o.run(ctx, w) })
	o.flags(c, "print the report as JSON", "print every process, and every server with its owner")
	fileFlag(c, &o.from, "from", "read a snapshot or the text of ps from this `file` (- for stdin)")
	fileFlag(c, &o.baseline, "baseline", "compare with the earlier snapshot in this `file`")
	ruleFlag(c, &o.rules, "only findings of this `rule` (repeatable)")
	f := c.Flags()
	o.failOn.add(c, "fail-on", "lowest severity for exit code 1")
	f.Var(&o.olderThan, "older-than", "only processes at least this old")
	f.BoolVar(&o.all, "all", false, "same as -v")
	f.BoolVar(&o.pss, "pss", false, "read PSS, the memory that terminating frees (slow for large processes)")
	return c
}

func (o *scanOptions) run(ctx context.Context, w *world) error {
	o.verbose = o.verbose || o.all
	judge := rules.Options{Only: o.rules, OlderThan: o.olderThan.Duration}
	if o.from == "-" && o.baseline == "-" {
		return &problem{what: "--from and --baseline cannot both be stdin", hint: "save one of them to a file"}
	}
	var err error
	if o.baseline != "" {
		if judge.Baseline, err = w.read(o.baseline); err != nil {
			return err
		}
	}
	s, err := w.see(ctx, o.from, look.Options{PSS: o.pss, Thorough: o.verbose})
	if err != nil {
		return err
	}
	judge.Settled = s.Settled
	r := rules.Judge(s.Recognised, judge)
	r.Tool = rules.Tool{Name: "mcpdoctor", Version: version()}
	if err = printResult(w, o.output, "report", r, report.JSON, func(out io.Writer, r *rules.Report, show report.Options) error {
		show.Asked = o.asked()
		return report.Text(out, r, show)
	}); err != nil {
		return err
	}
	switch {
	case o.fails(r):
		return errFound
	case r.Parentless && o.failOn.value != "never":
		return &problem{what: "the input has no parent PIDs, so leaks cannot be detected",
			hint: "capture it with: ps -eo pid,ppid,etimes,rss,args"}
	}
	return nil
}

// asked describes what the findings were limited to; empty for all.
func (o *scanOptions) asked() string {
	var limits []string
	if len(o.rules) > 0 {
		limits = append(limits, "by "+strings.Join(o.rules, " or "))
	}
	if o.olderThan.Duration > 0 {
		limits = append(limits, "older than "+format.Age(o.olderThan.Duration))
	}
	return strings.Join(limits, " ")
}

// fails reports whether a finding is at least as severe as --fail-on.
func (o *scanOptions) fails(r *rules.Report) bool {
	return o.failOn.value != "never" && slices.ContainsFunc(r.Findings, func(f rules.Finding) bool {
		return f.Severity.Rank() >= rules.Severity(o.failOn.value).Rank()
	})
}
