package rules

import (
	"slices"
	"time"

	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

// ReportSchema is the version of the report's JSON form. It changes only when a reader of the
// present form would misunderstand the new one.
const ReportSchema = 1

// ReportKind names the JSON form in its own text.
const ReportKind = "mcpdoctor.report"

// Report is what was found on one host at one moment. It is a plain value: text and JSON are two
// readers of it, and the same snapshot gives the same report.
//
// Strings that came from a process are raw here. Package report makes them safe to show.
type Report struct {
	Schema int       `json:"schema"`
	Kind   string    `json:"kind"`
	Tool   Tool      `json:"tool"`
	Taken  time.Time `json:"taken"`
	Host   scan.Host `json:"host"`

	Summary Summary `json:"summary"`

	// Findings are ordered by severity, then by the bytes they hold, then by rule and PID.
	Findings []Finding `json:"findings"`

	Servers  []Server `json:"servers"`
	Clients  []Owning `json:"clients"`
	Gateways []Owning `json:"gateways"`

	// Problems are sentences about what could not be seen.
	Problems []string `json:"problems"`

	// Parentless reports that the source has no parent PIDs, so that leaks cannot be detected.
	Parentless bool `json:"parentless,omitempty"`
}

// Tool is the program that wrote the report. It is filled in by the command.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Summary counts what was seen.
type Summary struct {
	Processes int `json:"processes"`
	Clients   int `json:"clients"`
	Gateways  int `json:"gateways"`
	Servers   int `json:"servers"`

	// RSSBytes and SwapBytes are those of the servers and gateways with all their processes.
	RSSBytes  int64 `json:"rss_bytes"`
	SwapBytes int64 `json:"swap_bytes"`

	Findings Counts   `json:"findings"`
	Reapable Reapable `json:"reapable"`

	// Unreadable counts the processes of which something was refused.
	Unreadable int `json:"unreadable"`
}

// Counts is the number of findings of each severity.
type Counts struct {
	Error   int `json:"error"`
	Warning int `json:"warning"`
	Info    int `json:"info"`
}

// Reapable is what is safe to terminate.
type Reapable struct {
	Processes int   `json:"processes"`
	Instances int   `json:"instances"`
	RSSBytes  int64 `json:"rss_bytes"`
}

// Severity is how much a finding matters.
type Severity string

// The severities, worst first.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Rank orders severities: the worse, the higher. An unknown one ranks 0.
func (s Severity) Rank() int { return 1 + slices.Index([]Severity{Info, Warning, Error}, s) }

// Finding is one leak or problem, with its evidence and its remedy.
type Finding struct {
	// ID is the same in every run that sees the same leak.
	ID         string             `json:"id"`
	Rule       string             `json:"rule"`
	Severity   Severity           `json:"severity"`
	Confidence process.Confidence `json:"confidence"`
	Title      string             `json:"title"`

	// Evidence are the facts behind the finding, one sentence each.
	Evidence []string `json:"evidence"`

	// PIDs are the subjects, ascending: what leaked, or the runaway parent.
	PIDs []int `json:"pids"`

	// ParentPID is the culprit, 0 when there is none.
	ParentPID int `json:"parent_pid,omitempty"`

	// Instances counts the running servers (or browsers, or zombies) that the finding is about.
	Instances int `json:"instances"`

	// Processes are the subjects, the parent and what else the finding is about, ascending by PID.
	Processes []Row `json:"processes"`

	// RSSBytes is the sum over Processes without those of the parent.
	RSSBytes int64 `json:"rss_bytes"`

	// PSSBytes is the same sum of PSS, which counts shared pages once and is what comes back when
	// they end; absent unless it was asked for and known of every one.
	PSSBytes int64 `json:"pss_bytes,omitempty"`

	Reap   Reap   `json:"reap"`
	Remedy Remedy `json:"remedy"`
}

// Row is one process of a finding.
type Row struct {
	PID        int       `json:"pid"`
	PPID       int       `json:"ppid"`
	Started    time.Time `json:"started,omitzero"`
	AgeSeconds *int64    `json:"age_seconds,omitempty"` // absent when the start is not known
	Role       string    `json:"role"`                  // client, gateway, launcher, server, helper, zombie; empty for others
	Server     string    `json:"server"`                // what server it belongs to, empty when none
	Command    string    `json:"command"`
	Argv       []string  `json:"-"`                   // what Command joins, nil when only a line is known
	RSSBytes   *int64    `json:"rss_bytes,omitempty"` // absent when it is not known
}

// Reap is what may be terminated for a finding. Both lists are ascending and have no PID in common.
type Reap struct {
	Safe      []int `json:"safe"`       // safe to terminate
	OnRequest []int `json:"on_request"` // only when the user names the rule
}

// Remedy is what a person can do, the cause first.
type Remedy struct {
	Summary  string   `json:"summary"`
	Steps    []string `json:"steps"`
	Commands []string `json:"commands"`
}

// Verdict is what is thought of one server.
type Verdict string

// The verdicts. Unknown means that what could be seen does not decide.
const (
	InUse      Verdict = "in-use"
	Supervised Verdict = "supervised"
	Leaked     Verdict = "leaked"
	Suspect    Verdict = "suspect"
	Unknown    Verdict = "unknown"
)

// Server is one instance: a running server with its launchers and helpers.
type Server struct {
	Server       string        `json:"server"`
	PIDs         []int         `json:"pids"`
	RootPID      int           `json:"root_pid"`
	Owner        process.Owner `json:"owner"`
	RecognisedBy string        `json:"recognised_by"`
	Started      time.Time     `json:"started,omitzero"`
	AgeSeconds   int64         `json:"age_seconds"`
	RSSBytes     int64         `json:"rss_bytes"`
	SwapBytes    int64         `json:"swap_bytes"`
	Listen       []string      `json:"listen,omitempty"`
	Mode         string        `json:"mode,omitempty"` // its transport, as its command line tells; empty for stdio too
	Verdict      Verdict       `json:"verdict"`
	Because      string        `json:"because"`
}

// Owning is a client or a gateway, with what it owns.
type Owning struct {
	Name       string    `json:"name"`
	PID        int       `json:"pid"`
	Started    time.Time `json:"started,omitzero"`
	AgeSeconds int64     `json:"age_seconds"`
	RSSBytes   int64     `json:"rss_bytes"` // its own processes, without its servers
	Servers    int       `json:"servers"`
	Version    string    `json:"version,omitempty"`
	Listen     []string  `json:"listen,omitempty"`
	Mode       string    `json:"mode,omitempty"` // of a gateway: its transport, and what a session is to it
}
