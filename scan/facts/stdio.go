package facts

import (
	"time"

	"mcpdoctor/scan"
	"mcpdoctor/scan/terminate"
)

// Stdio is what was seen of one stdio server, over several starts of its command.
type Stdio struct {
	Command []string
	OS      string // as in [scan.Host]
	Self    int    // the PID of who checked: the keeper

	// Timeout is how long each end was waited for.
	Timeout time.Duration

	Server Server

	// Startups are how long the starts took from the command to the answer of the handshake, in their
	// order, without those behind a client.
	Startups []time.Duration

	// Rest is the tree of the first start when it had answered and nothing was asked of it: the process
	// that was started first, then those below it, parents before children. PSSBytes is filled in where
	// the system tells it.
	Rest []scan.Process

	// Go are those of Rest whose program was built by Go, as far as the system shows it.
	Go []scan.ID

	// Noise is what the first start wrote to its stdout that was no message.
	Noise Noise

	// Ends are the ways in which the server was brought to its end, each after a fresh start.
	Ends []End

	// Left are processes that could not be ended afterwards; empty when all is as it was before.
	Left []scan.Process

	// Problems are sentences about what could not be seen.
	Problems []string
}

// Server is what a server says of itself in the handshake.
type Server struct {
	Name, Version string
	Protocol      string // the version of the protocol that was agreed on
	Tools         int    // how many tools it lists, over all pages; 0 when it has none to list
}

// Noise is what a server wrote to its stdout though it is no message. The transport's specification
// says that it must not.
type Noise struct {
	Lines int
	First string // the first of them, its beginning; raw
}

// Way is how a server is brought to its end.
type Way string

// The ways.
const (
	CloseStdin Way = "close-stdin" // its client closes stdin and goes on reading
	Terminate  Way = "terminate"   // SIGTERM to the process that was started first, stdin stays open
	KillClient Way = "kill-client" // its client is killed, so that all its pipes are gone at once
)

// End is what one end left behind.
type End struct {
	Way Way

	// Untried says why it was not tried; nothing else is filled in then.
	Untried string

	// Early tells that processes had ended before anything was done to them, so that the rest tells
	// nothing.
	Early bool

	// Before is the tree at the moment before, as in [Stdio.Rest]; later arrivals are added behind.
	Before []scan.Process

	// Took is how long it was until all had ended; the time-out when some did not.
	Took time.Duration

	// Left are the processes of Before that had not ended in time, in the same order.
	Left []Leftover

	// Strays are processes that began meanwhile without a parent of their own, on systems where nothing
	// tells whether the server had started them. Empty when some are left, and on Linux, which tells.
	Strays []scan.Process
}

// Leftover is a process that stayed.
type Leftover struct {
	Process scan.Process // as it was seen last: PPID is the parent that it has now; with Stdin and its holders, where the system shows them

	// Adopted tells that its parent of before has ended and another has inherited it. While a check
	// runs on Linux that is mcpdoctor itself; without it, PID 1 or whoever adopts there.
	Adopted bool

	// CPU is the share of one core that it used since, in percent; -1 when it cannot be told.
	CPU float64

	// Outcome is what became of it when it was then asked to end, with SIGTERM of its own, after those
	// below it.
	Outcome terminate.Outcome
}

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
