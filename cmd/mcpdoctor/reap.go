package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpdoctor/report"
	"mcpdoctor/rules"
	"mcpdoctor/rules/format"
	"mcpdoctor/rules/look"
	"mcpdoctor/rules/process"
	"mcpdoctor/rules/reap"
	"mcpdoctor/scan"
	"mcpdoctor/scan/lockfile"
	"mcpdoctor/scan/terminate"
)

// How long a reap waits by default. Servers built on an SDK exit within 2 s of SIGTERM; some need longer, to close a
// browser.
const (
	usualSettle = 2 * time.Second
	usualGrace  = 5 * time.Second
)

// usualMax is how many processes one run may terminate. The largest leak reported had 2,676; anything else that would
// terminate more than 500 is probably a mistake.
const usualMax = 500

// longestWait keeps a mistyped wait from holding the lock for ever.
const longestWait = 10 * time.Minute

// verifyLimit is how long the look afterwards may take.
const verifyLimit = 10 * time.Second

type reapOptions struct {
	output
	olderThan span
	rules     []string
	yes       bool
	dryRun    bool
	grace     span
	settle    span
	max       int
	allUsers  bool
	log       string
	from      string
}

func newReap(w *world) *cobra.Command {
	o := &reapOptions{grace: span{usualGrace}, settle: span{usualSettle}, max: usualMax}
	var c *cobra.Command
	c = verb(&cobra.Command{
		Use:   "reap",
		Short: "Terminate leaked servers, and nothing else",
		Long: "Terminate the leaked servers that are safe to terminate and at least --older-than old; without it, only show them.\n" +
			"Looks twice, and asks first on a terminal.\n\n" +
			"Exit code: 0 everything planned has exited, 1 something survived, was refused or interrupted, or you answered no,\n" +
			"2 trouble before acting.",
		Example: "  mcpdoctor reap\n  mcpdoctor reap --older-than 1h\n  mcpdoctor reap --older-than 10m --rule stale-generation\n" +
			"  mcpdoctor reap --older-than 2d --yes --log reaped.jsonl",
		Args: cobra.NoArgs,
	}, func(ctx context.Context, _ []string) error {
		if err := o.check(w); err != nil {
			return err
		}
		if asked := c.Flags().Changed("older-than"); !asked || o.dryRun || o.from != "" {
			return o.show(ctx, w, asked)
		}
		return o.reap(ctx, w)
	})
	o.flags(c, "print the result as JSON", "show every process")
	f := c.Flags()
	f.Var(&o.olderThan, "older-than", "terminate processes at least this old (90s, 10m, 1h30m, 2d); required to terminate anything")
	f.Lookup("older-than").DefValue = "" // 0s would look as if all ages were meant
	ruleFlag(c, &o.rules, "only what this `rule` found, including what needs confirmation (repeatable)")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be terminated, and terminate nothing")
	f.Var(&o.grace, "grace", "time between SIGTERM and SIGKILL")
	f.Var(&o.settle, "settle", "time between the two looks; some servers need 15s to exit after their client")
	f.IntVar(&o.max, "max", o.max, "terminate nothing if more processes than this are planned")
	f.BoolVar(&o.allUsers, "all-users", false, "include other users' processes (root only)")
	fileFlag(c, &o.log, "log", "append one line of JSON per instance to this `file`")
	fileFlag(c, &o.from, "from", "plan on a saved snapshot in this `file` (- for stdin); nothing is terminated")
	return c
}

// errLeft means that a process that was to be terminated is still running.
var errLeft = errors.New("something is left")

// check refuses options that cannot be meant.
func (o *reapOptions) check(w *world) error {
	switch {
	case o.grace.Duration > longestWait || o.settle.Duration > longestWait:
		return &problem{
			what: "--grace and --settle must be at most " + format.Age(longestWait),
			hint: "no server needs longer to exit, and no other reap can run meanwhile",
		}
	case o.max < 1:
		return &problem{what: "--max must be at least 1", hint: "to terminate nothing, use --dry-run"}
	case o.allUsers && !w.root():
		return &problem{what: "--all-users is for root", hint: "run it as root, or without --all-users to terminate your own processes"}
	case o.from != "" && o.log != "":
		return &problem{what: "--log does not work with --from: there is nothing to log", hint: "leave one of them out"}
	}
	return nil
}

// show prints the plan and terminates nothing.
func (o *reapOptions) show(ctx context.Context, w *world, asked bool) error {
	s, err := w.see(ctx, o.from, look.Options{})
	if err != nil {
		return err
	}
	self := w.self
	if o.from != "" {
		self = 0
	}
	plan := o.plan(s.Recognised, s.Settled, self)
	if err := o.print(w, plan, report.Plan); err != nil || o.json {
		return err
	}
	switch {
	case o.from != "":
		fmt.Fprintln(w.out, "Nothing was terminated: this is a saved snapshot.")
	case plan.Summary.Instances > 0 && !asked:
		fmt.Fprintln(w.out, "Nothing was terminated. To terminate what is at least an hour old: mcpdoctor reap --older-than 1h")
	case plan.Summary.Instances > 0:
		fmt.Fprintln(w.out, "Nothing was terminated.")
	}
	return nil
}

// plan judges a table and plans what to terminate. settled is what was leaked at an earlier look already.
func (o *reapOptions) plan(seen *process.Recognised, settled map[scan.ID]bool, self int) *reap.Plan {
	r := rules.Judge(seen, rules.Options{Settled: settled})
	r.Tool = rules.Tool{Name: "mcpdoctor", Version: version()}
	return reap.New(seen, r, reap.Consent{OlderThan: o.olderThan.Duration, Rules: o.rules, Self: self, AllUsers: o.allUsers})
}

// reap terminates what the plan contains.
func (o *reapOptions) reap(ctx context.Context, w *world) error {
	var log io.Writer = io.Discard
	if o.log != "" { // opened first: nothing is terminated that cannot be logged
		f, err := lockfile.Append(o.log)
		if err != nil {
			return &problem{what: "cannot open the log: " + err.Error(), hint: "nothing was terminated; --log needs a file that you own and can write"}
		}
		defer f.Close()
		log = f
	}
	w.finish.Store(true) // after an interrupt it still says what it did
	plan, err := o.terminate(ctx, w)
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		fmt.Fprintln(w.err, "mcpdoctor: interrupted: nothing was terminated")
		return errLeft
	case err != nil:
		return err
	case !plan.Acted && !o.json && !w.person(): // nothing to do: cron would mail it
		return nil
	case !plan.Acted:
		plan.Acted = true
		return o.print(w, plan, report.Plan)
	}
	// The log first: printing ends the program if stdout was closed.
	err = errors.Join(report.PlanLog(log, plan, w.now()), o.print(w, plan, report.Results))
	if err != nil {
		w.say(fmt.Errorf("the processes were terminated, but this could not be recorded: %w", err))
	}
	if err != nil || plan.Failed() || ctx.Err() != nil {
		return errLeft
	}
	return nil
}

// terminate looks, asks, looks again, terminates, and verifies. The plan it returns has not acted if it was empty.
func (o *reapOptions) terminate(ctx context.Context, w *world) (*reap.Plan, error) {
	first, err := w.lookTwice(ctx, look.Options{})
	if err != nil {
		return nil, err
	}
	before := o.plan(first.Recognised, first.Settled, w.self)
	if n := before.Summary.Processes; n > o.max {
		return nil, &problem{
			what: fmt.Sprintf("%d processes would be terminated, more than %d: nothing was terminated", n, o.max),
			hint: fmt.Sprintf("see them with mcpdoctor reap --dry-run -v; then add --max %d", n),
		}
	}
	if before.Summary.Instances == 0 {
		return before, nil
	}
	settled := time.After(o.settle.Duration)
	if w.person() && !o.yes {
		if err := o.ask(ctx, w, before); err != nil {
			return nil, err
		}
	}
	select {
	case <-settled:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	unlock, err := w.lockReap()
	if err != nil {
		return nil, err
	}
	defer unlock()
	second, err := look.Once(ctx, w.machine, w.now(), look.Options{PSSOf: before.PIDs()})
	if err != nil {
		return nil, err
	}
	plan := o.plan(second.Recognised, first.Settled, w.self)
	plan.Confirm(before)
	plan.Record(terminate.Terminate(ctx, w.openProcess, plan.Groups(), o.grace.Duration))

	// An interrupt must not keep it from reporting what it did.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), verifyLimit)
	defer cancel()
	last, err := look.Once(ctx, w.machine, w.now(), look.Options{})
	if err != nil {
		plan.Problems = append(plan.Problems, "the result could not be verified: "+err.Error())
	} else {
		plan.Verify(last.Recognised)
	}
	return plan, nil
}

// lockReap takes the lock that keeps other reaps from acting at the same time.
func (w *world) lockReap() (unlock func(), err error) {
	unlock, err = w.lock()
	switch {
	case errors.Is(err, lockfile.ErrLocked):
		return nil, &problem{what: err.Error() + ": nothing was terminated", hint: "wait for it, or only look: mcpdoctor reap --dry-run"}
	case err != nil:
		return nil, &problem{what: err.Error() + ": nothing was terminated", hint: "only one reap may run at a time, which the lock ensures"}
	}
	return unlock, nil
}

// ask shows the plan and returns nil if the answer is yes.
func (o *reapOptions) ask(ctx context.Context, w *world, plan *reap.Plan) error {
	var text bytes.Buffer
	out, width := w.out, w.width()
	if o.json || width == 0 { // stdout is for the result
		out = w.err
	}
	show := report.Options{Width: width, Color: width > 0 && !o.json && w.colour(o.color.value), Verbose: o.verbose}
	if err := report.Plan(&text, plan, show); err != nil {
		return err
	}
	if _, err := out.Write(text.Bytes()); err != nil {
		return err
	}
	fmt.Fprintf(w.err, "Terminate %s? [y/N] ", format.Count(plan.Summary.Processes, "process"))
	answer := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(w.in).ReadString('\n')
		if err != nil && line == "" {
			close(answer)
			return
		}
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(w.err)
		return ctx.Err()
	case line, ok := <-answer:
		switch {
		case !ok:
			fmt.Fprintln(w.err)
			return &problem{what: "no answer: nothing was terminated", hint: "--yes does not ask, --dry-run only shows"}
		case line == "y" || line == "yes":
			return nil
		}
		fmt.Fprintln(w.err, "Nothing was terminated.")
		return errLeft
	}
}

func (o *reapOptions) print(w *world, plan *reap.Plan, text func(io.Writer, *reap.Plan, report.Options) error) error {
	return printResult(w, o.output, "result", plan, report.PlanJSON, text)
}
