// Package scan is the boundary to the operating system: it reads the process table into a [Snapshot] and examines
// selected processes more closely. What a process is, and whether it leaked, is decided by package rules.
//
// A Snapshot is a plain value that round-trips through JSON, so that a test fixture, a bug report and a remote
// diagnosis are one thing.
package scan

import "time"

// Schema is the version of the snapshot's JSON form. It changes only when existing readers would misunderstand the
// new form.
const Schema = 1

// Kind identifies the JSON form in its own text.
const Kind = "mcpdoctor.snapshot"

// Snapshot is the process table of one host at one moment.
//
// A field that was not requested is absent (nil or zero); a field that the system refused is named in
// [Process.Unreadable]. No field is guessed.
type Snapshot struct {
	Schema int       `json:"schema"`
	Kind   string    `json:"kind"`
	Taken  time.Time `json:"taken"`
	Host   Host      `json:"host"`

	// Processes is ordered by PID.
	Processes []Process `json:"processes"`

	// Problems are sentences about what could not be read, for the reader of the report.
	Problems []string `json:"problems,omitempty"`
}

// Host is the machine or container that the processes run on.
type Host struct {
	OS   string `json:"os"` // as GOOS; empty when unknown
	Name string `json:"name,omitempty"`

	// Container says that PID 1 is a container's, not a machine's init.
	Container bool `json:"container"`

	// UID is the user that read the table; nil when unknown, and on Windows.
	UID *int `json:"uid,omitempty"`

	UptimeSeconds        int64 `json:"uptime_seconds,omitempty"`
	MemoryTotalBytes     int64 `json:"memory_total_bytes,omitempty"`
	MemoryAvailableBytes int64 `json:"memory_available_bytes,omitempty"`
	SwapTotalBytes       int64 `json:"swap_total_bytes,omitempty"`
	SwapFreeBytes        int64 `json:"swap_free_bytes,omitempty"`

	// Services are the jobs of the service managers. Nil means that no manager was asked or answered, so
	// that "not supervised" is unknown too; empty means that there are none.
	Services []Service `json:"services,omitzero"`
}

// Service is a job that a service manager keeps running.
type Service struct {
	Manager string `json:"manager"`  // systemd, launchd, pm2, supervisord, windows ...
	Name    string `json:"name"`     // the manager's name for the job
	MainPID int    `json:"main_pid"` // the process that the manager monitors
}

// ID identifies a process. A PID alone does not, since PIDs are reused.
type ID struct {
	PID   int
	Start int64
}

// UnknownPPID is the PPID of a process whose parent is unknown.
const UnknownPPID = -1

// Process is one row of the table.
type Process struct {
	PID int `json:"pid"`

	// PPID is the parent: 0 for none (the first process, kernel threads), or [UnknownPPID]. On Windows it
	// stays the same when the parent exits.
	PPID int `json:"ppid"`

	// Start is the start time in the kernel's unit (clock ticks since boot on Linux, milliseconds since 1970
	// elsewhere), to be compared and not shown; zero when unknown.
	Start int64 `json:"start"`

	// Started is Start as wall-clock time; zero when unknown.
	Started time.Time `json:"started,omitzero"`

	// Name is the kernel's short name (15 bytes on Linux), which a process can change.
	Name string `json:"name,omitempty"`

	// Args is the argument vector if known exactly, else Cmdline is the command line as one string (Windows,
	// output of ps). Both are empty for kernel threads and zombies.
	Args    []string `json:"args,omitempty"`
	Cmdline string   `json:"cmdline,omitempty"`

	// Version is the version of the installed npm package that contains the program; see [Versions].
	Version string `json:"version,omitempty"`

	Exe  string `json:"exe,omitempty"`
	CWD  string `json:"cwd,omitempty"`
	User string `json:"user,omitempty"`
	UID  *int   `json:"uid,omitempty"`

	// State is the letter of ps(1): R S D Z T I ...; "Zl" when the first thread has exited and others still
	// run; empty when unknown.
	State string `json:"state,omitempty"`

	// TTY is the controlling terminal ("pts/0"), "-" when it has none, empty when unknown.
	TTY  string `json:"tty,omitempty"`
	PGID int    `json:"pgid,omitempty"`
	SID  int    `json:"sid,omitempty"`

	// RSSBytes counts shared pages in full: sums over processes overstate the memory that they would free.
	// PSSBytes divides them among the processes; see [ReadPSS].
	RSSBytes  *int64 `json:"rss_bytes,omitempty"`
	SwapBytes *int64 `json:"swap_bytes,omitempty"`
	PSSBytes  *int64 `json:"pss_bytes,omitempty"`

	// CPUSeconds is the processor time used since the start; CPUPercent is a share of one core.
	CPUSeconds *float64 `json:"cpu_seconds,omitempty"`
	CPUPercent *float64 `json:"cpu_percent,omitempty"`

	Cgroup string `json:"cgroup,omitempty"`

	// Stdin is nil when it was not examined.
	Stdin *Stdin `json:"stdin,omitempty"`

	// Stdout is nil when it was not examined. A client reads a stdio server's answers from a pipe or socket;
	// a file or a terminal means that the server was run by hand.
	Stdout *Stdin `json:"stdout,omitempty"`

	// Listen are the sockets it accepts connections on ("tcp:127.0.0.1:4001", "unix:/run/x.sock"). Nil means
	// that they were not examined, empty that there are none.
	Listen []string `json:"listen,omitzero"`

	// InboundConnections counts the established connections to those sockets.
	InboundConnections *int `json:"inbound_connections,omitempty"`

	// InboundSilenceSeconds is the longest time since any of these connections last received data: work that
	// a request started is younger. Nil when there are none, or when it is not known for all.
	InboundSilenceSeconds *int64 `json:"inbound_silence_seconds,omitempty"`

	// Env holds selected variables that show where a process came from: envNames.
	Env map[string]string `json:"env,omitempty"`

	// Unreadable are the JSON names of the fields that the system refused.
	Unreadable []string `json:"unreadable,omitempty"`
}

// ID returns the process's identity.
func (p *Process) ID() ID { return ID{PID: p.PID, Start: p.Start} }

// RSS returns the resident memory in bytes, 0 when unknown.
func (p *Process) RSS() int64 {
	if p.RSSBytes == nil {
		return 0
	}
	return *p.RSSBytes
}

// Swap returns the swapped-out memory in bytes, 0 when unknown.
func (p *Process) Swap() int64 {
	if p.SwapBytes == nil {
		return 0
	}
	return *p.SwapBytes
}

// Stdin describes a process's standard input or output and its other end, which shows whether a client can
// still reach a stdio server.
type Stdin struct {
	Type StdinType `json:"type"`
	Peer StdinPeer `json:"peer,omitempty"`

	// FD is the descriptor, if not 0, on which the process seems to read instead, since descriptor 0 is
	// /dev/null (MCP Python SDK 2). A closed end here is weak evidence: the output of a helper that has
	// exited looks the same.
	FD int `json:"fd,omitempty"`

	// Unread says that a closed pipe still holds unread bytes: requests that the server may yet answer.
	Unread bool `json:"unread,omitempty"`

	// Holders are the processes that hold the other end; nil when [Holders] was not called.
	Holders []int `json:"holders,omitzero"`
}

// StdinType is the kind of file that a descriptor refers to.
type StdinType string

// The kinds of standard input.
const (
	StdinPipe   StdinType = "pipe"
	StdinSocket StdinType = "socket"
	StdinTTY    StdinType = "tty"
	StdinNull   StdinType = "null" // /dev/null, or closed
	StdinFile   StdinType = "file" // anything else
)

// StdinPeer is the state of the other end of a pipe or socket.
type StdinPeer string

// The states of the other end. Unknown must never be treated as closed.
const (
	PeerOpen    StdinPeer = "open"
	PeerClosed  StdinPeer = "closed"
	PeerUnknown StdinPeer = "unknown"
)
