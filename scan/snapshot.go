// Package scan is the boundary to the operating system. It reads the process table into a
// [Snapshot], looks closer at the processes that deserve it, and is the only package that knows
// one system from another. It does not judge: what a process is and whether it leaked is decided
// by package rules.
//
// A Snapshot is a plain value that round-trips through JSON, so that a test fixture, a bug report
// and a remote diagnosis are one thing.
package scan

import "time"

// Schema is the version of the snapshot's JSON form. It changes only when a reader of the
// present form would misunderstand the new one.
const Schema = 1

// Kind names the JSON form in its own text, so that a file can be told from other JSON.
const Kind = "mcpdoctor.snapshot"

// Snapshot is the process table of one host as it was seen at one moment.
//
// Throughout, a field that was not asked for is absent (nil or zero), and a field that the system
// refused is named in [Process.Unreadable]. Nothing is ever guessed into a field.
type Snapshot struct {
	Schema int       `json:"schema"`
	Kind   string    `json:"kind"`
	Taken  time.Time `json:"taken"`
	Host   Host      `json:"host"`

	// Processes is ordered by PID.
	Processes []Process `json:"processes"`

	// Problems are sentences about what could not be seen, for the reader of the report.
	Problems []string `json:"problems,omitempty"`
}

// Host is the machine, or the container, that the processes run on.
type Host struct {
	OS   string `json:"os"` // linux, darwin, windows, freebsd ... as in GOOS; empty when the source does not say
	Name string `json:"name,omitempty"`

	// Container tells that the table is that of a container (its PID 1 is not a machine's init).
	Container bool `json:"container"`

	// UID is the user who looked; nil when the source does not say (and on Windows).
	UID *int `json:"uid,omitempty"`

	UptimeSeconds        int64 `json:"uptime_seconds,omitempty"`
	MemoryTotalBytes     int64 `json:"memory_total_bytes,omitempty"`
	MemoryAvailableBytes int64 `json:"memory_available_bytes,omitempty"`
	SwapTotalBytes       int64 `json:"swap_total_bytes,omitempty"`
	SwapFreeBytes        int64 `json:"swap_free_bytes,omitempty"`

	// Services are the jobs that service managers keep. Nil means that no manager was or could be
	// asked, so that "not supervised" is not known either; empty means that they keep none.
	Services []Service `json:"services,omitzero"`
}

// Service is one job that a service manager keeps running.
type Service struct {
	Manager string `json:"manager"`  // systemd, launchd, pm2, supervisord, windows ...
	Name    string `json:"name"`     // the manager's own name for the job
	MainPID int    `json:"main_pid"` // the process that the manager watches
}

// ID is what names a process: a PID alone names nobody, since PIDs are used again.
type ID struct {
	PID   int
	Start int64
}

// UnknownPPID is the PPID of a process whose parent the source does not tell.
const UnknownPPID = -1

// Process is one row of the table.
type Process struct {
	PID int `json:"pid"`

	// PPID is the parent: 0 for none (the first process, the kernel's threads), [UnknownPPID]
	// when the source does not say. On Windows it is kept when the parent ends.
	PPID int `json:"ppid"`

	// Start is when the process began, in the kernel's own unit (clock ticks since boot on Linux,
	// milliseconds since 1970 elsewhere). It is compared and never shown. Zero when unknown.
	Start int64 `json:"start"`

	// Started is Start as wall-clock time; zero when unknown.
	Started time.Time `json:"started,omitzero"`

	// Name is the kernel's short name (15 bytes on Linux), which a process can change.
	Name string `json:"name,omitempty"`

	// Args is the argument vector, when it is known exactly. Else Cmdline is the command line as
	// one string (Windows, text of ps). Both are empty for kernel threads and zombies.
	Args    []string `json:"args,omitempty"`
	Cmdline string   `json:"cmdline,omitempty"`

	// Version is that of the installed npm package that the program belongs to; empty when nobody
	// looked, or when it belongs to none. See [Versions].
	Version string `json:"version,omitempty"`

	Exe  string `json:"exe,omitempty"`
	CWD  string `json:"cwd,omitempty"`
	User string `json:"user,omitempty"`
	UID  *int   `json:"uid,omitempty"`

	// State is the letter of ps(1): R S D Z T I ...; "Zl" when only the first thread has ended and
	// others go on; empty when unknown.
	State string `json:"state,omitempty"`

	// TTY is the controlling terminal ("pts/0"), "-" when it has none, empty when unknown.
	TTY  string `json:"tty,omitempty"`
	PGID int    `json:"pgid,omitempty"`
	SID  int    `json:"sid,omitempty"`

	// RSSBytes counts pages that are shared with other processes in full: sums over processes
	// overstate what would come back when they end.
	RSSBytes  *int64 `json:"rss_bytes,omitempty"`
	SwapBytes *int64 `json:"swap_bytes,omitempty"`
	PSSBytes  *int64 `json:"pss_bytes,omitempty"`

	// CPUSeconds is the processor time used since the start; CPUPercent is a share of one core.
	CPUSeconds *float64 `json:"cpu_seconds,omitempty"`
	CPUPercent *float64 `json:"cpu_percent,omitempty"`

	Cgroup string `json:"cgroup,omitempty"`

	// Stdin is what is at the process's standard input; nil when nobody looked.
	Stdin *Stdin `json:"stdin,omitempty"`

	// Stdout is where its answers go: a pipe or socket whose other end is closed has no reader any
	// more. Clients read the answers of a stdio server from either: a file or a terminal means that
	// somebody asked once. Nil when nobody looked.
	Stdout *Stdin `json:"stdout,omitempty"`

	// Listen are the sockets it accepts connections on ("tcp:127.0.0.1:4001", "unix:/run/x.sock").
	// Nil means that nobody looked, empty that there are none.
	Listen []string `json:"listen,omitzero"`

	// InboundConnections counts the established connections to those sockets.
	InboundConnections *int `json:"inbound_connections,omitempty"`

	// InboundSilenceSeconds is how long that one of these connections has received nothing that has
	// been silent for the longest time: what a request on any of them has set off began later. Nil
	// when there are none, or when it is not known of all.
	InboundSilenceSeconds *int64 `json:"inbound_silence_seconds,omitempty"`

	// Env holds only the chosen variables that tell where a process came from. See envNames.
	Env map[string]string `json:"env,omitempty"`

	// Unreadable names the fields, as they are called in JSON, that the system refused to show.
	Unreadable []string `json:"unreadable,omitempty"`
}

// ID returns the process's identity.
func (p *Process) ID() ID { return ID{PID: p.PID, Start: p.Start} }

// RSS returns the resident memory in bytes, 0 when it is not known.
func (p *Process) RSS() int64 {
	if p.RSSBytes == nil {
		return 0
	}
	return *p.RSSBytes
}

// Swap returns the swapped-out memory in bytes, 0 when it is not known.
func (p *Process) Swap() int64 {
	if p.SwapBytes == nil {
		return 0
	}
	return *p.SwapBytes
}

// Stdin is the far end of a process's standard input, which tells whether anybody can still talk
// to a stdio server; or of its standard output.
type Stdin struct {
	Type StdinType `json:"type"`
	Peer StdinPeer `json:"peer,omitempty"`

	// FD is the descriptor that was looked at when it is not 0: descriptor 0 is then /dev/null, and
	// the wire is believed to be here (MCP Python SDK 2). A closed end here is weak evidence: what
	// is left of a finished helper's output looks the same.
	FD int `json:"fd,omitempty"`

	// Unread tells that a pipe has bytes in it that were not read yet, though its other end is closed:
	// requests that a server may still be at work on.
	Unread bool `json:"unread,omitempty"`

	// Holders are the processes that hold the other end; nil when nobody looked for them.
	Holders []int `json:"holders,omitzero"`
}

// StdinType is the kind of file at descriptor 0 (or at the descriptor that carries the wire).
type StdinType string

// The kinds of standard input.
const (
	StdinPipe   StdinType = "pipe"
	StdinSocket StdinType = "socket"
	StdinTTY    StdinType = "tty"
	StdinNull   StdinType = "null" // /dev/null, or closed
	StdinFile   StdinType = "file" // anything else
)

// StdinPeer tells whether anybody holds the other end of a pipe or socket.
type StdinPeer string

// The states of the other end. Unknown is never to be read as closed.
const (
	PeerOpen    StdinPeer = "open"
	PeerClosed  StdinPeer = "closed"
	PeerUnknown StdinPeer = "unknown"
)
