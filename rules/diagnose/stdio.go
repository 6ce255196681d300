// Package diagnose judges what `check` and `probe` saw of one server: [Stdio] a command that was started and
// ended as clients do, [Endpoint] a URL that was asked. Both take the plain values of scan/facts.
package diagnose

import (
	"mcpdoctor/rules"
	"mcpdoctor/rules/configured"
	"time"
)

// CheckSchema is the version of the JSON form of a [StdioReport].
const StdioSchema = 1

// CheckKind names the JSON form in its own text.
const StdioKind = "mcpdoctor.check"

// Check is what became of a stdio server and of all below it when it was brought to its end, and what
// can be changed. It is a plain value: text and JSON are two readers of it.
//
// Strings that came from a process are raw here. Package report makes them safe to show.
type StdioReport struct {
	Schema  int        `json:"schema"`
	Kind    string     `json:"kind"`
	Tool    rules.Tool `json:"tool"`
	Taken   time.Time  `json:"taken"`
	Command []string   `json:"command"`

	TimeoutSeconds float64 `json:"timeout_seconds"` // how long each end was waited for

	Server CheckedServer `json:"server"`

	// Failed and Unknown count the rows with these verdicts.
	Failed  int `json:"failed"`
	Unknown int `json:"unknown"`

	Rows []CheckRow `json:"rows"`

	// Problems are sentences about what could not be seen or done.
	Problems []string `json:"problems"`
}

// CheckedServer is the server as it was while it was running.
type CheckedServer struct {
	Name     string `json:"name"` // what it calls itself
	Version  string `json:"version"`
	Protocol string `json:"protocol"`
	Tools    int    `json:"tools"`

	// StartupSeconds are how long starts took until the handshake was answered.
	StartupSeconds []float64 `json:"startup_seconds"`

	// RSSBytes and PSSBytes are the sums over the layers at rest; absent when one is not known.
	RSSBytes *int64 `json:"rss_bytes,omitempty"`
	PSSBytes *int64 `json:"pss_bytes,omitempty"`

	// Layers are the processes, those of the chain first, from the outermost wrapper to the server.
	Layers []Layer `json:"layers"`
}

// Layer is one process of a server at rest.
type Layer struct {
	PID      int       `json:"pid"`
	PPID     int       `json:"ppid"`
	Kind     LayerKind `json:"kind"`
	Name     string    `json:"name"` // "npx", "sh", "node"
	Command  string    `json:"command"`
	Argv     []string  `json:"-"` // what Command joins, nil when only a line is known
	RSSBytes *int64    `json:"rss_bytes,omitempty"`
	PSSBytes *int64    `json:"pss_bytes,omitempty"`
}

// LayerKind is what a process is to the server.
type LayerKind string

// The kinds. A launcher that nobody knows for one is taken for the server, and what it starts for a
// helper.
const (
	LayerWrapper LayerKind = "wrapper"
	LayerServer  LayerKind = "server"
	LayerHelper  LayerKind = "helper"
)

// CheckRow is one question with its answer.
type CheckRow struct {
	ID       CheckID      `json:"id"`
	Question string       `json:"question"`
	Answer   string       `json:"answer"`
	Verdict  CheckVerdict `json:"verdict"`

	// Seconds is how long it took until all had ended; absent when they did not.
	Seconds *float64 `json:"seconds,omitempty"`

	// Because are the facts behind a failure, one sentence each: which layer lost what.
	Because []string `json:"because,omitempty"`

	// Left are the processes that stayed.
	Left []LeftRow `json:"left,omitempty"`

	Remedy *CheckRemedy `json:"remedy,omitempty"` // nil unless it failed
}

// CheckID names a question.
type CheckID string

// The questions.
const (
	CheckStdin      CheckID = "stdin-closed"
	CheckTerminated CheckID = "terminated"
	CheckKilled     CheckID = "client-killed"
	CheckStdout     CheckID = "stdout"
)

// CheckVerdict is the verdict on one question.
type CheckVerdict string

// The verdicts.
const (
	CheckOK      CheckVerdict = "ok"
	CheckFailed  CheckVerdict = "failed"
	CheckUnknown CheckVerdict = "cannot tell"
)

// LeftRow is a process that stayed.
type LeftRow struct {
	PID        int       `json:"pid"`
	PPID       int       `json:"ppid"` // of now
	Parent     string    `json:"parent"`
	Adopted    bool      `json:"adopted"`
	Kind       LayerKind `json:"kind"`
	Name       string    `json:"name"`
	Command    string    `json:"command"`
	Argv       []string  `json:"-"`                     // what Command joins, nil when only a line is known
	CPUPercent *float64  `json:"cpu_percent,omitempty"` // of one core, while it was waited for
	RSSBytes   *int64    `json:"rss_bytes,omitempty"`
}

// CheckRemedy is what can be changed so that a question has another answer.
type CheckRemedy struct {
	Rule     string            `json:"rule,omitempty"` // whose texts these are
	Steps    []string          `json:"steps"`
	Commands []string          `json:"commands,omitempty"` // to be typed
	Entry    *configured.Entry `json:"entry,omitempty"`    // to configure instead
	Code     *rules.Snippet    `json:"code,omitempty"`
}
