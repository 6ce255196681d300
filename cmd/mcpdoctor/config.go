package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"mcpdoctor/report"
	"mcpdoctor/rules"
	"mcpdoctor/rules/look"
)

func newConfig(w *world) *cobra.Command {
	var asJSON, verbose bool
	color := choice{value: "auto", of: []string{"auto", "always", "never"}}
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
		if asJSON {
			err = report.ConfigJSON(w.out, r)
		} else {
			err = report.ConfigText(w.out, r, report.Options{Width: w.width(), Color: w.colour(color.value), Verbose: verbose})
		}
		if err != nil {
			return fmt.Errorf("cannot write the configuration: %w", err)
		}
		return nil
	})
	f := c.Flags()
	f.BoolVar(&asJSON, "json", false, "print the configuration as JSON")
	f.Var(&color, "color", "use colour")
	f.BoolVarP(&verbose, "verbose", "v", false, "list every place that was read")
	offer(c, "color", color.of)
	return c
}
