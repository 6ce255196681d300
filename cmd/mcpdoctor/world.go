package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"mcpdoctor/rules/look"
	"mcpdoctor/scan"
	"mcpdoctor/scan/terminate"
)

// world is all that the command reaches outside of its arguments, so that a test can give another.
type world struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
	now      func() time.Time

	// machine answers the questions of a look.
	machine look.Machine

	// program is the path by which this program can be started later.
	program func() (string, error)

	// What reap needs besides: the handle on one process, the lock that keeps two of its kind apart,
	// the own PID, and whether a person sits at one of the streams.
	openProcess func(scan.ID) (terminate.Handle, error)
	lock        func() (unlock func(), err error)
	self        int
	person      func() bool
	root        func() bool

	// finish tells that the verb has something to finish, which an interrupt must not cut short: to
	// say what it did, or to end what it started.
	finish atomic.Bool
}

// problem is an error with the way out of it.
type problem struct {
	what string
	hint string
}

func (p *problem) Error() string { return p.what }

// say writes an error and its hints to stderr, each on a line of its own whatever is in it.
func (w *world) say(err error) {
	fmt.Fprintln(w.err, "mcpdoctor: error: "+oneLine(err.Error()))
	var p *problem
	if errors.As(err, &p) && p.hint != "" {
		fmt.Fprintln(w.err, "mcpdoctor: hint: "+oneLine(p.hint))
	}
}

// oneLine keeps what stands in a file or an argument from commanding the terminal.
func oneLine(s string) string {
	quoted := fmt.Sprintf("%q", s)
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(quoted[1 : len(quoted)-1])
}

// colour decides whether escape codes may be used: the flag first, then what the environment says
// (no-color.org, bixense.com/clicolors), then whether a person reads.
func (w *world) colour(flag string) bool {
	switch {
	case flag == "always":
		return true
	case flag == "never" || w.getenv("NO_COLOR") != "":
		return false
	case w.getenv("CLICOLOR_FORCE") != "" && w.getenv("CLICOLOR_FORCE") != "0":
		return true
	case w.getenv("TERM") == "dumb":
		return false
	}
	return w.width() > 0
}

// atTerminal tells that a person sits at one of the streams.
func atTerminal(streams ...*os.File) bool {
	return slices.ContainsFunc(streams, func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) })
}

// width is the terminal's, in cells; 0 when stdout is no terminal.
func (w *world) width() int {
	f, ok := w.out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	const usual = 80 // a terminal that does not know its width (a serial line)
	cells, _, err := term.GetSize(int(f.Fd()))
	if err != nil || cells <= 0 {
		return usual
	}
	return cells
}
