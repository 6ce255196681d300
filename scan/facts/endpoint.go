// Package facts has plain values for what was seen of an MCP server: package endpoint fills in [Endpoint], package
// stdio [Stdio]. Package diagnose judges them.
package facts

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"mcpdoctor/scan"
)

// Endpoint is what an HTTP endpoint answered to a client's questions, and what became of its process meanwhile.
//
// Strings that came from the endpoint are untrusted; package report makes them safe to show. In all of them, the
// values of the given headers, of session IDs, and of the URL's user and query are replaced by "***".
type Endpoint struct {
	URL string `json:"url"` // without its secrets

	Transport Transport `json:"transport"`

	// Version is the protocol version that was agreed on; Supported are those that the endpoint listed.
	Version   string   `json:"protocol_version,omitempty"`
	Supported []string `json:"supported_versions,omitempty"`

	// Modern means that it serves revision 2026-07-28, perhaps beside others.
	Modern bool `json:"modern"`

	// Name and Release are the name and version of the server.
	Name    string `json:"server_name,omitempty"`
	Release string `json:"server_version,omitempty"`

	// Session means that the answer to initialize has an Mcp-Session-Id.
	Session bool `json:"session"`

	// LimitMS is how long one answer could take.
	LimitMS int64 `json:"answer_limit_ms"`

	// Exchanges are in the order in which they were sent.
	Exchanges []Exchange `json:"exchanges"`

	Retention Retention `json:"retention"`
	Process   Process   `json:"process"`

	// Requests counts all HTTP requests, with redirects and cleaning up.
	Requests int `json:"requests"`

	// Unasked says why not all questions were asked.
	Unasked string `json:"unasked,omitempty"`
}

const (
	// Patience is how long one answer may take at most. A gateway that starts its server with npx for
	// each request needs several seconds.
	Patience = 15 * time.Second

	// LeastForMemory is how many sessions it takes until memory growth means something: the first few hundred
	// requests cost a healthy server up to 30 MB, as its code is compiled and its heap grows.
	LeastForMemory = 1000
)

// Transport is a transport of MCP.
type Transport string

// The transports.
const (
	Streamable Transport = "streamable-http" // 2025-03-26 to 2025-11-25, and 2026-07-28 beside them
	Stateless  Transport = "stateless-http"  // 2026-07-28 alone
	LegacySSE  Transport = "http+sse"        // 2024-11-05, deprecated
)

// Ask names a question.
type Ask string

// The questions, by what is sent.
const (
	AskInitialize  Ask = "initialize"      // initialize, as every client until 2025-11-25 begins
	AskInitialized Ask = "initialized"     // the notification that follows it, when there is a session
	AskModern      Ask = "modern"          // server/discover, as revision 2026-07-28 has it
	AskWithout     Ask = "without-session" // tools/list without a session
	AskWith        Ask = "with-session"    // tools/list with the session of initialize
	AskUnknown     Ask = "unknown-session" // tools/list with a session that never was
	AskDelete      Ask = "delete"          // DELETE of the session
	AskDeleted     Ask = "deleted-session" // tools/list with the session after that
	AskDropped     Ask = "dropped-session" // ping with a session that was dropped a while ago
	AskStream      Ask = "stream"          // GET, which opens the stream of the old transport
	AskOverStream  Ask = "over-stream"     // initialize, POSTed to the address of that stream
	AskClosed      Ask = "closed-stream"   // tools/list, POSTed there after the stream was closed
	AskStale       Ask = "stale-stream"    // tools/list, POSTed to a session that never was
	AskAgain       Ask = "again"           // a new GET at the end
)

// Exchange is one question and its answer.
type Exchange struct {
	Ask        Ask    `json:"ask"`
	Sent       string `json:"sent"` // in words: "POST tools/list, unknown session"
	Answer     Answer `json:"answer"`
	DurationMS int64  `json:"duration_ms"`
}

// Answer is an answer in short.
type Answer struct {
	Status int    `json:"status"`           // of HTTP; 0 when there was no answer
	Failed string `json:"failed,omitempty"` // why there was none, or why it was not read to its end
	Result bool   `json:"result"`           // a JSON-RPC result came
	Code   int    `json:"code,omitempty"`   // else that of a JSON-RPC error
	Error  bool   `json:"error"`            // a JSON-RPC error came
	Text   string `json:"text,omitempty"`   // the error's message, or the beginning of another body
	Late   bool   `json:"-"`                // Failed for want of time
	Ours   bool   `json:"-"`                // Failed because of a limit of the probe or an interrupt, which says nothing about the endpoint
	Over   string `json:"over,omitempty"`   // "stream" when the answer came over the stream of HTTP+SSE
	Type   string `json:"content_type,omitempty"`
}

// Words returns the answer in a line: "404 and error -32001 (Session not found)".
func (r Answer) Words() string {
	switch {
	case r.Status == 0:
		return r.Failed
	case r.Result:
		return fmt.Sprintf("%d and a result", r.Status)
	case r.Error && r.Text != "":
		return fmt.Sprintf("%d and error %d (%s)", r.Status, r.Code, r.Text)
	case r.Error:
		return fmt.Sprintf("%d and error %d", r.Status, r.Code)
	case r.Failed != "":
		return fmt.Sprintf("%d, and %s", r.Status, r.Failed)
	case strings.HasPrefix(r.Text, "<"):
		return fmt.Sprintf("%d and a web page", r.Status)
	case r.Text != "":
		return fmt.Sprintf("%d %q", r.Status, r.Text)
	}
	return strconv.Itoa(r.Status)
}

// Retention is what opened and dropped sessions left behind.
type Retention struct {
	Asked   int     `json:"asked"`             // sessions wanted
	Request string  `json:"request"`           // what opens one: "initialize", "tools/list", "GET"
	Sent    int     `json:"sent"`              // sessions asked for
	Served  int     `json:"served"`            // of these, answered with a result
	Refused *Answer `json:"refused,omitempty"` // the first refusal

	// Rounds are two equal rounds after a warm-up; empty with fewer sessions than [LeastForMemory].
	Rounds []Round `json:"rounds,omitempty"`

	// DroppedMS is the time from the last session to the question to a dropped one.
	DroppedMS int64 `json:"dropped_ms,omitempty"`

	// Deleted counts the sessions whose DELETE was answered with 2xx, of Deletes sent.
	Deletes int `json:"deletes"`
	Deleted int `json:"deleted"`

	// Undeleted counts the sessions that are still open at the end, by the answers to DELETE.
	Undeleted int `json:"undeleted"`

	// The looks at the process, in order; empty when it could not be seen.
	Looks []Look `json:"looks,omitempty"`
}

// Round is a number of sessions and the memory of the process before and after them.
type Round struct {
	Sessions    int   `json:"sessions"`
	BeforeBytes int64 `json:"before_bytes"`
	AfterBytes  int64 `json:"after_bytes"`
}

// When names a look at the process.
type When string

// The looks, in their order.
const (
	AtStart    When = "start"   // before the first request
	AtSessions When = "before"  // after the questions, before the sessions
	AtOnce     When = "after"   // right after the last session
	Settled    When = "settled" // after the settling time
	Cleared    When = "cleared" // after the sessions were deleted, and another settling time
)

// Look is what was seen of the process and its descendants at one moment.
type Look struct {
	When      When  `json:"when"`
	Children  int   `json:"children"`       // direct ones
	Processes int   `json:"processes"`      // all below it
	Strays    int   `json:"strays"`         // earlier descendants that run on elsewhere
	RSSBytes  int64 `json:"rss_bytes"`      // its own
	Gone      bool  `json:"gone,omitempty"` // it has exited

	// Of these, with strays, NewChildren and NewProcesses started after the first request, SessionChildren and
	// SessionProcesses after the first session.
	NewChildren      int `json:"new_children"`
	NewProcesses     int `json:"new_processes"`
	SessionChildren  int `json:"session_children"`
	SessionProcesses int `json:"session_processes"`
}

// Process is the process that listens at the endpoint's port.
type Process struct {
	// Found means that it was found on this machine; else Why says why not.
	Found bool   `json:"found"`
	Why   string `json:"why,omitempty"`

	OS       string       `json:"-"` // of this machine, as in a snapshot
	Listener scan.Process `json:"-"`
	Port     string       `json:"-"`

	// Left are the descendants that started during the probe and ran at its end.
	Left []scan.Process `json:"-"`
}

// Unaskable is the error of an endpoint that could not be probed.
type Unaskable struct {
	Reason Reason
	What   string // a sentence
}

func (u *Unaskable) Error() string { return u.What }

// Reason is the kind of an [Unaskable].
type Reason string

// The reasons.
const (
	NoAnswer  Reason = "no answer"  // no connection
	Silent    Reason = "silent"     // no answer within the time for one
	Hasty     Reason = "hasty"      // the same, with less than the usual time because of --timeout
	Closed    Reason = "closed"     // the connection was closed without an answer
	NoTrust   Reason = "no trust"   // its certificate is not accepted
	PlainHTTP Reason = "plain HTTP" // https was asked for, and http answered
	WantsTLS  Reason = "wants TLS"  // http was asked for, and TLS answered
	NoHTTP    Reason = "no HTTP"
	NoAccess  Reason = "no access"  // 401 without credentials
	BadAccess Reason = "bad access" // 401 with credentials
	Forbidden Reason = "forbidden"  // 403
	Busy      Reason = "busy"       // 429
	Broken    Reason = "broken"     // it speaks JSON-RPC, or should, and fails
	OtherHost Reason = "other host" // it redirects there
	NoMCP     Reason = "no MCP"
	NoTime    Reason = "no time" // time-out or interrupt before anything was known
)
