// Package facts has what was observed of one MCP server, as plain values: package endpoint fills in [Endpoint],
// package stdio [Stdio]. Package rules/diagnose judges both.
package facts

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"mcpdoctor/scan"
)

// Endpoint is what an HTTP endpoint answered to a client's requests, and what became of its process meanwhile.
//
// Strings from the endpoint are untrusted; package report makes them safe to show. The values of given headers, of
// session IDs, and of the URL's user and query are replaced by "***" wherever they appear.
type Endpoint struct {
	URL       string    `json:"url"` // without its secrets
	Transport Transport `json:"transport"`

	Version   string   `json:"protocol_version,omitempty"`   // agreed on
	Supported []string `json:"supported_versions,omitempty"` // as the endpoint lists them
	Modern    bool     `json:"modern"`                       // it serves revision 2026-07-28, whatever else it speaks
	Name      string   `json:"server_name,omitempty"`        // from the handshake
	Release   string   `json:"server_version,omitempty"`
	Session   bool     `json:"session"`         // initialize returned an Mcp-Session-Id
	LimitMS   int64    `json:"answer_limit_ms"` // the time limit for one answer

	Exchanges []Exchange `json:"exchanges"` // in order
	Retention Retention  `json:"retention"`
	Process   Process    `json:"process"`

	Requests int    `json:"requests"`          // all HTTP requests, including redirects and cleaning up
	Unasked  string `json:"unasked,omitempty"` // why the questions ended early; empty when they did not
}

const (
	// Patience is the longest time for one answer: a gateway that runs npx for each request needs several seconds.
	Patience = 15 * time.Second

	// LeastForMemory is how many sessions a judgement of memory needs: the first few hundred requests cost a healthy
	// server up to 30 MB, as its code is compiled and its heap grows.
	LeastForMemory = 1000
)

// Transport is the protocol that an endpoint speaks.
type Transport string

const (
	Streamable Transport = "streamable-http" // 2025-03-26 to 2025-11-25, and 2026-07-28 beside them
	Stateless  Transport = "stateless-http"  // 2026-07-28 alone
	LegacySSE  Transport = "http+sse"        // 2024-11-05, deprecated
)

// Ask names one question to an endpoint.
type Ask string

// The questions, by what is sent.
const (
	AskInitialize  Ask = "initialize"      // initialize, the first request of clients until 2025-11-25
	AskInitialized Ask = "initialized"     // the notification that follows it, when there is a session
	AskModern      Ask = "modern"          // server/discover, as revision 2026-07-28 has it
	AskWithout     Ask = "without-session" // tools/list without a session
	AskWith        Ask = "with-session"    // tools/list with the session that initialize handed out
	AskUnknown     Ask = "unknown-session" // tools/list with a made-up session
	AskDelete      Ask = "delete"          // DELETE of the session
	AskDeleted     Ask = "deleted-session" // tools/list with the session after that
	AskDropped     Ask = "dropped-session" // ping with a session that was dropped earlier
	AskStream      Ask = "stream"          // GET, which opens the stream of the old transport
	AskOverStream  Ask = "over-stream"     // initialize, POSTed to where that stream said
	AskClosed      Ask = "closed-stream"   // tools/list, POSTed there after the stream was closed
	AskStale       Ask = "stale-stream"    // tools/list, POSTed to a made-up session
	AskAgain       Ask = "again"           // a new GET at the end
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
	Status int    `json:"status"`           // of HTTP; 0 for no answer
	Failed string `json:"failed,omitempty"` // why there is none, or why it could not be read completely
	Result bool   `json:"result"`           // it is a JSON-RPC result
	Code   int    `json:"code,omitempty"`   // of a JSON-RPC error
	Error  bool   `json:"error"`            // it is a JSON-RPC error
	Text   string `json:"text,omitempty"`   // the error's message, or the beginning of another body
	Late   bool   `json:"-"`                // Failed is a time-out
	Ours   bool   `json:"-"`                // Failed is a limit or an interrupt of the probe itself
	Over   string `json:"over,omitempty"`   // "stream" when it came over the stream of HTTP+SSE
	Type   string `json:"content_type,omitempty"`
}

// Words returns the answer as one line: "404 and error -32001 (Session not found)".
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
	Asked   int     `json:"asked"`             // the sessions to open
	Request string  `json:"request"`           // that opens one: "initialize", "tools/list", "GET"
	Sent    int     `json:"sent"`              // how many of these were sent
	Served  int     `json:"served"`            // how many were answered with a result
	Refused *Answer `json:"refused,omitempty"` // the answer after which no more were sent; nil for none

	Rounds []Round `json:"rounds,omitempty"` // two equal ones after a warm-up; empty for too few sessions

	// DroppedMS is the time from the last session that was opened to the question about a dropped one.
	DroppedMS int64 `json:"dropped_ms,omitempty"`

	Deletes   int `json:"deletes"`   // the DELETE requests
	Deleted   int `json:"deleted"`   // how many of them got 2xx
	Undeleted int `json:"undeleted"` // sessions of the probe that remain, judging by these answers

	Looks []Look `json:"looks,omitempty"` // at the process, in order; empty when it was not found
}

// Round is a number of sessions, with the memory of the process before and after.
type Round struct {
	Sessions    int   `json:"sessions"`
	BeforeBytes int64 `json:"before_bytes"`
	AfterBytes  int64 `json:"after_bytes"`
}

// When names the moment of a [Look].
type When string

const (
	AtStart    When = "start"   // before the first request
	AtSessions When = "before"  // after the questions, before the sessions
	AtOnce     When = "after"   // right after the last session
	Settled    When = "settled" // after the settling time
	Cleared    When = "cleared" // after the sessions were deleted, and another settling time
)

// Look is the state of the process at one moment.
type Look struct {
	When      When  `json:"when"`
	Children  int   `json:"children"`
	Processes int   `json:"processes"`      // all descendants
	Strays    int   `json:"strays"`         // former descendants that run on elsewhere
	RSSBytes  int64 `json:"rss_bytes"`      // its own
	Gone      bool  `json:"gone,omitempty"` // it exited

	// Of these, strays included, the New ones appeared after the first request, the Session ones after the first
	// session.
	NewChildren      int `json:"new_children"`
	NewProcesses     int `json:"new_processes"`
	SessionChildren  int `json:"session_children"`
	SessionProcesses int `json:"session_processes"`
}

// Process is the process that listens at the endpoint's port.
type Process struct {
	Found bool   `json:"found"`         // on this machine
	Why   string `json:"why,omitempty"` // it was not found

	OS       string         `json:"-"` // of this machine, as in a snapshot
	Listener scan.Process   `json:"-"`
	Port     string         `json:"-"`
	Left     []scan.Process `json:"-"` // descendants that appeared during the probe and still run at its end
}

// Unaskable is why an endpoint could not be probed at all.
type Unaskable struct {
	Reason Reason
	What   string // a sentence
}

func (u *Unaskable) Error() string { return u.What }

// Reason is why an endpoint could not be asked.
type Reason string

const (
	NoAnswer  Reason = "no answer"  // no connection
	Silent    Reason = "silent"     // a connection, but no answer in time
	Hasty     Reason = "hasty"      // the same, with less than the usual time because of --timeout
	Closed    Reason = "closed"     // the connection was closed without an answer
	NoTrust   Reason = "no trust"   // its certificate is not trusted
	PlainHTTP Reason = "plain HTTP" // https was requested, and HTTP answered
	WantsTLS  Reason = "wants TLS"  // http was requested, and TLS answered
	NoHTTP    Reason = "no HTTP"
	NoAccess  Reason = "no access"  // 401, and no credentials were given
	BadAccess Reason = "bad access" // 401 in spite of credentials
	Forbidden Reason = "forbidden"  // 403
	Busy      Reason = "busy"       // 429
	Broken    Reason = "broken"     // it should speak JSON-RPC, but fails
	OtherHost Reason = "other host" // it redirects to another host
	NoMCP     Reason = "no MCP"
	NoTime    Reason = "no time" // time-out or interrupt before anything was known
)
