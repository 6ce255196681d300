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
	Self    int    // the PID of the supervisor of the check

	// Timeout is how long the processes could take to exit, each time.
	Timeout time.Duration

	Server Server

	// Startups are the times from the start of the command to the answer of the handshake, in order, without
	// those of starts behind a client.
	Startups []time.Duration

	// Rest is the idle process tree of the first start: the process that was started, then its descendants,
	// parents before children. PSSBytes is set where the system has it.
	Rest []scan.Process

	// Go are the processes of Rest whose program was built by Go, where the system shows that.
	Go []scan.ID

	// Noise is what the first start wrote to stdout that was no message.
	Noise Noise

	// Ends are the ways in which the server was shut down, each after a fresh start.
	Ends []End

	// Left are processes that could not be terminated afterwards.
	Left []scan.Process

	// Problems are sentences about what is not known.
	Problems []string
}

// Server is what a server says of itself in the handshake.
type Server struct {
	Name, Version string
	Protocol      string // the version of the protocol that was agreed on
	Tools         int    // how many tools it lists, over all pages; 0 when it has none to list
}

// Noise is what a server wrote to stdout that was no message. The transport's specification forbids that.
type Noise struct {
	Lines int
	First string // the beginning of the first one, raw
}

// Way is how a server is shut down.
type Way string

// The ways.
const (
	CloseStdin Way = "close-stdin" // its client closes stdin and continues to read
	Terminate  Way = "terminate"   // SIGTERM to the first process; stdin stays open
	KillClient Way = "kill-client" // its client is killed, which closes all its pipes at once
)

// End is one shutdown and what it left behind.
type End struct {
	Way Way

	// Untried says why it was not tried; all else is empty then.
	Untried string

	// Early means that all processes had exited before the shutdown; all else is empty then.
	Early bool

	// Before is the tree before the shutdown, as in [Stdio.Rest], followed by processes that started later.
	Before []scan.Process

	// Took is the time until all had exited; the time-out when some did not.
	Took time.Duration

	// Left are the processes of Before that had not exited in time, in the same order.
	Left []Leftover

	// Strays are processes that started meanwhile and have no parent, on systems that do not show whether the
	// server had started them. Empty on Linux, and when Left is not.
	Strays []scan.Process
}

// Leftover is a process that had not exited in time.
type Leftover struct {
	// Process is what was seen last: PPID is the parent of then; with Stdin and its holders where the system shows them.
	Process scan.Process

	// Adopted means that its parent has exited. On Linux the supervisor of the check is its parent now; without
	// a check it would be PID 1 or a subreaper.
	Adopted bool

	// CPU is the share of one core that it used since the shutdown, in percent; -1 when not known.
	CPU float64

	// Outcome is what became of it when it was terminated then, after its descendants.
	Outcome terminate.Outcome
}

// Failure says why a command could not be checked. Stderr and Stdout are raw.
type Failure struct {
	Kind   FailureKind
	Cause  error  // of the system or the protocol; may be nil
	Status string // how the process exited: "exit status 1", "signal: killed"; empty when it did not
	Waited time.Duration
	Stderr string // the last line that names an error, else the last line
	Stdout string // the first line that was no message
}

// FailureKind is the reason of a [Failure].
type FailureKind string

// The reasons.
const (
	Missing          FailureKind = "missing"        // no such command
	NotExecutable    FailureKind = "not executable" // no permission to execute it
	Directory        FailureKind = "a directory"    // it is a directory
	NoProgram        FailureKind = "no program"     // the system does not know how to execute it
	NeverStarted     FailureKind = "not started"    // the system could not start it for another reason: Cause
	ExitedEarly      FailureKind = "exited"         // it exited before it answered: Status
	NeverAnswered    FailureKind = "silent"         // it did not answer in time
	RefusedHandshake FailureKind = "refused"        // it answered the handshake with an error: Cause
	NoServer         FailureKind = "not a server"   // it wrote something else than an answer, or closed its stdout: Cause
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
