package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"mcpdoctor/report"
	"mcpdoctor/rules"
	"mcpdoctor/rules/diagnose"
	"mcpdoctor/scan/facts"
	"mcpdoctor/scan/stdio"
)

const (
	// checkTimeout is how long the processes of a server may take to exit, as in a scan: clients on an SDK kill
	// them after 4 s, some servers need 15 s.
	checkTimeout = 20 * time.Second

	// checkStartup is how long a start may take at least: a package may have to be downloaded.
	checkStartup = time.Minute

	// checkRest is how long a server is left alone after the handshake: it may start helpers then.
	checkRest = time.Second

	// checkGrace is the time between SIGTERM and SIGKILL for processes that stay, as clients on an SDK have it:
	// docker run and the like stop their containers in that time.
	checkGrace = 2 * time.Second
)

type checkOptions struct {
	output
	timeout span
}

func newCheck(w *world) *cobra.Command {
	o := &checkOptions{timeout: span{checkTimeout}}
	c := verb(&cobra.Command{
		Use:   "check [flags] -- COMMAND [ARG...]",
		Short: "Test whether a stdio server exits with its client.",
		Long: "Start a stdio MCP server, shut it down in three ways, and report the processes that stay. The three ways, each after a\n" +
			"fresh start: close its stdin, send SIGTERM to its first process, kill its client.\n\n" +
			"The server runs in this directory with this environment. No tool is called. All its processes are terminated afterwards.\n\n" +
			"Exit code: 0 all passed, 1 something failed, 2 the command does not start or is no MCP server.",
		Example: "  mcpdoctor check -- node server.mjs\n  mcpdoctor check --timeout 5s -- npx -y @modelcontextprotocol/server-everything\n  mcpdoctor check --json -- uv run server.py",
		Args:    cobra.ArbitraryArgs,
	}, func(ctx context.Context, args []string) error { return o.run(ctx, w, args) })
	o.flags(c, "print the result as JSON", "")
	f := c.Flags()
	f.SetInterspersed(false) // flags after the command belong to it
	f.Var(&o.timeout, "timeout", "how long all processes may take to exit, each time")
	return c
}

func (o *checkOptions) run(ctx context.Context, w *world, command []string) error {
	switch {
	case len(command) == 0 || command[0] == "":
		return &problem{what: "there is no command to check", hint: "give the command of the client's configuration after --: mcpdoctor check -- node server.mjs"}
	case o.timeout.Duration < time.Second:
		return &problem{what: "--timeout is too short for a process to exit", hint: "it must be at least 1s"}
	}
	w.finish.Store(true) // to terminate what it starts
	self, err := os.Executable()
	if err != nil {
		return &problem{what: "cannot find mcpdoctor's own program: " + err.Error(), hint: "start mcpdoctor by its path"}
	}
	taken := w.now()
	found, err := stdio.Check(ctx, stdio.Options{
		Command: command, Env: os.Environ(),
		Startup: max(checkStartup, o.timeout.Duration), Rest: checkRest, Timeout: o.timeout.Duration, Grace: checkGrace,
		Client: []string{self, clientVerb, "--"}, Supervisor: []string{self, supervisorVerb, "--"},
		Name: "mcpdoctor", Version: version(), Now: time.Now,
		Step: func(way facts.Way) { fmt.Fprintln(w.err, "mcpdoctor: "+steps[way]) },
	})
	var f *facts.Failure
	switch {
	case errors.As(err, &f):
		what, hint := diagnose.Unchecked(f, command)
		return &problem{what: report.Line(what), hint: report.Line(hint)}
	case err != nil && ctx.Err() != nil:
		return &problem{what: "interrupted", hint: "all processes of the server have been terminated"}
	case err != nil:
		return &problem{what: "cannot check it: " + err.Error(), hint: "mcpdoctor must be able to start itself, and on Linux to read /proc"}
	}
	r := diagnose.Stdio(found)
	r.Taken, r.Tool = taken, rules.Tool{Name: "mcpdoctor", Version: version()}
	if err := printResult(w, o.output, "result", r, report.CheckJSON, report.CheckText); err != nil {
		return err
	}
	if r.Failed > 0 {
		return errFound
	}
	return nil
}

// steps are printed while the user waits.
var steps = map[facts.Way]string{
	facts.CloseStdin: "starting it, then closing its stdin",
	facts.Terminate:  "starting it again, then sending SIGTERM to its first process",
	facts.KillClient: "starting it again below a client, then killing the client",
}

// Hidden verbs, with which check starts mcpdoctor again.
const (
	clientVerb     = "check-client"
	supervisorVerb = "check-supervisor"
)

// newCheckParts returns the verbs of the two other processes of a check: the client that is killed, and the
// supervisor, which starts everything and terminates it even if mcpdoctor is killed.
func newCheckParts(w *world) []*cobra.Command {
	client := verb(&cobra.Command{Use: clientVerb, Hidden: true, Args: cobra.MinimumNArgs(1)}, func(_ context.Context, args []string) error {
		return stdio.RunClient(args, w.in, w.out, w.err)
	})
	supervisor := verb(&cobra.Command{Use: supervisorVerb, Hidden: true, Args: cobra.MinimumNArgs(2)}, func(ctx context.Context, args []string) error {
		w.finish.Store(true) // to terminate what it starts
		return stdio.RunSupervisor(ctx, args, os.Environ(), w.in, w.out, time.Now)
	})
	return []*cobra.Command{client, supervisor}
}
