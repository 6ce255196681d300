package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"mcpdoctor/report"
	"mcpdoctor/rules/look"
)

func newSnapshot(w *world) *cobra.Command {
	var out string
	var pss bool
	c := verb(&cobra.Command{
		Use:   "snapshot",
		Short: "Save what can be seen, for later or for somebody else",
		Long: "snapshot writes the process table as one JSON value, one process a line, which scan --from judges anywhere.\n" +
			"Secrets in command lines are taken out. Look at it before you give it away all the same.",
		Example: "  mcpdoctor snapshot --out before.json\n  mcpdoctor snapshot | ssh host mcpdoctor scan --from -",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, _ []string) error {
		s, err := look.Once(ctx, w.machine, w.now(), look.Options{PSS: pss, Thorough: true})
		if err != nil {
			return err
		}
		if out == "" || out == "-" {
			return report.Snapshot(w.out, s.Snapshot)
		}
		// Readable by its owner only: command lines tell a lot even without their secrets.
		f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return &problem{what: "cannot write the snapshot: " + err.Error(), hint: "choose another place with --out"}
		}
		if err := report.Snapshot(f, s.Snapshot); err != nil {
			f.Close()
			return fmt.Errorf("cannot write the snapshot: %w", err)
		}
		return f.Close()
	})
	c.Flags().BoolVar(&pss, "pss", false, "read the memory without what is shared, which is slow for large processes")
	c.Flags().Var(&fileName{&out}, "out", "write to this `file` instead of stdout")
	return c
}
