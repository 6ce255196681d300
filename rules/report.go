package rules

import (
	"slices"
	"time"

	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

const (
	// ReportSchema is the version of the report's JSON form. It changes only when a reader of the present form would
	// misunderstand the new one.
	ReportSchema = 1

	// ReportKind names the JSON form in its own text.
	ReportKind = "mcpdoctor.report"
)

// Report is what was found on one host at one moment. It is a plain value: text and JSON are two readers of it, and the
// same snapshot gives the same report.
//
// Strings that came from a process are raw here. Package report makes them safe to show.
type Report struct {
	Schema     int       `json:"schema"`
	Kind       string    `json:"kind"`
	Tool       Tool      `json:"tool"`
	Taken      time.Time `json:"taken"`
	Host       scan.Host `json:"host"`
	Summary    Summary   `json:"summary"`
	Findings   []Finding `json:"findings"` // by severity, then by the bytes they hold, then by rule and PID
	Servers    []Server  `json:"servers"`
	Clients    []Owning  `json:"clients"`
	Gateways   []Owning  `json:"gateways"`
	Problems   []string  `json:"problems"`             // sentences about what could not be seen
	Parentless bool      `json:"parentless,omitempty"` // the source has no parent PIDs, so leaks cannot be detected
}

// Tool is the program that wrote the report. It is filled in by the command.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Summary counts what was seen.
type Summary struct {
	Processes  int      `json:"processes"`
	Clients    int      `json:"clients"`
	Gateways   int      `json:"gateways"`
	Servers    int      `json:"servers"`
	RSSBytes   int64    `json:"rss_bytes"`  // of the servers and gateways with all their processes
	SwapBytes  int64    `json:"swap_bytes"` // of the same
	Findings   Counts   `json:"findings"`
	Reapable   Reapable `json:"reapable"`
	Unreadable int      `json:"unreadable"` // processes of which something was refused
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
	ID         string             `json:"id"` // the same in every run that sees the same leak
	Rule       string             `json:"rule"`
	Severity   Severity           `json:"severity"`
	Confidence process.Confidence `json:"confidence"`
	Title      string             `json:"title"`
	Evidence   []string           `json:"evidence"`             // the facts behind it, one sentence each
	PIDs       []int              `json:"pids"`                 // the subjects, ascending: what leaked, or the runaway parent
	ParentPID  int                `json:"parent_pid,omitempty"` // the culprit
	Instances  int                `json:"instances"`            // how many servers, browsers or zombies the finding is about
	Processes  []Row              `json:"processes"`            // the subjects, the parent and others, ascending by PID
	RSSBytes   int64              `json:"rss_bytes"`            // the sum over Processes without those of the parent

	// PSSBytes is the same sum of PSS, which counts shared pages once and is what terminating frees; absent unless it
	// was asked for and known of every one.
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
	Mode         string        `json:"mode,omitempty"` // its transport, as its command line says; empty for stdio too
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
