package diagnose

import (
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/configured"
	"mcpdoctor/scan/facts"
)

// StdioSchema and StdioKind identify the JSON form of a [StdioReport].
const (
	StdioSchema = 1
	StdioKind   = "mcpdoctor.check"
)

// StdioReport says whether a stdio server and its descendants exit when they should, and what to change if not. It is
// a plain value; its strings are raw, and package report makes them safe to show.
type StdioReport struct {
	Schema  int        `json:"schema"`
	Kind    string     `json:"kind"`
	Tool    rules.Tool `json:"tool"`
	Taken   time.Time  `json:"taken"`
	Command []string   `json:"command"`

	TimeoutSeconds float64 `json:"timeout_seconds"` // the wait for the processes to exit, in each check

	Server StdioServer `json:"server"`

	// Failed and Unknown count the rows with the verdicts [Failed] and [Unsure].
	Failed  int `json:"failed"`
	Unknown int `json:"unknown"`

	Rows []StdioRow `json:"rows"`

	// Problems are sentences about what could not be observed or done.
	Problems []string `json:"problems"`
}

// StdioServer is the server while it was idle after its handshake.
type StdioServer struct {
	facts.Server

	// StartupSeconds are the times from a start to the answer of the handshake.
	StartupSeconds []float64 `json:"startup_seconds"`

	// RSSBytes and PSSBytes are the sums over the layers; absent when one of them is not known.
	RSSBytes *int64 `json:"rss_bytes,omitempty"`
	PSSBytes *int64 `json:"pss_bytes,omitempty"`

	// Layers are the processes: the chain from the outermost wrapper to the server, then its helpers.
	Layers []Layer `json:"layers"`
}

// Layer is one process of a server.
type Layer struct {
	PID      int       `json:"pid"`
	PPID     int       `json:"ppid"`
	Kind     LayerKind `json:"kind"`
	Name     string    `json:"name"` // "npx", "sh", "node"
	Command  string    `json:"command"`
	Argv     []string  `json:"-"` // what Command joins; nil when only a line is known
	RSSBytes *int64    `json:"rss_bytes,omitempty"`
	PSSBytes *int64    `json:"pss_bytes,omitempty"`
}

// LayerKind is the role of a process in its server.
type LayerKind string

// The kinds. An unknown launcher counts as the server, and what it starts as a helper.
const (
	LayerWrapper LayerKind = "wrapper"
	LayerServer  LayerKind = "server"
	LayerHelper  LayerKind = "helper"
)

// StdioRow is one check of a stdio server.
type StdioRow struct {
	ID Topic `json:"id"`
	Row

	// Seconds is how long it took until all processes had exited; absent when they did not.
	Seconds *float64 `json:"seconds,omitempty"`

	// Because are the facts behind a failure, one sentence each.
	Because []string `json:"because,omitempty"`

	Left []Survivor `json:"left,omitempty"`

	Remedy *StdioRemedy `json:"remedy,omitempty"` // nil unless the check failed
}

// Survivor is a process that did not exit.
type Survivor struct {
	PID        int       `json:"pid"`
	PPID       int       `json:"ppid"` // its parent now
	Parent     string    `json:"parent"`
	Adopted    bool      `json:"adopted"`
	Kind       LayerKind `json:"kind"`
	Name       string    `json:"name"`
	Command    string    `json:"command"`
	Argv       []string  `json:"-"`                     // as in [Layer]
	CPUPercent *float64  `json:"cpu_percent,omitempty"` // of one core, during the wait
	RSSBytes   *int64    `json:"rss_bytes,omitempty"`
}

// StdioRemedy is what can be changed so that a check passes.
type StdioRemedy struct {
	Rule     string            `json:"rule,omitempty"` // the rule that the steps come from
	Steps    []string          `json:"steps"`
	Commands []string          `json:"commands,omitempty"` // to be typed
	Entry    *configured.Entry `json:"entry,omitempty"`    // to configure instead
	Code     *rules.Snippet    `json:"code,omitempty"`
}
