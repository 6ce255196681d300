package probe

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"time"
)

// Failure is why a command could not be checked at all. Stderr and Stdout are what it wrote, raw.
type Failure struct {
	Kind   FailureKind
	Cause  error  // that of the system or the protocol; nil when there is none
	Status string // how the process ended: "exit status 1", "signal: killed"; empty when it did not
	Waited time.Duration
	Stderr string // its last line, or the last that tells of an error
	Stdout string // its first line, when it was no message
}

// FailureKind is the reason of a [Failure].
type FailureKind string

// The reasons.
const (
	Missing          FailureKind = "missing"        // there is no such command
	NotExecutable    FailureKind = "not executable" // it may not be executed
	Directory        FailureKind = "a directory"    // it is a directory
	NoProgram        FailureKind = "no program"     // the system does not know how to execute it
	NeverStarted     FailureKind = "not started"    // the system could not start it for another reason: Cause
	ExitedEarly      FailureKind = "exited"         // it ended before it had answered: Status
	NeverAnswered    FailureKind = "silent"         // it did not answer in time
	RefusedHandshake FailureKind = "refused"        // it answered the handshake with an error: Cause
	NoServer         FailureKind = "not a server"   // it wrote other things than an answer, or closed its stdout: Cause
)

func (f *Failure) Error() string {
	s := string(f.Kind)
	if f.Status != "" {
		s += ": " + f.Status
	}
	if f.Cause != nil {
		s += ": " + f.Cause.Error()
	}
	return s
}

func (f *Failure) Unwrap() error { return f.Cause }

// notStarted says why the system could not start the command of this name.
func notStarted(name string, err error) *Failure {
	f := &Failure{Kind: NeverStarted, Cause: err}
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		f.Kind = Missing
	case errors.Is(err, fs.ErrPermission):
		f.Kind = NotExecutable
		if at, err := os.Stat(name); err == nil && at.IsDir() {
			f.Kind = Directory
		}
	case errors.Is(err, noFormat):
		f.Kind = NoProgram
	}
	return f
}
