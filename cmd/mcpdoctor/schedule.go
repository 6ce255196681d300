package main

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// job is what a scheduler runs: Program reap --settle 20s --older-than OlderThan. It can afford to wait for
// the slowest server that is known to exit after its client.
type job struct {
	Program   string // absolute path of mcpdoctor, with graphic characters only, quoted for the scheduler
	OlderThan string // in the syntax of the flag
	Seconds   int    // between two runs
	Log       string // of launchd
	home      string // of the user who runs schedule
}

// schedules has a template for each scheduler.
//
// cron: the minutes are a list, since POSIX has no steps (*/15), and not the quarters of the hour, when everything
// else starts. The output is kept: reap is silent when there is nothing to do, and cron mails the rest.
//
// systemd: the timer does not catch up on missed runs (Persistent=), since leaked processes do not outlive the boot.
// It needs no random delay: systemd moves it within a minute (AccuracySec=).
//
// launchd: an XML comment may not contain two hyphens, so none names a flag.
//
//go:embed schedules
var schedules embed.FS

// every is the interval of the job, and the longest that a leaked server outlives --older-than. A run that
// finds nothing takes less than 0.1 s of processor time, so the interval can be short.
const every = 15 * time.Minute

// scheduler is a program that runs jobs.
type scheduler struct {
	word  string
	short string
	typed []string // what people type instead
	file  string   // its template
	quote func(*job) error
}

var schedulers = []scheduler{
	{"cron", "Print a crontab line.", []string{"crontab", "crond"}, "cron.crontab", forCron},
	{"systemd", "Print a shell script that installs a systemd user timer.", []string{"systemctl", "timer"}, "systemd.sh", forSystemd},
	{"launchd", "Print a launchd agent.", []string{"launchctl", "launchagent", "plist"}, "launchd.plist", forLaunchd},
}

// leastAge keeps a job from terminating servers that have only just lost their client.
const leastAge = time.Minute

func newSchedule(w *world) *cobra.Command {
	age := span{time.Hour}
	var parent *cobra.Command
	parent = verb(&cobra.Command{
		Use:   "schedule [--older-than DUR] cron|systemd|launchd",
		Short: "Print a cron, systemd or launchd job that runs reap every 15 minutes.",
		Long: "Print a job that runs mcpdoctor reap every 15 minutes: a crontab line, a script that installs a systemd user timer,\n" +
			"or a launchd agent. Installs nothing; the first lines of the output say how to install and remove it.",
		Example: "  (crontab -l 2>/dev/null; mcpdoctor schedule cron) | crontab -\n" +
			"  mcpdoctor schedule --older-than 2d systemd | sh\n" +
			"  mcpdoctor schedule launchd >~/Library/LaunchAgents/mcpdoctor.reap.plist",
		Args: cobra.ArbitraryArgs,
	}, func(_ context.Context, args []string) error { return noScheduler(parent, args) })
	parent.DisableFlagsInUseLine = true
	parent.SuggestionsMinimumDistance = 2 // letters, which finds cron for corn
	parent.PersistentFlags().Var(&age, "older-than", "only processes at least this old")
	for _, s := range schedulers {
		parent.AddCommand(verb(&cobra.Command{
			Use: s.word, Short: s.short, SuggestFor: s.typed, Args: cobra.NoArgs,
			Example: "  mcpdoctor schedule --older-than 2d " + s.word,
		}, func(context.Context, []string) error {
			j, err := s.job(w, age)
			if err != nil {
				return err
			}
			text := template.Must(template.ParseFS(schedules, "schedules/"+s.file))
			if err := text.Execute(w.out, j); err != nil {
				return fmt.Errorf("cannot write the schedule: %w", err)
			}
			return nil
		}))
	}
	return parent
}

// noScheduler is the error of a command line without a known scheduler.
func noScheduler(c *cobra.Command, args []string) error {
	const words = "cron, systemd or launchd"
	if len(args) == 0 {
		return &problem{what: "no scheduler: name " + words, hint: "mcpdoctor schedule --help shows examples"}
	}
	p := &problem{what: fmt.Sprintf("there is no schedule for %s", args[0]), hint: "it is one of " + words}
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		p.hint = fmt.Sprintf("did you mean %s? %s", near[0], p.hint)
	}
	return p
}

// job fills in the template of a scheduler.
func (s scheduler) job(w *world, age span) (*job, error) {
	if age.Duration < leastAge {
		return nil, &problem{
			what: "--older-than " + age.String() + " is too short for a schedule: servers that have just lost their client may still exit",
			hint: "use at least 1m; 1h is usual",
		}
	}
	program, err := w.program()
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(program, "/") {
		return nil, &problem{
			what: fmt.Sprintf("%s needs an absolute path, and this is %s", s.word, program),
			hint: fmt.Sprintf("on Windows, use the Task Scheduler: schtasks /create /tn mcpdoctor /sc minute /mo %d /tr %q",
				int(every.Minutes()), "mcpdoctor reap --settle 20s --older-than "+age.String()),
		}
	}
	if !graphic(program) {
		return nil, &problem{
			what: "the path of mcpdoctor has control characters, which no scheduler takes: " + program,
			hint: "link to it from another path, and call it by that path",
		}
	}
	j := &job{Program: program, OlderThan: age.String(), Seconds: int(every.Seconds()), home: home(w.getenv)}
	return j, s.quote(j)
}

// graphic reports whether a path can be written to a file of lines, to XML and to a terminal: it is UTF-8
// without line breaks, invisible characters or changes of direction.
func graphic(path string) bool {
	return utf8.ValidString(path) && !strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsGraphic(r) })
}
