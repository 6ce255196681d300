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

// How long a reap waits unless it is told otherwise. Servers on an SDK end within 2 s of SIGTERM;
// some take more to close a browser.
const (
	usualSettle = 2 * time.Second
	usualGrace  = 5 * time.Second
)

// usualMost is how many processes one run may end. The largest leak that was reported had 2,676; who
// has as many may say so, and what else would end so many is more likely to be a mistake.
const usualMost = 500

// longestWait keeps a mistyped wait from holding the lock for ever.
const longestWait = 10 * time.Minute

type reapOptions struct {
	olderThan span
	asked     bool // --older-than was given
	rules     ruleIDs
	yes       bool
	dryRun    bool
	grace     span
	settle    span
	max       int
	allUsers  bool
	json      bool
	log       string
	from      string
	color     choice
	verbose   bool
}

func newReap(w *world) *cobra.Command {
	o := &reapOptions{
		grace: span{usualGrace}, settle: span{usualSettle}, max: usualMost,
		color: choice{value: "auto", of: []string{"auto", "always", "never"}},
	}
	var c *cobra.Command
	c = verb(&cobra.Command{
		Use:   "reap",
		Short: "End what leaked, and nothing else",
		Long: "reap ends the leaked servers that scan calls safe to end and that are at least as old as --older-than. It looks twice,\n" +
			"asks each process to end (SIGTERM), the server before its launchers, and kills what is left after --grace. On a terminal\n" +
			"it shows what it will end and asks first; without one, as from cron, it acts. Without --older-than it only shows.\n\n" +
			"Exit code: 0 all that was planned is gone (or nothing was), 1 something survived or was refused (by the system, by your\n" +
			"answer, by an interrupt), 2 trouble before acting.",
		Example: "  mcpdoctor reap\n  mcpdoctor reap --older-than 1h\n  mcpdoctor reap --older-than 10m --rule stale-generation\n  mcpdoctor reap --older-than 2d --yes --log reaped.jsonl",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, _ []string) error {
		o.asked = c.Flags().Changed("older-than")
		return o.run(ctx, w)
	})
	f := c.Flags()
	f.Var(&o.olderThan, "older-than", "end what is at least so old (90s, 10m, 1h30m, 2d); nothing is ended without it")
	f.Lookup("older-than").DefValue = "" // nought would read as if all ages were meant
	f.Var(&o.rules, "rule", "only what this rule found, also what it gives up on request only (may be repeated)")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&o.dryRun, "dry-run", false, "show what would be ended, and end nothing")
	f.Var(&o.grace, "grace", "how long a process may take to end until it is killed")
	f.Var(&o.settle, "settle", "how long to wait until the second look; some servers take 15s to end after their client")
	f.IntVar(&o.max, "max", o.max, "refuse to end more processes than this in one run")
	f.BoolVar(&o.allUsers, "all-users", false, "end other users' processes too (for root)")
	f.BoolVar(&o.json, "json", false, "print what was done as JSON")
	f.Var(&fileName{&o.log}, "log", "append one line of JSON for each instance to this `file`")
	f.Var(&fileName{&o.from}, "from", "plan on a saved snapshot from this `file` (- for stdin); nothing is ended")
	f.Var(&o.color, "color", "when to use colour")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show every process")
	offer(c, "color", o.color.of)
	_ = c.RegisterFlagCompletionFunc("rule", completeScanned)
	return c
}

// errLeft says that something that was to be ended is still there.
var errLeft = errors.New("something is left")

// shows tells that nothing is to be ended, whatever is found.
func (o *reapOptions) shows() bool { return !o.asked || o.dryRun || o.from != "" }

func (o *reapOptions) run(ctx context.Context, w *world) error {
	if err := o.check(w); err != nil {
		return err
	}
	if o.shows() {
		return o.show(ctx, w)
	}
	log, err := o.openLog()
	if err != nil {
		return err
	}
	defer log.Close()
	err = o.act(ctx, w, log)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		fmt.Fprintln(w.err, "mcpdoctor: interrupted: nothing was ended")
		return errLeft
	}
	return err
}

// oneReap keeps another reap from acting at the same time.
func (w *world) oneReap() (unlock func(), err error) {
	unlock, err = w.lock()
	switch {
	case errors.Is(err, lockfile.ErrLocked):
		return nil, &problem{what: err.Error() + ": nothing was ended", hint: "wait for it to end, or only look: mcpdoctor reap --dry-run"}
	case err != nil:
		return nil, &problem{what: err.Error() + ": nothing was ended", hint: "two reaps must not run at one time, so that nothing is ended without the lock"}
	}
	return unlock, nil
}

// check refuses what cannot be meant.
func (o *reapOptions) check(w *world) error {
	switch {
	case o.grace.Duration > longestWait || o.settle.Duration > longestWait:
		return &problem{what: fmt.Sprintf("--grace and --settle are %s at most", format.Age(longestWait)), hint: "no server needs longer to end; meanwhile no other reap could act"}
	case o.max < 1:
		return &problem{what: fmt.Sprintf("--max is %d, and at least 1 is needed", o.max), hint: "--dry-run ends nothing"}
	case o.allUsers && !w.root():
		return &problem{what: "--all-users is for root", hint: "run it as root, or leave --all-users out to end what is yours"}
	case o.from != "" && o.log != "":
		return &problem{what: "--log with --from: nothing is ended on a saved snapshot, so that there is nothing to log", hint: "leave one of them out"}
	}
	return nil
}

// show prints the plan and ends nothing.
func (o *reapOptions) show(ctx context.Context, w *world) error {
	var plan *reap.Plan
	if o.from != "" {
		snap, err := w.read(o.from)
		if err != nil {
			return err
		}
		plan = o.judge(process.Recognise(snap), nil, 0).plan
	} else {
		first, err := o.look(ctx, w, nil)
		if err != nil {
			return err
		}
		plan = first.plan
	}
	if err := o.print(w, plan, report.Plan); err != nil {
		return err
	}
	if o.json {
		return nil
	}
	switch {
	case o.from != "":
		fmt.Fprintln(w.out, "Nothing is ended on a saved snapshot.")
	case !o.asked && plan.Summary.Instances > 0:
		fmt.Fprintln(w.out, "Nothing was ended. With --older-than 1h, reap ends what is at least an hour old.")
	case plan.Summary.Instances > 0:
		fmt.Fprintln(w.out, "Nothing was ended.")
	}
	return nil
}

// act is the reap itself: look, ask, look again, end, look whether it is so.
func (o *reapOptions) act(ctx context.Context, w *world, log io.Writer) error {
	w.finish.Store(true) // it says what it did, or that it did nothing, whenever it is interrupted
	first, err := o.look(ctx, w, nil)
	if err != nil {
		return err
	}
	if n := first.plan.Summary.Processes; n > o.max {
		return &problem{
			what: fmt.Sprintf("%d processes would be ended, which is more than %d: nothing was ended", n, o.max),
			hint: fmt.Sprintf("look at them with: mcpdoctor reap --dry-run -v; then give --max %d", n),
		}
	}
	plan := first.plan
	if plan.Summary.Instances == 0 {
		plan.Acted = true
		if o.json || w.person() {
			return o.print(w, plan, report.Plan)
		}
		return nil
	}
	settled := time.After(o.settle.Duration)
	if w.person() && !o.yes {
		if err := o.ask(ctx, w, plan); err != nil {
			return err
		}
	}
	select {
	case <-settled:
	case <-ctx.Done():
		return ctx.Err()
	}
	unlock, err := w.oneReap()
	if err != nil {
		return err
	}
	defer unlock()
	second, err := o.look(ctx, w, first)
	if err != nil {
		return err
	}
	plan = reap.Confirm(second.seen, first.plan, second.plan, second.report)

	plan = plan.WithResults(terminate.Terminate(ctx, w.openProcess, plan.Groups(), o.grace.Duration))
	plan = o.verify(ctx, w, plan, second)
	// The log first: whoever reads the result may have gone away, and that ends a program.
	err = errors.Join(report.PlanLog(log, plan, w.now()), o.print(w, plan, report.Deeds))
	switch {
	case err != nil:
		w.say(fmt.Errorf("the processes were ended, but it cannot be written down: %w", err))
		return errLeft
	case plan.Failed() || ctx.Err() != nil:
		return errLeft
	}
	return nil
}

// attempt is one look, with what it would end.
type attempt struct {
	seen    *process.Recognised
	report  *rules.Report
	plan    *reap.Plan
	settled map[scan.ID]bool
}

// look looks, judges and plans. The second time it is told of the first: what had a dead stdin then
// has settled, and what was planned is weighed.
func (o *reapOptions) look(ctx context.Context, w *world, before *attempt) (*attempt, error) {
	if before == nil {
		s, err := w.lookTwice(ctx, look.Options{})
		if err != nil {
			return nil, err
		}
		return o.judge(s.Recognised, s.Settled, w.self), nil
	}
	s, err := look.Once(ctx, w.machine, w.now(), look.Options{PSSOf: before.plan.PIDs()})
	if err != nil {
		return nil, err
	}
	return o.judge(s.Recognised, before.settled, w.self), nil
}

func (o *reapOptions) judge(seen *process.Recognised, settled map[scan.ID]bool, self int) *attempt {
	s := &attempt{seen: seen, settled: settled, report: rules.Judge(seen, rules.Options{Settled: settled})}
	s.report.Tool = rules.Tool{Name: "mcpdoctor", Version: version()}
	s.plan = reap.New(seen, s.report, reap.Consent{OlderThan: o.olderThan.Duration, Rules: o.rules.ids, Self: self, AllUsers: o.allUsers})
	return s
}

// verify takes a last look: is what ended gone, and what did it leave behind?
func (o *reapOptions) verify(ctx context.Context, w *world, plan *reap.Plan, second *attempt) *reap.Plan {
	// An interrupt is no reason not to say what was done.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	s, err := look.Once(ctx, w.machine, w.now(), look.Options{})
	if err != nil {
		plan.Problems = append(plan.Problems, "whether it is so was not looked at again: "+err.Error())
		return plan
	}
	return reap.Verify(s.Recognised, plan, second.seen)
}

// lastLook is how long the look after the act may take.
const lastLook = 10 * time.Second

// ask shows the plan and waits for a yes. Anything else is a no.
func (o *reapOptions) ask(ctx context.Context, w *world, plan *reap.Plan) error {
	var text bytes.Buffer
	out, width := w.out, w.width()
	if o.json || width == 0 { // stdout is for the result, and goes elsewhere
		out = w.err
	}
	if err := report.Plan(&text, plan, report.Options{Width: width, Color: width > 0 && !o.json && w.colour(o.color.value), Verbose: o.verbose}); err != nil {
		return err
	}
	if _, err := out.Write(text.Bytes()); err != nil {
		return err
	}
	fmt.Fprintf(w.err, "End %s? [y/N] ", format.Count(plan.Summary.Processes, "process"))
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
			return &problem{what: "there was no answer: nothing was ended", hint: "--yes ends without a question, --dry-run only shows"}
		case line == "y" || line == "yes":
			return nil
		}
		fmt.Fprintln(w.err, "Nothing was ended.")
		return errLeft
	}
}

func (o *reapOptions) print(w *world, plan *reap.Plan, text func(io.Writer, *reap.Plan, report.Options) error) error {
	var err error
	if o.json {
		err = report.PlanJSON(w.out, plan)
	} else {
		err = text(w.out, plan, report.Options{Width: w.width(), Color: w.colour(o.color.value), Verbose: o.verbose})
	}
	if err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return nil
}

// openLog opens the log before anything is ended, so that nothing is ended that could not be put
// down.
func (o *reapOptions) openLog() (io.WriteCloser, error) {
	if o.log == "" {
		return nopCloser{io.Discard}, nil
	}
	f, err := lockfile.Append(o.log)
	if err != nil {
		return nil, &problem{what: "cannot open the log: " + err.Error(), hint: "nothing was ended; --log takes the name of a file of your own that can be written"}
	}
	return f, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
