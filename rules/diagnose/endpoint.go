package diagnose

import (
	"cmp"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan/facts"
)

// EndpointSchema and EndpointKind are those of the JSON form of an [EndpointReport], as [rules.ReportSchema]
// and [rules.ReportKind] are of a report.
const (
	EndpointSchema = 1
	EndpointKind   = "mcpdoctor.probe"
)

// The HTTP statuses that mean something here (RFC 9110). Package net/http is not linked for nine numbers.
const (
	statusOK         = 200
	badRequest       = 400
	unauthorized     = 401
	forbidden        = 403
	notFound         = 404
	methodNotAllowed = 405
	statusGone       = 410
	tooManyRequests  = 429
	unavailable      = 503
)

// EndpointReport is what is to be said about an HTTP endpoint that was asked: question, answer and
// verdict, what that means, and what is wrong with it. It is a plain value, as [rules.Report] is.
type EndpointReport struct {
	Schema int        `json:"schema"`
	Kind   string     `json:"kind"`
	Tool   rules.Tool `json:"tool"`
	Taken  time.Time  `json:"taken"`

	URL       string          `json:"url"` // without its secrets
	Transport facts.Transport `json:"transport"`
	Version   string          `json:"protocol_version"`
	Supported []string        `json:"supported_versions"` // that it named itself
	Server    EndpointServer  `json:"server"`

	// Process is who listens at the port on this machine; nil when that could not be seen.
	Process *EndpointProcess `json:"process,omitempty"`

	// Verdicts are in the order of the questions.
	Verdicts []EndpointVerdict `json:"verdicts"`

	// Restart and Growth say in a sentence what becomes of its clients when it restarts, and of its
	// memory while it runs.
	Restart string `json:"restart"`
	Growth  string `json:"growth"`

	// Left says what the probe itself left behind; empty when nothing was seen.
	Left string `json:"left,omitempty"`

	// Findings are as those of a [rules.Report]. Their Reap is empty: what leaked is for scan to judge.
	Findings []rules.Finding `json:"findings"`

	Exchanges []facts.Exchange `json:"exchanges"`
	Retention facts.Retention  `json:"retention"`
	Requests  int              `json:"requests"`

	// Problems are sentences about what could not be asked or seen.
	Problems []string `json:"problems"`
}

// EndpointServer is what a server calls itself.
type EndpointServer struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// EndpointProcess is the process that listens.
type EndpointProcess struct {
	PID     int    `json:"pid"`
	Name    string `json:"name"`           // "supergateway 3.4.3", or the kernel's name for it
	Mode    string `json:"mode,omitempty"` // as its command line tells; empty when it does not
	Command string `json:"command"`

	// Argv is what Command joins, nil when only a line is known.
	Argv []string `json:"-"`
}

// EndpointVerdict is one row: a question, its answer, and what to think of it.
type EndpointVerdict struct {
	Topic    Topic           `json:"topic"`
	Question string          `json:"question"`
	Answer   string          `json:"answer"`
	Verdict  EndpointOutcome `json:"verdict"`
}

// Topic names a row for programs.
type Topic string

// The topics, in their order.
const (
	TopicTransport Topic = "transport"
	TopicSession   Topic = "session"
	TopicWithout   Topic = "without-session"
	TopicWith      Topic = "with-session"
	TopicUnknown   Topic = "unknown-session"
	TopicDelete    Topic = "delete"
	TopicClosed    Topic = "closed-stream"
	TopicStale     Topic = "unknown-stream"
	TopicAgain     Topic = "again"
	TopicLimit     Topic = "limit"
	TopicDropped   Topic = "dropped-session"
	TopicProcesses Topic = "processes"
	TopicMemory    Topic = "memory"
)

// EndpointOutcome is the verdict on one question.
type EndpointOutcome string

// The outcomes. Unsure is never to be read as one of the others.
const (
	OK     EndpointOutcome = "ok"
	Failed EndpointOutcome = "failed"
	Unsure EndpointOutcome = "cannot tell"
	Note   EndpointOutcome = "info"
)

// Fails tells that a question was answered badly.
func (r *EndpointReport) Fails() bool {
	for _, v := range r.Verdicts {
		if v.Verdict == Failed {
			return true
		}
	}
	return false
}

// JudgeEndpoint says what the answers of an endpoint mean.
func Endpoint(e *facts.Endpoint, taken time.Time) *EndpointReport {
	j := &endpointJudge{e: e, out: &EndpointReport{
		Schema: EndpointSchema, Kind: EndpointKind, Taken: taken, URL: e.URL, Transport: e.Transport, Version: e.Version,
		Supported: append([]string{}, e.Supported...), Server: EndpointServer{e.Name, e.Release},
		Verdicts: []EndpointVerdict{}, Findings: []rules.Finding{}, Exchanges: append([]facts.Exchange{}, e.Exchanges...), Retention: e.Retention, Requests: e.Requests,
		Problems: []string{},
	}}
	j.listener()
	j.transport()
	if e.Transport == facts.LegacySSE {
		j.legacy()
	} else {
		j.sessions()
	}
	j.limit()
	j.dropped()
	j.processes()
	j.memory()
	j.findings()
	j.left()
	j.undeleted()
	if e.Unasked != "" {
		j.out.Problems = append(j.out.Problems, e.Unasked)
	}
	return j.out
}

// endpointJudge is one judgement on the way to its report.
type endpointJudge struct {
	e   *facts.Endpoint
	out *EndpointReport

	gateway string // the name of a known gateway that listens; else empty
	known   *catalog.Gateway
	run     catalog.Run
	runtime string // the interpreter of who listens; empty when it is none, or not seen

	stranded string        // why clients are stranded by a restart; empty when they are not
	kept     time.Duration // for how long a dropped session was seen to be kept; 0 when it was not
	piling   string        // what piles up for ever, in words; empty for nothing
	growing  string        // how memory grows, in words
}

// row adds a verdict.
func (j *endpointJudge) row(topic Topic, question string, verdict EndpointOutcome, answer string) {
	j.out.Verdicts = append(j.out.Verdicts, EndpointVerdict{Topic: topic, Question: question, Answer: answer, Verdict: verdict})
}

// answer finds the answer to a question; false when it was not asked.
func (j *endpointJudge) answer(ask facts.Ask) (facts.Answer, bool) {
	for _, x := range j.e.Exchanges {
		if x.Ask == ask {
			return x.Answer, true
		}
	}
	return facts.Answer{}, false
}

// look finds a look at the process; false when there was none.
func (j *endpointJudge) look(when facts.When) (facts.Look, bool) {
	for _, l := range j.e.Retention.Looks {
		if l.When == when {
			return l, true
		}
	}
	return facts.Look{}, false
}

// listener recognises who listens, as scan does.
func (j *endpointJudge) listener() {
	p := &j.e.Process
	if !p.Found {
		return
	}
	out := &EndpointProcess{PID: p.Listener.PID, Name: p.Listener.Name, Command: process.CommandLine(&p.Listener), Argv: p.Listener.Args}
	rec := process.Classify(&p.Listener, p.OS)
	j.runtime = rec.Command.Runtime
	if rec.Role == process.RoleGateway {
		j.gateway, j.known, j.run = rec.Name, rec.Gateway, rec.Run(cmp.Or(p.Listener.Version, rec.Command.Version))
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
