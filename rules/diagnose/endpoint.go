package diagnose

import (
	"cmp"
	"slices"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan/facts"
)

// EndpointSchema and EndpointKind identify the JSON form of an [EndpointReport].
const (
	EndpointSchema = 1
	EndpointKind   = "mcpdoctor.probe"
)

// EndpointReport is the diagnosis of an HTTP endpoint. It is a plain value, as [rules.Report] is; its strings are
// raw, and package report makes them safe to show.
type EndpointReport struct {
	Schema int        `json:"schema"`
	Kind   string     `json:"kind"`
	Tool   rules.Tool `json:"tool"`
	Taken  time.Time  `json:"taken"`

	URL       string          `json:"url"` // without its secrets
	Transport facts.Transport `json:"transport"`
	Version   string          `json:"protocol_version"`
	Supported []string        `json:"supported_versions"` // as the server lists them
	Server    EndpointServer  `json:"server"`

	// Process listens at the port; nil when it was not found on this machine.
	Process *EndpointProcess `json:"process,omitempty"`

	Verdicts []EndpointRow `json:"verdicts"`

	// Restart says what a restart means for the clients, Growth whether processes or memory pile up.
	Restart string `json:"restart"`
	Growth  string `json:"growth"`

	// Left names the processes that appeared during the probe and are still running; empty for none.
	Left string `json:"left,omitempty"`

	// Findings have an empty Reap: only a scan decides what may be terminated.
	Findings []rules.Finding `json:"findings"`

	Exchanges []facts.Exchange `json:"exchanges"`
	Retention facts.Retention  `json:"retention"`
	Requests  int              `json:"requests"`

	// Problems are sentences about what could not be asked or observed.
	Problems []string `json:"problems"`
}

// EndpointServer is the server's name and version from its handshake.
type EndpointServer struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// EndpointProcess is the process that listens at the port.
type EndpointProcess struct {
	PID     int    `json:"pid"`
	Name    string `json:"name"`           // "supergateway 3.4.3", or the kernel's name for it
	Mode    string `json:"mode,omitempty"` // from its command line; empty when that does not say
	Command string `json:"command"`

	// Argv is what Command joins, nil when only a line is known.
	Argv []string `json:"-"`
}

// EndpointRow is one check of an endpoint.
type EndpointRow struct {
	Topic Topic `json:"topic"`
	Row
}

// Fails reports whether a check failed.
func (r *EndpointReport) Fails() bool {
	return slices.ContainsFunc(r.Verdicts, func(row EndpointRow) bool { return row.Verdict == Failed })
}

// Endpoint judges the answers of an endpoint.
func Endpoint(e *facts.Endpoint, taken time.Time) *EndpointReport {
	j := &endpointJudge{e: e, answers: map[facts.Ask]facts.Answer{}, looks: map[facts.When]facts.Look{}, verdicts: map[Topic]Verdict{}}
	for _, x := range e.Exchanges {
		j.answers[x.Ask] = x.Answer
	}
	for _, l := range e.Retention.Looks {
		j.looks[l.When] = l
	}
	j.out = &EndpointReport{
		Schema: EndpointSchema, Kind: EndpointKind, Taken: taken,
		URL: e.URL, Transport: e.Transport, Version: e.Version, Supported: append([]string{}, e.Supported...),
		Server: EndpointServer{e.Name, e.Release}, Verdicts: []EndpointRow{}, Findings: []rules.Finding{},
		Exchanges: append([]facts.Exchange{}, e.Exchanges...), Retention: e.Retention, Requests: e.Requests, Problems: []string{},
	}
	j.listener()
	j.transport()
	if e.Transport == facts.LegacySSE {
		j.legacy()
	} else {
		j.sessions()
	}
	j.limit()
	j.dropped()
	j.leaks()
	j.findings()
	j.leftovers()
	if e.Unasked != "" {
		j.out.Problems = append(j.out.Problems, e.Unasked)
	}
	return j.out
}

// endpointJudge is a judgement in progress.
type endpointJudge struct {
	e        *facts.Endpoint
	answers  map[facts.Ask]facts.Answer // zero for what was not asked
	looks    map[facts.When]facts.Look  // zero for those that were not taken
	verdicts map[Topic]Verdict          // of the rows so far
	out      *EndpointReport

	gateway catalog.Gateway // that listens; zero for another program
	run     catalog.Run     // its command line
	runtime string          // the interpreter of the listener; empty for none, or when it was not found

	// What the rows establish, for the findings; zero for what does not apply.
	stranded string        // why a restart strands clients
	kept     time.Duration // how long a dropped session was observed to be kept
	piling   string        // the processes that pile up without end
	growing  string        // how memory grows
}

// listener recognises the process that listens, as scan does.
func (j *endpointJudge) listener() {
	p := &j.e.Process
	if !p.Found {
		return
	}
	out := &EndpointProcess{PID: p.Listener.PID, Name: p.Listener.Name, Command: process.CommandLine(&p.Listener), Argv: p.Listener.Args}
	rec := process.Classify(&p.Listener, p.OS)
	j.runtime = rec.Command.Runtime
	if rec.Role == process.RoleGateway {
		j.gateway = *cmp.Or(rec.Gateway, &catalog.Gateway{Name: rec.Name})
		j.run = rec.Run(cmp.Or(p.Listener.Version, rec.Command.Version))
	}
	if rec.Name != "" && rec.Role != process.RoleLauncher {
		out.Name = rec.Name
		if rec.Role == process.RoleGateway && j.run.Version != "" {
			out.Name += " " + j.run.Version
		}
		out.Mode = process.ServingMode(rec, j.run.Version)
	}
	j.out.Process = out
}

// row adds the row of a check.
func (j *endpointJudge) row(topic Topic, verdict Verdict, answer string) {
	row := EndpointRow{Topic: topic, Row: Row{Question: questions[topic], Answer: answer, Verdict: verdict}}
	if topic == TopicLimit && j.e.Retention.Request == "tools/list" {
		row.Question = "request limit"
	}
	j.verdicts[topic] = verdict
	j.out.Verdicts = append(j.out.Verdicts, row)
}

// judge adds the row that the answer to one question decides. decide returns the verdict and what to say after the
// answer; it is not called for an answer that proves nothing.
func (j *endpointJudge) judge(topic Topic, ask facts.Ask, decide func(facts.Answer) (Verdict, string)) {
	r, asked := j.answers[ask]
	if !asked {
		return
	}
	if doubt := j.doubt(ask, r); doubt != "" {
		j.row(topic, Unsure, r.Words()+doubt)
		return
	}
	verdict, comment := decide(r)
	j.row(topic, verdict, r.Words()+comment)
}
