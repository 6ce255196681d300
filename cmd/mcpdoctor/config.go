package main

import (
	"context"

	"github.com/spf13/cobra"

	"mcpdoctor/report"
	"mcpdoctor/rules"
	"mcpdoctor/rules/look"
)

func newConfig(w *world) *cobra.Command {
	var o output
	c := verb(&cobra.Command{
		Use:   "config",
		Short: "List the configured MCP servers, how many of each run, and what invites leaks.",
		Long: "List the MCP servers in your clients' configuration files, how many instances of each run, and what invites leaks.\n" +
			"Project files are read in the directories of running clients. Environment variables are never shown; secrets are redacted.",
		Example: "  mcpdoctor config\n  mcpdoctor config -v\n  mcpdoctor config --json",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, _ []string) error {
		s, err := look.Once(ctx, w.machine, w.now(), look.Options{})
		if err != nil {
			return err
		}
		r := s.Configured.Report()
		r.Tool = rules.Tool{Name: "mcpdoctor", Version: version()}
		return printResult(w, o, "configuration", r, report.ConfigJSON, report.ConfigText)
	})
	o.flags(c, "print the configuration as JSON", "list every place that was read")
	return c
}
