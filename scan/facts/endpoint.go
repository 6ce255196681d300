// Package facts has the plain values that say what was seen of an MCP server: [Endpoint] is filled in by
// package endpoint, [Stdio] by package stdio. Whether they are good or bad is decided by package rules.
package facts

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"mcpdoctor/scan"
)

// Endpoint is what an HTTP endpoint answered to a client's questions, and what became of its process
// meanwhile. It is a plain value and holds facts only: package rules judges them.
//
// Strings that came from the endpoint are untrusted; package report makes them safe to show. The
// values of headers that were given, of session IDs, and of the URL's user and query are in none of
// them: what repeats one has "***" in its place.
type Endpoint struct {
	URL string `json:"url"` // without its secrets

	Transport Transport `json:"transport"`

	// Version is the protocol version that the endpoint agreed to; Supported are those that it named
	// itself, when it did.
	Version   string   `json:"protocol_version,omitempty"`
	Supported []string `json:"supported_versions,omitempty"`

	// Modern tells that it serves requests of revision 2026-07-28, whatever else it speaks.
	Modern bool `json:"modern"`

	// Name and Release are what the server calls itself.
	Name    string `json:"server_name,omitempty"`
	Release string `json:"server_version,omitempty"`

	// Session tells that initialize handed out an Mcp-Session-Id.
	Session bool `json:"session"`

	// LimitMS is how long one answer could take.
	LimitMS int64 `json:"answer_limit_ms"`

	// Exchanges are the questions in the order in which they were asked.
	Exchanges []Exchange `json:"exchanges"`

	Retention Retention `json:"retention"`
	Process   Process   `json:"process"`

	// Requests counts all HTTP requests that were sent, redirects and clearing up included.
	Requests int `json:"requests"`

	// Unasked says why the questions ended early; empty when they did not.
	Unasked string `json:"unasked,omitempty"`
}

const (
	// Patience is how long one answer may take at most. A gateway that starts its server with npx for
	// each request needs several seconds.
	Patience = 15 * time.Second

	// LeastForMemory is how many sessions it takes until memory tells something: the first few hundred
	// requests cost a healthy server up to 30 MB, as its code is compiled and its heap grows.
	LeastForMemory = 1000
)

// Transport is the way in which an endpoint speaks MCP.
type Transport string

// The transports.
const (
	Streamable Transport = "streamable-http" // 2025-03-26 to 2025-11-25, and 2026-07-28 beside them
	Stateless  Transport = "stateless-http"  // 2026-07-28 alone
	LegacySSE  Transport = "http+sse"        // 2024-11-05, deprecated
)

// Ask names a question, so that a judge finds its answer.
type Ask string

// The questions, by what is sent.
const (
	AskInitialize  Ask = "initialize"      // initialize, as every client until 2025-11-25 begins
	AskInitialized Ask = "initialized"     // the notification that follows it, when there is a session
	AskModern      Ask = "modern"          // server/discover, as revision 2026-07-28 has it
	AskWithout     Ask = "without-session" // tools/list without a session
	AskWith        Ask = "with-session"    // tools/list with the session that initialize handed out
	AskUnknown     Ask = "unknown-session" // tools/list with a session that never was
	AskDelete      Ask = "delete"          // DELETE of the session
	AskDeleted     Ask = "deleted-session" // tools/list with the session after that
	AskDropped     Ask = "dropped-session" // ping with a session that was dropped a while ago
	AskStream      Ask = "stream"          // GET, which opens the stream of the old transport
	AskOverStream  Ask = "over-stream"     // initialize, POSTed to where that stream said
	AskClosed      Ask = "closed-stream"   // tools/list, POSTed there after the stream was closed
	AskStale       Ask = "stale-stream"    // tools/list, POSTed to a session that never was
	AskAgain       Ask = "again"           // whether it still answers at the end, after a new GET
)

// Exchange is one question and its answer.
type Exchange struct {
	Ask        Ask    `json:"ask"`
	Sent       string `json:"sent"` // in words: "POST tools/list, unknown session"
	Answer     Answer `json:"answer"`
	DurationMS int64  `json:"duration_ms"`
}

// Answer is what came back, in short.
type Answer struct {
	Status int    `json:"status"`           // of HTTP; 0 when there was no answer
	Failed string `json:"failed,omitempty"` // why there was none, or why it could not be read to its end
	Result bool   `json:"result"`           // a JSON-RPC result came
	Code   int    `json:"code,omitempty"`   // else that of a JSON-RPC error
	Error  bool   `json:"error"`            // a JSON-RPC error came
	Text   string `json:"text,omitempty"`   // the error's message, or the beginning of another body
	Late   bool   `json:"-"`                // Failed because of the time
	Ours   bool   `json:"-"`                // Failed because of a limit on all of the probe, or of an interrupt: it says nothing about the endpoint
	Over   string `json:"over,omitempty"`   // "stream" when the answer came over the stream of HTTP+SSE
	Type   string `json:"content_type,omitempty"`
}

// Words is an answer in a line: "404 and error -32001 (Session not found)".
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

// Retention is what sessions that were opened and dropped left behind.
type Retention struct {
	Asked   int     `json:"asked"`             // so many sessions were wanted
	Request string  `json:"request"`           // what opens one: "initialize", "tools/list", "GET"
	Sent    int     `json:"sent"`              // so many were asked for
	Served  int     `json:"served"`            // so many of these were answered with a result
	Refused *Answer `json:"refused,omitempty"` // the answer after which no more were asked for; nil when none

	// Rounds are the memory figures of two equal rounds after a warm-up; empty unless enough sessions
	// were asked for.
	Rounds []Round `json:"rounds,omitempty"`

	// DroppedMS is how long after the last session was opened a dropped one was asked again.
	DroppedMS int64 `json:"dropped_ms,omitempty"`

	// Deleted counts the sessions for whose DELETE the endpoint answered 2xx, of Deletes asked.
	Deletes int `json:"deletes"`
	Deleted int `json:"deleted"`

	// Undeleted counts those that the probe opened and that are still there at its end, as far as the
	// answers to DELETE tell.
	Undeleted int `json:"undeleted"`

	// The looks at the process, in order; empty when it could not be seen.
	Looks []Look `json:"looks,omitempty"`
}

// Round is a number of sessions and what the memory of the process was before and after.
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

// Look is what was seen of the process at one moment.
type Look struct {
	When      When  `json:"when"`
	Children  int   `json:"children"`       // direct ones
	Processes int   `json:"processes"`      // all below it
	Strays    int   `json:"strays"`         // that were below it earlier, and run on elsewhere
	RSSBytes  int64 `json:"rss_bytes"`      // its own
	Gone      bool  `json:"gone,omitempty"` // it has ended itself

	// Of these, strays included, NewChildren and NewProcesses came after the first request, and
	// SessionChildren and SessionProcesses after the first of the sessions.
	NewChildren      int `json:"new_children"`
	NewProcesses     int `json:"new_processes"`
	SessionChildren  int `json:"session_children"`
	SessionProcesses int `json:"session_processes"`
}

// Process is who listens at the endpoint's port.
type Process struct {
	// Found tells that it was found on this machine; else Why says why not.
	Found bool   `json:"found"`
	Why   string `json:"why,omitempty"`

	OS       string       `json:"-"` // of this machine, as in a snapshot
	Listener scan.Process `json:"-"`
	Port     string       `json:"-"`

	// Left are the processes that came during the probe below the listener and were there at its end.
	Left []scan.Process `json:"-"`
}

// Unaskable says why nothing can be said about an endpoint.
type Unaskable struct {
	Reason Reason
	What   string // a sentence
}

func (u *Unaskable) Error() string { return u.What }

// Reason is the kind of an [Unaskable].
type Reason string

// The reasons.
const (
	NoAnswer  Reason = "no answer"  // there is no connection
	Silent    Reason = "silent"     // there is one, and no answer within the time for one
	Hasty     Reason = "hasty"      // the same, and --timeout left less than the usual time for one
	Closed    Reason = "closed"     // the connection ended without an answer
	NoTrust   Reason = "no trust"   // its certificate is not accepted
	PlainHTTP Reason = "plain HTTP" // https was asked for, and http answered
	WantsTLS  Reason = "wants TLS"  // http was asked for, and TLS answered
	NoHTTP    Reason = "no HTTP"
	NoAccess  Reason = "no access"  // 401, and nothing was given that could prove who asks
	BadAccess Reason = "bad access" // 401, although something was
	Forbidden Reason = "forbidden"  // 403
	Busy      Reason = "busy"       // 429
	Broken    Reason = "broken"     // it speaks JSON-RPC, or it should, and fails
	OtherHost Reason = "other host" // it leads there
	NoMCP     Reason = "no MCP"
	NoTime    Reason = "no time" // it was over, or the user interrupted, before anything was known
)
