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
		Short: "Save the process table, for scan --from.",
		Long: "Save the process table as JSON, one process a line, for scan --from on any machine.\n" +
			"Secrets in command lines are redacted; check the file before you share it.",
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
		// For its owner only: command lines say a lot even without their secrets.
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
	c.Flags().BoolVar(&pss, "pss", false, "read PSS, the memory that terminating frees (slow for large processes)")
	fileFlag(c, &out, "out", "write to this `file` instead of stdout")
	return c
}
