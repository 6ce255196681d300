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

// world is everything outside of the arguments that the command uses, so that tests can replace it.
type world struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
	now      func() time.Time

	// machine answers the questions of a look.
	machine look.Machine

	// program returns the path by which this program can be started later.
	program func() (string, error)

	// For reap: the handle of a process, the lock against a second reap, the own PID, whether one of the
	// streams is a terminal, and whether the user is root.
	openProcess func(scan.ID) (terminate.Handle, error)
	lock        func() (unlock func(), err error)
	self        int
	person      func() bool
	root        func() bool

	// finish is true while an interrupt has to wait for the verb: to report what it did, or to clean up what
	// it started.
	finish atomic.Bool
}

// problem is an error with a hint.
type problem struct {
	what string
	hint string
}

func (p *problem) Error() string { return p.what }

// say writes an error and its hint to stderr, each on one line.
func (w *world) say(err error) {
	fmt.Fprintln(w.err, "mcpdoctor: error: "+oneLine(err.Error()))
	var p *problem
	if errors.As(err, &p) && p.hint != "" {
		fmt.Fprintln(w.err, "mcpdoctor: hint: "+oneLine(p.hint))
	}
}

// oneLine escapes whatever could control the terminal.
func oneLine(s string) string {
	quoted := fmt.Sprintf("%q", s)
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(quoted[1 : len(quoted)-1])
}

// colour reports whether to use colour: by the flag, then the environment (no-color.org,
// bixense.com/clicolors), then whether stdout is a terminal.
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

// atTerminal reports whether one of the streams is a terminal.
func atTerminal(streams ...*os.File) bool {
	return slices.ContainsFunc(streams, func(f *os.File) bool { return term.IsTerminal(int(f.Fd())) })
}

// width returns the terminal's width in cells; 0 when stdout is no terminal.
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
