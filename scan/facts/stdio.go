package facts

import (
	"time"

	"mcpdoctor/scan"
	"mcpdoctor/scan/terminate"
)

// Stdio is what was observed of a stdio server, over several starts of its command.
type Stdio struct {
	Command []string
	OS      string        // as in [scan.Host]
	Self    int           // the PID of the process that checks
	Timeout time.Duration // for the processes to exit, at each end

	Server Server

	// Startups are the times from a start to the answer of the handshake, without the start behind a client.
	Startups []time.Duration

	// Rest is the idle process tree after the first handshake: the root first, parents before children. PSSBytes is
	// filled in where the system has it.
	Rest []scan.Process

	Go       []scan.ID      // the processes of Rest that are Go programs, where the system shows it
	Noise    Noise          // of the first start
	Ends     []End          // each after a fresh start
	Left     []scan.Process // processes that could not be terminated at the end
	Problems []string       // sentences about what could not be observed
}

// Server is what a server says about itself in the handshake.
type Server struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Protocol string `json:"protocol"` // the version agreed on
	Tools    int    `json:"tools"`    // over all pages
}

// Noise is output on stdout that is not an MCP message, which the specification forbids.
type Noise struct {
	Lines int
	First string // the beginning of the first line; raw
}

// Way is how a server is shut down.
type Way string

const (
	CloseStdin Way = "close-stdin" // its client closes stdin and keeps reading
	Terminate  Way = "terminate"   // SIGTERM to the root process; stdin stays open
	KillClient Way = "kill-client" // its client is killed, which closes all pipes at once
)

// End is what one way to stop a server left behind.
type End struct {
	Way     Way
	Untried string         // why it was not tried; the rest is empty then
	Early   bool           // processes had exited before it was tried, so the rest proves nothing
	Before  []scan.Process // the tree just before, as in [Stdio.Rest], followed by later arrivals
	Took    time.Duration  // until all had exited; the time-out when some did not
	Left    []Leftover     // the processes of Before that did not exit in time, in the same order

	// Strays are processes that appeared meanwhile without a parent, on systems that do not show whether the server
	// started them. Empty on Linux, and when processes are left.
	Strays []scan.Process
}

// Leftover is a process that did not exit.
type Leftover struct {
	Process scan.Process // as last seen: with its parent now and, where the system shows it, Stdin

	// Adopted reports whether its parent exited and another process became its parent: PID 1 or a subreaper, which
	// on Linux is mcpdoctor itself during a check.
	Adopted bool

	CPU     float64           // in percent of one core, since the end began; -1 when not known
	Outcome terminate.Outcome // of a SIGTERM of its own afterwards, sent after its descendants were terminated
}

// Failure is why a command could not be checked at all. Stderr and Stdout are raw.
type Failure struct {
	Kind   FailureKind
	Cause  error  // from the system or the protocol; may be nil
	Status string // "exit status 1", "signal: killed"; empty when it did not exit
	Waited time.Duration
	Stderr string // its last line, or the last one about an error
	Stdout string // its first line that is not a message
}

// FailureKind is why a command could not be checked.
type FailureKind string

const (
	Missing          FailureKind = "missing"        // no such command
	NotExecutable    FailureKind = "not executable" // no permission to execute it
	Directory        FailureKind = "a directory"    // a directory
	NoProgram        FailureKind = "no program"     // not in a format that the system executes
	NeverStarted     FailureKind = "not started"    // another reason: Cause
	ExitedEarly      FailureKind = "exited"         // it exited before it answered: Status
	NeverAnswered    FailureKind = "silent"         // no answer in time
	RefusedHandshake FailureKind = "refused"        // the handshake was answered with an error: Cause
	NoServer         FailureKind = "not a server"   // its output was not an answer, or it closed stdout: Cause
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
