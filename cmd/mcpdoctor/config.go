package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"mcpdoctor/report"
	"mcpdoctor/rules"
	"mcpdoctor/rules/configured"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/configfile"
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
		s, err := w.look(ctx, w.now(), closer{})
		if err != nil {
			return err
		}
		r := s.configured.Report()
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

// patience is how long reading the configuration files may take. They are small; a home on a server
// that does not answer must not keep anybody from the processes of this machine.
const patience = time.Second

// configure reads the configuration files and recognises what they say was started. It comes after
// the first closer look, which tells where the clients work. Broken files become problems of the
// snapshot.
func configure(ctx context.Context, getenv func(string) string, snap *scan.Snapshot, seen *process.Recognised, o scan.ExamineOptions) *configured.Attribution {
	late, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found := configfile.Read(late, configfile.Options{
		System: runtime.GOOS, Home: home(getenv), Env: getenv, Folders: configured.Folders(seen), Named: configured.Named(seen),
	})
	snap.Problems = append(snap.Problems, found.Problems()...)
	return configured.Attribute(seen, found, func(pids []int) { scan.Examine(ctx, snap, pids, o) })
}

// home is the folder of the user who runs mcpdoctor; empty when nothing tells.
func home(getenv func(string) string) string {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	if dir := getenv(name); dir != "" {
		return dir
	}
	dir, _ := os.UserHomeDir() // the same, but for systems that have neither
	return dir
}
