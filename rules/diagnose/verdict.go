// Package diagnose judges what `check` and `probe` observed of one server: [Stdio] takes the facts about a command
// that was started and stopped as clients do it, [Endpoint] those about a URL that was asked. Both return a plain
// report: rows of question, answer and verdict, with their reasons and remedies.
package diagnose

// Verdict is the result of one check.
type Verdict string

// The verdicts. Unsure counts as neither passed nor failed.
const (
	OK     Verdict = "ok"
	Failed Verdict = "failed"
	Unsure Verdict = "cannot tell"
	Note   Verdict = "info"
)

// Row is one check: what was asked, what was observed, and whether that is good.
type Row struct {
	Question string  `json:"question"`
	Answer   string  `json:"answer"`
	Verdict  Verdict `json:"verdict"`
}

// Topic identifies a check to programs.
type Topic string

// The topics of a [StdioReport], in the order of its rows.
const (
	TopicStdinClosed  Topic = "stdin-closed"
	TopicTerminated   Topic = "terminated"
	TopicClientKilled Topic = "client-killed"
	TopicStdout       Topic = "stdout"
)

// The topics of an [EndpointReport], in the order of its rows.
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

// questions has the topics in words, short enough for an answer beside them in 80 columns.
var questions = map[Topic]string{
	TopicStdinClosed:  "exits when stdin is closed",
	TopicTerminated:   "exits when its root gets SIGTERM",
	TopicClientKilled: "exits when its client is killed",
	TopicStdout:       "stdout contains only MCP messages",

	TopicTransport: "transport",
	TopicSession:   "hands out sessions",
	TopicWithout:   "tools/list without a session",
	TopicWith:      "tools/list with its session",
	TopicUnknown:   "unknown session, after a restart",
	TopicDelete:    "DELETE ends the session",
	TopicClosed:    "session of a closed stream",
	TopicStale:     "unknown session, after a restart",
	TopicAgain:     "accepts a second client",
	TopicLimit:     "session limit",
	TopicDropped:   "releases dropped sessions",
	TopicProcesses: "leaves no processes behind",
	TopicMemory:    "memory stays level",
}
