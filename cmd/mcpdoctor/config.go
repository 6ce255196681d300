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
		Short: "List the MCP servers that clients are configured to start, and how many run",
		Long: "config reads the configuration files of the MCP clients that it knows: those of the user who runs it, and the project\n" +
			"files of the folders that running clients work in. It lists every server by client and file, how it is started and\n" +
			"how many instances of it run now, and advises what prevents leaks. Environment variables are never shown, and\n" +
			"secrets in arguments and URLs are taken out.",
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
	f.BoolVar(&asJSON, "json", false, "print what was found as JSON")
	f.Var(&color, "color", "when to use colour")
	f.BoolVarP(&verbose, "verbose", "v", false, "list every place that was looked at, and what was there")
	offer(c, "color", color.of)
	return c
}
