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

// checkTimeout is how long the processes of a server may take to end, as a scan allows it too: clients
// on an SDK are done after 4 s, some servers need 15 s.
const checkTimeout = 20 * time.Second

const (
	// checkStartup is how long a start may take at least: a package may have to be fetched first.
	checkStartup = time.Minute

	// checkRest is how long a server that has answered is left alone, for what it starts afterwards.
	checkRest = time.Second

	// checkGrace is the time between SIGTERM and SIGKILL for processes that stay, as clients on an SDK have it:
	// docker run and the like stop their containers in that time.
	checkGrace = 2 * time.Second
)

type checkOptions struct {
	json    bool
	timeout span
	color   choice
}

func newCheck(w *world) *cobra.Command {
	o := &checkOptions{timeout: span{checkTimeout}, color: choice{value: "auto", of: []string{"auto", "always", "never"}}}
	c := verb(&cobra.Command{
		Use:   "check [flags] -- COMMAND [ARG...]",
		Short: "Start a stdio server, end it in three ways and say what it leaves behind",
		Long: "check starts a server as a client does and asks for its tools. Then it closes the server's stdin; after a second start\n" +
			"it sends SIGTERM to the first process; after a third it kills the client. Each time it looks what is left of all\n" +
			"that was started, in which layer it was lost, and what can be changed. Everything is ended afterwards.\n\n" +
			"The server is started with this environment in this folder. Each end is waited for as long as --timeout says, and\n" +
			"each start for a minute, or longer when --timeout is longer.\n\n" +
			"Exit code: 0 nothing failed, 1 something failed, 2 the command does not start or is no MCP server.",
		Example: "  mcpdoctor check -- node server.mjs\n  mcpdoctor check --timeout 5s -- npx -y @modelcontextprotocol/server-everything\n  mcpdoctor check --json -- uv run server.py",
		Args:    cobra.ArbitraryArgs,
	}, func(ctx context.Context, args []string) error { return o.run(ctx, w, args) })
	f := c.Flags()
	f.SetInterspersed(false) // what follows the command is its own
	f.BoolVar(&o.json, "json", false, "print what was found as JSON")
	f.Var(&o.timeout, "timeout", "how long the server and all that it started may take to end, each time")
	f.Var(&o.color, "color", "when to use colour")
	offer(c, "color", o.color.of)
	return c
}

func (o *checkOptions) run(ctx context.Context, w *world, command []string) error {
	switch {
	case len(command) == 0 || command[0] == "":
		return &problem{what: "there is no command to check", hint: "give it after --, as a client's configuration has it: mcpdoctor check -- node server.mjs"}
	case o.timeout.Duration < time.Second:
		return &problem{what: "--timeout is too short for a process to end", hint: "give it a second or more"}
	}
	w.finish.Store(true) // to end what it starts
	self, err := os.Executable()
	if err != nil {
		return &problem{what: "cannot find mcpdoctor's own program: " + err.Error(), hint: "start it by its path"}
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
		return &problem{what: "interrupted", hint: "what was started has been ended"}
	case err != nil:
		return &problem{what: "cannot check it: " + err.Error(), hint: "on Linux, /proc has to be mounted and readable; mcpdoctor has to be able to start itself"}
	}
	r := diagnose.Stdio(found)
	r.Taken, r.Tool = taken, rules.Tool{Name: "mcpdoctor", Version: version()}
	if o.json {
		err = report.CheckJSON(w.out, r)
	} else {
		err = report.CheckText(w.out, r, report.Options{Width: w.width(), Color: w.colour(o.color.value)})
	}
	switch {
	case err != nil:
		return fmt.Errorf("cannot write the check: %w", err)
	case r.Failed > 0:
		return errFound
	}
	return nil
}

// steps tell who waits what is done.
var steps = map[facts.Way]string{
	facts.CloseStdin: "starting it, then closing its stdin",
	facts.Terminate:  "starting it again, then sending SIGTERM to its first process",
	facts.KillClient: "starting it again behind a client, then killing the client",
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
