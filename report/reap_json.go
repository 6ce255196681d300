package report

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/reap"
)

// PlanJSON writes a plan, or what became of it, as one JSON value, to the contract that [reap.Plan] is.
func PlanJSON(w io.Writer, p *reap.Plan) error { return writeJSON(w, clean(p)) }

// logged is one line of a log: what became of one instance. It says all that a reader has to know
// who sees no other line.
type logged struct {
	Time    time.Time  `json:"time"` // when it was written down, in UTC
	Host    string     `json:"host,omitempty"`
	Tool    rules.Tool `json:"tool"`
	Outcome string     `json:"outcome"`
	Reason  string     `json:"reason,omitempty"` // absent when it ended as it was asked to

	Server     string    `json:"server"`
	Role       string    `json:"role"`
	Rule       string    `json:"rule"`
	Confidence string    `json:"confidence"`
	Finding    string    `json:"finding"`
	RootPID    int       `json:"root_pid"`
	PIDs       []int     `json:"pids"` // in the order in which they were asked to end
	Started    time.Time `json:"started,omitzero"`
	AgeSeconds int64     `json:"age_seconds"`
	RSSBytes   int64     `json:"rss_bytes"`
	PSSBytes   int64     `json:"pss_bytes,omitempty"` // absent unless known of every process
	Command    string    `json:"command"`             // of the process that did the work

	Processes []loggedProcess `json:"processes"`
	Left      []reap.Kept     `json:"left,omitempty"`
}

type loggedProcess struct {
	PID     int    `json:"pid"`
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
}

// PlanLog writes one line of JSON for each instance that something became of: that ended, was spared, or
// is still there though it was to end. One that is only planned has none. All lines are written at
// once, so that those of two writers that append to one file do not mix (O_APPEND in open(2)).
func PlanLog(w io.Writer, p *reap.Plan, now time.Time) error {
	p = clean(p)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, d := range p.Instances {
		if d.Outcome == reap.Planned {
			continue
		}
		if err := enc.Encode(logLine(p, d, now)); err != nil {
			return err
		}
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := w.Write(b.Bytes())
	return err
}

func logLine(p *reap.Plan, d reap.PlannedInstance, now time.Time) logged {
	l := logged{
		Time: now.UTC().Truncate(time.Second), Host: p.Host, Tool: p.Tool, Outcome: string(d.Outcome), Reason: d.Reason,
		Server: d.Server, Role: string(d.Role), Rule: d.Rule, Confidence: string(d.Confidence), Finding: d.Finding,
		RootPID: d.RootPID, PIDs: pidsOf(d), Started: d.Started, AgeSeconds: d.AgeSeconds, RSSBytes: d.RSSBytes, PSSBytes: d.PSSBytes,
		Command: worker(d).Command, Processes: []loggedProcess{}, Left: d.Left,
	}
	for _, s := range d.Processes {
		l.Processes = append(l.Processes, loggedProcess{PID: s.PID, Outcome: string(s.Outcome), Reason: s.Reason})
	}
	return l
}
