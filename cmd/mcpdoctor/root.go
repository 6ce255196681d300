package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes, which are those of the package comment.
const (
	exitClean    = 0
	exitFindings = 1
	exitTrouble  = 2
)

// errFound is the outcome of a scan that found something.
var errFound = errors.New("findings")

// run is the whole command: arguments in, exit code out.
func run(ctx context.Context, args []string, w *world) int {
	root := newRoot(w)
	root.SetArgs(args)
	accepted := false // the flags and arguments; an error before that is one of usage
	root.PersistentPreRun = func(*cobra.Command, []string) { accepted = true }
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitClean
	case errors.Is(err, errFound), errors.Is(err, errLeft):
		return exitFindings
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return exitTrouble // main prints that it was interrupted
	}
	if p := (*problem)(nil); !accepted && !errors.As(err, &p) {
		err = &problem{what: usageWords(err), hint: fmt.Sprintf("%s --help shows what it takes", cmd.CommandPath())}
	}
	w.say(err)
	return exitTrouble
}

// usageWords turns a message of cobra's into one of ours.
func usageWords(err error) string {
	words, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(words, ` for "mcpdoctor"`)
}

// verb makes a command of what it does.
func verb(c *cobra.Command, do func(ctx context.Context, args []string) error) *cobra.Command {
	c.RunE = func(cmd *cobra.Command, args []string) error { return do(cmd.Context(), args) }
	return c
}

// help is the layout of --help: usage, one sentence, a line for each command and flag, examples.
const help = `Usage: {{.UseLine}}

{{with or .Long .Short}}{{.}}{{end}}
{{if .HasAvailableSubCommands}}
Commands:
{{range .Commands}}{{if .IsAvailableCommand}}  {{rpad .Name .NamePadding}} {{.Short}}
{{end}}{{end}}{{end}}{{if .HasAvailableFlags}}
Flags:
{{.Flags.FlagUsages | trimTrailingWhitespaces}}
{{end}}{{if .HasExample}}
Examples:
{{.Example}}
{{end}}`

func newRoot(w *world) *cobra.Command {
	root := &cobra.Command{
		Use:           "mcpdoctor COMMAND",
		Short:         "Finds leaked MCP server processes, says what made them leak, and terminates exactly those.",
		Example:       "  mcpdoctor scan\n  mcpdoctor explain spawn-per-request\n  mcpdoctor reap --older-than 1h",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.DisableFlagsInUseLine = true
	root.SetHelpTemplate(help)
	root.SetIn(w.in)
	root.SetOut(w.out)
	root.SetErr(w.err)
	root.SetVersionTemplate("mcpdoctor {{.Version}}\n")
	root.AddCommand(newScan(w), newReap(w), newSnapshot(w), newConfig(w), newProbe(w),
		newSchedule(w), newExplain(w), newRules(w), newVersion(w), newCheck(w))
	root.AddCommand(newCheckParts(w)...)
	root.InitDefaultCompletionCmd()
	return root
}

func newVersion(w *world) *cobra.Command {
	return verb(&cobra.Command{
		Use: "version", Short: "Print the version.", Args: cobra.NoArgs,
	}, func(context.Context, []string) error {
		_, err := io.WriteString(w.out, "mcpdoctor "+version()+"\n")
		return err
	})
}
