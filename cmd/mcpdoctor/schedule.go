package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// job is what a scheduler is told to run: program reap --settle 20s --older-than olderThan. Nobody waits
// for it, so that it can wait for the slowest server that is known to end by itself after its client.
type job struct {
	program   string // absolute path of mcpdoctor, with graphic characters only
	olderThan string // as the flag takes it
	home      string // of the user who runs schedule
}

// every is how often reap is run. It is what a leaked server stays beyond --older-than at most, so it
// should be short against an hour; a run that finds nothing costs less than a tenth of a second of one
// processor, so it may be.
const every = 15 * time.Minute

// scheduler is a program that runs others again and again.
type scheduler struct {
	word  string
	says  string
	typed []string // other words that people have in mind for it
	write func(job) (string, error)
}

var schedulers = []scheduler{
	{word: "cron", says: "Print a crontab line", typed: []string{"crontab", "crond"}, write: cronTable},
	{word: "systemd", says: "Print a shell script that installs a systemd user timer", typed: []string{"systemctl", "timer"}, write: systemdScript},
	{word: "launchd", says: "Print a launchd agent", typed: []string{"launchctl", "launchagent", "plist"}, write: launchdAgent},
}

// leastAge keeps a schedule from ending what has only just lost its client.
const leastAge = time.Minute

func newSchedule(w *world) *cobra.Command {
	age := span{time.Hour}
	var parent *cobra.Command
	parent = verb(&cobra.Command{
		Use:   "schedule [--older-than DUR] cron|systemd|launchd",
		Short: "Print what makes cron, systemd or launchd run reap",
		Long: "schedule prints what makes a scheduler run mcpdoctor reap every 15 minutes, as the user who installs it: a line for\n" +
			"crontab, a shell script that installs a systemd user timer, or an agent for launchd. It installs nothing. The first\n" +
			"lines of what it prints say how to install it, and how to remove it again.\n\n" +
			"It runs this program by the path it was called by now, so call the one that stays. What reap ends, and what never,\n" +
			"is in mcpdoctor reap --help.",
		Example: "  (crontab -l 2>/dev/null; mcpdoctor schedule cron) | crontab -\n" +
			"  mcpdoctor schedule --older-than 2d systemd | sh\n" +
			"  mcpdoctor schedule launchd >~/Library/LaunchAgents/mcpdoctor.reap.plist",
		Args: cobra.ArbitraryArgs,
	}, func(_ context.Context, args []string) error { return noScheduler(parent, args) })
	parent.DisableFlagsInUseLine = true
	parent.SuggestionsMinimumDistance = 2 // letters, which finds cron for corn
	parent.PersistentFlags().Var(&age, "older-than", "what reap ends is at least this old")
	for _, s := range schedulers {
		parent.AddCommand(verb(&cobra.Command{
			Use: s.word, Short: s.says, SuggestFor: s.typed, Args: cobra.NoArgs,
			Example: "  mcpdoctor schedule --older-than 2d " + s.word,
		}, func(context.Context, []string) error {
			text, err := s.schedule(w, age)
			if err != nil {
				return err
			}
			if _, err := io.WriteString(w.out, text); err != nil {
				return fmt.Errorf("cannot write the schedule: %w", err)
			}
			return nil
		}))
	}
	return parent
}

// noScheduler is the error of a command line that names none.
func noScheduler(c *cobra.Command, args []string) error {
	const words = "cron, systemd or launchd"
	if len(args) == 0 {
		return &problem{what: "what shall run it: " + words, hint: "mcpdoctor schedule --help shows examples"}
	}
	p := &problem{what: fmt.Sprintf("there is no schedule for %s", args[0]), hint: "it is one of " + words}
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		p.hint = fmt.Sprintf("did you mean %s? %s", near[0], p.hint)
	}
	return p
}

func (s scheduler) schedule(w *world, age span) (string, error) {
	if age.Duration < leastAge {
		return "", &problem{
			what: "a schedule would end what has only just lost its client: --older-than is " + age.String(),
			hint: "1m is the least, 1h is usual",
		}
	}
	program, err := w.program()
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(program, "/") {
		return "", &problem{
			what: fmt.Sprintf("%s runs programs whose path begins with /, and this is %s", s.word, program),
			hint: fmt.Sprintf("on Windows the Task Scheduler does it: schtasks /create /tn mcpdoctor /sc minute /mo %d /tr %q", int(every.Minutes()), "mcpdoctor reap --settle 20s --older-than "+age.String()),
		}
	}
	if !graphic(program) {
		return "", &problem{
			what: "the path of mcpdoctor has characters that no schedule can hold: " + program,
			hint: "make a link to it where the path has none, and call it by that path",
		}
	}
	return s.write(job{program: program, olderThan: age.String(), home: home(w.getenv)})
}

// graphic tells that a path can be written into a file of lines, into XML and to a terminal: it is
// UTF-8, and nothing in it breaks a line, is invisible or turns the direction of writing.
func graphic(path string) bool {
	return utf8.ValidString(path) && !strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsGraphic(r) })
}
