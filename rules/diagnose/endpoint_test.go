package diagnose

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/scan/facts"
)

// Answers that endpoints give.
var (
	result   = facts.Answer{Status: 200, Result: true}
	accepted = facts.Answer{Status: 202}
	silence  = facts.Answer{Failed: "no answer within 15 s", Late: true}
	tooLong  = facts.Answer{Status: 200, Failed: "the answer is longer than 1048576 bytes, and was not read to its end", Ours: true}
	noTime   = facts.Answer{Failed: "the time was over", Late: true, Ours: true}
	noMethod = facts.Answer{Status: 200, Error: true, Code: -32601, Text: "Method not found"}
	refused  = facts.Answer{Status: 200, Error: true, Code: -32602, Text: "request before initialization was complete"}
)

func status(n int) facts.Answer { return facts.Answer{Status: n} }

// endpoint returns a healthy endpoint without sessions, changed by a test.
func endpoint(change func(*facts.Endpoint)) *facts.Endpoint {
	rss := int64(50 << 20)
	e := &facts.Endpoint{
		URL: "http://127.0.0.1:8000/mcp", Transport: facts.Streamable, Version: "2025-11-25", Name: "x", Requests: 24, LimitMS: 15000,
		Exchanges: []facts.Exchange{
			{Ask: facts.AskInitialize, Answer: result},
			{Ask: facts.AskModern, Answer: status(400)},
			{Ask: facts.AskWithout, Answer: result},
			{Ask: facts.AskUnknown, Answer: result},
		},
		Retention: facts.Retention{Asked: 20, Request: "initialize", Sent: 20, Served: 20,
			Looks: []facts.Look{{When: facts.AtStart}, {When: facts.AtSessions}, {When: facts.AtOnce}, {When: facts.Settled, RSSBytes: rss}}},
		Process: facts.Process{Found: true, OS: "linux", Port: "8000",
			Listener: scan.Process{PID: 77, Name: "node", Args: []string{"node", "/x/server.js"}, RSSBytes: &rss}},
	}
	if change != nil {
		change(e)
	}
	return e
}

// with sets the answer to a question.
func with(e *facts.Endpoint, ask facts.Ask, a facts.Answer) {
	i := slices.IndexFunc(e.Exchanges, func(x facts.Exchange) bool { return x.Ask == ask })
	if i < 0 {
		e.Exchanges = append(e.Exchanges, facts.Exchange{Ask: ask, Answer: a})
		return
	}
	e.Exchanges[i].Answer = a
}

// sessions makes it a healthy endpoint with sessions.
func sessions(e *facts.Endpoint) {
	e.Session = true
	with(e, facts.AskWithout, status(400))
	with(e, facts.AskUnknown, status(404))
	with(e, facts.AskWith, result)
	with(e, facts.AskDelete, status(200))
	with(e, facts.AskDeleted, status(404))
	with(e, facts.AskDropped, result)
	e.Retention.DroppedMS = 5000
	e.Retention.Deletes, e.Retention.Deleted = 20, 20
	e.Retention.Looks = append(e.Retention.Looks, facts.Look{When: facts.Cleared})
}

func legacy(e *facts.Endpoint) {
	e.Transport, e.Exchanges, e.Retention.Request = facts.LegacySSE, nil, "GET"
	with(e, facts.AskInitialize, status(404))
	with(e, facts.AskStream, status(200))
	with(e, facts.AskOverStream, result)
	with(e, facts.AskClosed, status(404))
	with(e, facts.AskStale, status(404))
	with(e, facts.AskAgain, status(200))
}

func gatewayFlags(version string, flags ...string) func(*facts.Endpoint) {
	return func(e *facts.Endpoint) {
		e.Process.Listener.Args = append([]string{"node", "/x/node_modules/.bin/supergateway", "--stdio", "node s.mjs",
			"--outputTransport", "streamableHttp"}, flags...)
		e.Process.Listener.Version = version
	}
}

// left makes n processes, each with a child, start with the sessions and stay.
func left(e *facts.Endpoint, when facts.When, n int) {
	for i := range e.Retention.Looks {
		if l := &e.Retention.Looks[i]; l.When == when {
			l.Children, l.Processes, l.NewChildren, l.NewProcesses, l.SessionChildren, l.SessionProcesses = n, 2*n, n, 2*n, n, 2*n
		}
	}
}

func rounds(e *facts.Endpoint, first, second int64) {
	const base = 100 << 20
	e.Retention.Asked, e.Retention.Sent, e.Retention.Served = 2000, 2000, 2000
	e.Retention.Rounds = []facts.Round{
		{Sessions: 800, BeforeBytes: base, AfterBytes: base + first<<20},
		{Sessions: 800, BeforeBytes: base, AfterBytes: base + second<<20},
	}
}

func TestEndpointVerdicts(t *testing.T) {
	all := func(changes ...func(*facts.Endpoint)) func(*facts.Endpoint) {
		return func(e *facts.Endpoint) {
			for _, f := range changes {
				f(e)
			}
		}
	}
	says := func(ask facts.Ask, a facts.Answer) func(*facts.Endpoint) {
		return func(e *facts.Endpoint) { with(e, ask, a) }
	}
	stays := func(when facts.When, n int) func(*facts.Endpoint) {
		return func(e *facts.Endpoint) { left(e, when, n) }
	}
	grows := func(first, second int64) func(*facts.Endpoint) {
		return func(e *facts.Endpoint) { rounds(e, first, second) }
	}
	refuses := func(a facts.Answer, served int) func(*facts.Endpoint) {
		return func(e *facts.Endpoint) { e.Retention.Refused, e.Retention.Served = &a, served }
	}
	impatient := func(limit int64) func(*facts.Endpoint) {
		return func(e *facts.Endpoint) { e.LimitMS = limit }
	}
	takes := func(ask facts.Ask, ms int64) func(*facts.Endpoint) {
		return func(e *facts.Endpoint) {
			e.Exchanges[slices.IndexFunc(e.Exchanges, func(x facts.Exchange) bool { return x.Ask == ask })].DurationMS = ms
		}
	}
	for topic, cases := range map[Topic][]struct {
		name    string
		change  func(*facts.Endpoint)
		want    Verdict
		answer  string // a part of it
		finding string // severity and rule of the worst; "" for none
	}{
		TopicTransport: {
			{"healthy", nil, OK, "2025-11-25", ""},
			{"both revisions", func(e *facts.Endpoint) { e.Modern = true }, OK, "and 2026-07-28", ""},
			{"new revision only", func(e *facts.Endpoint) {
				e.Transport, e.Modern = facts.Stateless, true
				with(e, facts.AskInitialize, status(400))
			}, OK, "2026-07-28 only", ""},
			{"new and broken", func(e *facts.Endpoint) { e.Transport = facts.Stateless; with(e, facts.AskModern, status(500)) },
				Failed, "500", "error session-retention"},
			{"old transport", legacy, Failed, "deprecated", "warning sse-transport"},
			{"old, no initialize", all(legacy, says(facts.AskOverStream, silence)), Failed, "no answer", "warning sse-transport"},
		},
		TopicSession: {
			{"no session", nil, Note, "no", ""},
			{"session", sessions, Note, "yes", "info session-retention"},
		},
		TopicWithout: {
			{"served without", nil, OK, "no session needed", ""},
			{"served without, sessions", all(sessions, says(facts.AskWithout, result)), Note, "although", "info session-retention"},
			{"refused without", sessions, OK, "400", "info session-retention"},
			{"refused with 200", all(sessions, says(facts.AskWithout, refused)), Note, "not with 400", "info session-retention"},
			{"refused and no session", says(facts.AskWithout, status(400)), Failed, "400", "error session-retention"},
			{"silent without", all(sessions, says(facts.AskWithout, silence)), Failed, "no answer", "error session-retention"},
			{"without, too long", says(facts.AskWithout, tooLong), Unsure, "a limit of the probe", ""},
			{"without, rate limit", says(facts.AskWithout, status(429)), Unsure, "fewer", ""},
			{"without 404", all(sessions, says(facts.AskWithout, status(404))), Note, "instead of 400", "info session-retention"},
		},
		TopicWith: {
			{"not served with", all(sessions, says(facts.AskWith, status(500))), Failed, "500", "error session-retention"},
			{"with, rate limit", all(sessions, says(facts.AskWith, status(429))), Unsure, "fewer", "info session-retention"},
		},
		TopicUnknown: {
			{"unknown, stateless", nil, OK, "ignores", ""},
			{"unknown, stateless 400", says(facts.AskUnknown, status(400)), Note, "400", ""},
			{"unknown 404", sessions, OK, "initialize again", "info session-retention"},
			{"unknown 400", all(sessions, says(facts.AskUnknown, status(400))), Failed, "instead of 404", "error session-retention"},
			{"unknown 500", all(sessions, says(facts.AskUnknown, status(500))), Failed, "500", "error session-retention"},
			{"unknown 202", all(sessions, says(facts.AskUnknown, accepted)), Failed, "202", "error session-retention"},
			{"unknown fails later", all(sessions, says(facts.AskUnknown, refused)),
				Failed, "before initialization", "error session-retention"},
			{"unknown served", all(sessions, says(facts.AskUnknown, result)), OK, "not its own", "info session-retention"},
			{"unknown silent", all(sessions, says(facts.AskUnknown, silence)), Failed, "no answer", "error session-retention"},
			{"unknown, rate limit", all(sessions, says(facts.AskUnknown, status(429))), Unsure, "429", "info session-retention"},
			{"unknown, too long", all(sessions, says(facts.AskUnknown, tooLong)),
				Unsure, "a limit of the probe", "info session-retention"},
			{"unknown, no time", all(sessions, says(facts.AskUnknown, noTime)), Unsure, "longer --timeout", "info session-retention"},
			{"unknown, little patience", all(sessions, says(facts.AskUnknown, silence), impatient(2900)),
				Unsure, "longer --timeout", "info session-retention"},
			{"unknown, slow server", all(sessions, says(facts.AskUnknown, silence), takes(facts.AskWithout, 4000)),
				Unsure, "other requests were slow", "info session-retention"},
			{"unknown, all silent", all(sessions, says(facts.AskUnknown, silence), says(facts.AskWithout, silence)),
				Unsure, "other requests were slow", "info session-retention"},
			{"unknown and deleted late", all(sessions, says(facts.AskUnknown, silence), says(facts.AskDeleted, silence)),
				Failed, "no answer", "error session-retention"},
			{"unknown 401", all(sessions, says(facts.AskUnknown, status(401))), Unsure, "401", "info session-retention"},
			{"unknown as the known", all(sessions, says(facts.AskUnknown, status(404)), says(facts.AskWith, status(404))),
				Unsure, "inconclusive", "error session-retention"},
			{"unknown as without", all(says(facts.AskUnknown, status(400)), says(facts.AskWithout, status(400))),
				Unsure, "inconclusive", "error session-retention"},
		},
		TopicDelete: {
			{"delete as the known", all(sessions, says(facts.AskWith, status(404))),
				Unsure, "inconclusive", "error session-retention"},
			{"delete, rate limit", all(sessions, says(facts.AskDelete, status(429)), says(facts.AskDeleted, result)),
				Unsure, "fewer", "info session-retention"},
			{"deleted, rate limit", all(sessions, says(facts.AskDeleted, status(429))), Unsure, "fewer", "info session-retention"},
			{"deleted, no time", all(sessions, says(facts.AskDeleted, noTime)), Unsure, "longer", "info session-retention"},
			{"deleted all the same", all(sessions, says(facts.AskDelete, status(500))),
				Note, "nevertheless", "info session-retention"},
			{"deleted", sessions, OK, "404", "info session-retention"},
			{"405", all(sessions, says(facts.AskDelete, status(405)), says(facts.AskDeleted, result)),
				Note, "allows", "info session-retention"},
			{"ignored", all(sessions, says(facts.AskDeleted, result)), Failed, "not ended", "warning session-retention"},
			{"no such method", all(sessions, says(facts.AskDelete, status(404)), says(facts.AskDeleted, result)),
				Failed, "not ended", "warning session-retention"},
		},
		TopicClosed: {
			{"old, in a hurry", all(legacy, says(facts.AskClosed, silence), impatient(2000)),
				Unsure, "longer", "warning sse-transport"},
			{"old, told", legacy, OK, "client sees", "warning sse-transport"},
			{"old, silent", all(legacy, says(facts.AskClosed, silence)), Failed, "wait forever", "error sse-transport"},
		},
		TopicStale: {
			{"old, both silent", all(legacy, says(facts.AskClosed, silence), says(facts.AskStale, silence)),
				Failed, "wait forever", "error sse-transport"},
			{"old, error", all(legacy, says(facts.AskStale, refused)), Failed, "cannot see", "error sse-transport"},
			{"old, trap", all(legacy, says(facts.AskStale, accepted)), Failed, "never answered", "error sse-transport"},
		},
		TopicAgain: {
			{"old, again, no time", all(legacy, says(facts.AskAgain, noTime)), Unsure, "longer", "warning sse-transport"},
			{"old, one client alone", all(legacy, says(facts.AskAgain, status(500))), Failed, "500", "error sse-transport"},
			{"old, bears another", legacy, OK, "a new stream", "warning sse-transport"},
		},
		TopicLimit: {
			{"limit, rate limit", all(sessions, refuses(status(429), 7)), Unsure, "fewer", "info session-retention"},
			{"limit, none served", all(sessions, refuses(status(503), 0)), Unsure, "other clients", "info session-retention"},
			{"limit, silent", all(sessions, refuses(silence, 2)), Failed, "no answer", "error session-retention"},
			{"limit, silent for good", all(sessions, refuses(silence, 2), says(facts.AskDropped, silence)),
				Failed, "no answer", "error session-retention"},
			{"limit, silent, in a hurry", all(sessions, refuses(silence, 2), impatient(2000)),
				Unsure, "longer", "info session-retention"},
			{"limit, no time", all(sessions, refuses(noTime, 2)), Unsure, "longer", "info session-retention"},
			{"limit", all(sessions, func(e *facts.Endpoint) { a := status(503); e.Retention.Refused, e.Retention.Served = &a, 7 }),
				Note, "7 of 20", "info session-retention"},
			{"fails", func(e *facts.Endpoint) { a := status(500); e.Retention.Refused, e.Retention.Served = &a, 7 },
				Failed, "500", "error session-retention"},
		},
		TopicDropped: {
			{"dropped as the known", all(sessions, says(facts.AskWith, status(404)), says(facts.AskDropped, status(404))),
				Unsure, "inconclusive", "error session-retention"},
			{"dropped, no ping", all(sessions, says(facts.AskDropped, noMethod)), Note, "5 s later", "info session-retention"},
			{"dropped, rate limit", all(sessions, says(facts.AskDropped, status(429))), Unsure, "fewer", ""},
			{"dropped, kept", sessions, Note, "5 s later", "info session-retention"},
			{"dropped, gone", all(sessions, says(facts.AskDropped, status(404))), OK, "404", ""},
			{"dropped, silent", all(sessions, says(facts.AskDropped, silence)), Unsure, "no answer", ""},
		},
		TopicProcesses: {
			{"none served", all(sessions, refuses(status(429), 0)), Unsure, "none of", "info session-retention"},
			{"no process left", nil, OK, "20 requests left none", ""},
			{"one for each", stays(facts.Settled, 20),
				Failed, "20 requests left 20 processes (40 with descendants)", "error spawn-per-request"},
			{"a pool", stays(facts.Settled, 4), Unsure, "too few", ""},
			{"one request", func(e *facts.Endpoint) { e.Retention.Served = 1; left(e, facts.Settled, 1) }, Unsure, "too few", ""},
			{"deleted, gone", all(sessions, stays(facts.Settled, 20)), Note, "DELETE ended them", "info session-retention"},
			{"deleted, stay", all(sessions, stays(facts.Settled, 20), stays(facts.Cleared, 20)),
				Failed, "deleted, but 40 processes left", "error spawn-per-request"},
			{"not deletable", all(sessions, stays(facts.Settled, 20), func(e *facts.Endpoint) { e.Retention.Looks = e.Retention.Looks[:4] }),
				Note, "at least", "info session-retention"},
			{"gateway for ever", all(sessions, stays(facts.Settled, 20), gatewayFlags("3.4.3", "--stateful")),
				Failed, "--sessionTimeout is missing", "error spawn-per-request"},
			{"gateway timed", all(sessions, stays(facts.Settled, 20), gatewayFlags("3.4.3", "--stateful", "--sessionTimeout", "60000")),
				Note, "DELETE", ""},
			{"gateway 4", all(sessions, stays(facts.Settled, 20), gatewayFlags("4.0.0", "--stateful")),
				Note, "DELETE", "info session-retention"},
			{"elsewhere", func(e *facts.Endpoint) { e.Process = facts.Process{Why: "it does not run on this machine"} },
				Unsure, "not run on this machine", ""},
			{"behind docker-proxy", all(stays(facts.Settled, 20), func(e *facts.Endpoint) { e.Process.Listener.Name = "docker-proxy" }),
				Unsure, "forwards", ""},
			{"it ended", func(e *facts.Endpoint) { e.Retention.Looks[3].Gone = true }, Failed, "itself", "error session-retention"},
			{"nothing opened", func(e *facts.Endpoint) { e.Retention = facts.Retention{Looks: e.Retention.Looks} },
				Unsure, "--sessions 20", ""},
			{"time over", func(e *facts.Endpoint) { e.Retention.Looks = e.Retention.Looks[:2] }, Unsure, "ran out of time", ""},
		},
		TopicMemory: {
			{"memory of the dead", func(e *facts.Endpoint) { e.Retention.Looks[3].Gone = true },
				Unsure, "exited", "error session-retention"},
			{"memory, few", nil, Unsure, "--sessions 2000", ""},
			{"memory, level", grows(18, 2), OK, "noise", ""},
			{"memory, falls", grows(21, -10), OK, "noise", ""},
			{"memory, 7 KB", grows(9, 5), OK, "noise", ""},
			{"memory, 23 KB", grows(29, 18), Unsure, "no proof", ""},
			{"memory, slows down", grows(200, 60), Unsure, "no proof", ""},
			{"memory, heavy", grows(160, 150), Failed, "192 KB each", "error session-retention"},
			{"memory, of sessions", all(sessions, grows(13, 12)), Failed, "+13.0 MB, then +12.0 MB", "warning session-retention"},
			{"memory, sessions level", all(sessions, grows(13, 4)), OK, "noise", "info session-retention"},
			{"memory, sessions let go", all(sessions, grows(13, 12), says(facts.AskDropped, status(404))), Unsure, "no proof", ""},
			{"memory, elsewhere", func(e *facts.Endpoint) { e.Process = facts.Process{Why: "it does not run on this machine"} },
				Unsure, "machine", ""},
			{"memory, refused", all(sessions, func(e *facts.Endpoint) { a := status(503); e.Retention.Refused, e.Retention.Asked = &a, 2000 }),
				Unsure, "refused before", "info session-retention"},
			{"memory, rounds cut short", func(e *facts.Endpoint) { e.Retention.Asked = 2000 }, Unsure, "not finished", ""},
		},
	} {
		for _, c := range cases {
			name := string(topic) + ", " + c.name
			r := Endpoint(endpoint(c.change), time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC))
			i := slices.IndexFunc(r.Verdicts, func(row EndpointRow) bool { return row.Topic == topic })
			if i < 0 {
				t.Errorf("%s: there is no such row in %+v", name, r.Verdicts)
				continue
			}
			if row := r.Verdicts[i]; row.Verdict != c.want || !strings.Contains(row.Answer, c.answer) {
				t.Errorf("%s: %s: %s, want %s and %q", name, row.Verdict, row.Answer, c.want, c.answer)
			}
			worst := ""
			if len(r.Findings) > 0 {
				worst = string(r.Findings[0].Severity) + " " + r.Findings[0].Rule
			}
			if worst != c.finding {
				t.Errorf("%s: the worst finding is %q, want %q", name, worst, c.finding)
			}
			checkEndpoint(t, name, r)
		}
	}
}

// checkEndpoint checks what holds for every report on an endpoint.
func checkEndpoint(t *testing.T, name string, r *EndpointReport) {
	t.Helper()
	if r.Restart == "" || r.Growth == "" || r.Schema != 1 || r.Kind != "mcpdoctor.probe" {
		t.Errorf("%s: %+v", name, r)
	}
	topics := map[Topic]bool{}
	for _, v := range r.Verdicts {
		if topics[v.Topic] || v.Answer == "" || v.Question == "" {
			t.Errorf("%s: row %+v", name, v)
		}
		topics[v.Topic] = true
	}
	for _, f := range r.Findings {
		rule := rules.Lookup(f.Rule)
		if rule == nil || f.Title == "" || len(f.Evidence) == 0 || len(f.Reap.Safe)+len(f.Reap.OnRequest) > 0 {
			t.Errorf("%s: finding %+v", name, f)
			continue
		}
		for _, text := range append([]string{f.Remedy.Summary}, f.Remedy.Steps...) {
			if !slices.Contains(rule.Remedy, text) {
				t.Errorf("%s: %q is no remedy of %s", name, text, f.Rule)
			}
		}
	}
	if r.Fails() && len(r.Findings) == 0 {
		t.Errorf("%s: something failed, and nothing says what to change: %+v", name, r.Verdicts)
	}
	text, err := json.Marshal(r)
	if err != nil || strings.Contains(string(text), ":null") {
		t.Errorf("%s: %v %s", name, err, text)
	}
}

// The sentence about a restart does not contradict the rows.
func TestEndpointRestart(t *testing.T) {
	says := func(ask facts.Ask, a facts.Answer) func(*facts.Endpoint) {
		return func(e *facts.Endpoint) { sessions(e); with(e, ask, a) }
	}
	for name, c := range map[string]struct {
		change func(*facts.Endpoint)
		want   string
	}{
		"no sessions":       {nil, "survivable: no request depends"},
		"told":              {sessions, "survivable: clients with an old session are refused"},
		"served":            {says(facts.AskUnknown, result), "survivable: it serves sessions that it does not know"},
		"400":               {says(facts.AskUnknown, status(400)), "strands its clients"},
		"401":               {says(facts.AskUnknown, status(401)), "not known"},
		"too long":          {says(facts.AskUnknown, tooLong), "not known"},
		"none is served":    {says(facts.AskWith, status(404)), "not known"},
		"nothing is served": {func(e *facts.Endpoint) { with(e, facts.AskWithout, status(400)) }, "not known: tools/list is refused"},
		"it ended":          {func(e *facts.Endpoint) { sessions(e); e.Retention.Looks[3].Gone = true }, "not known: the server exited"},
		"it fell silent":    {func(e *facts.Endpoint) { sessions(e); a := silence; e.Retention.Refused = &a }, "not known: the server stopped"},
		"not asked":         {func(e *facts.Endpoint) { e.Exchanges = e.Exchanges[:2] }, "not known: the probe did not get that far"},
		"old":               {legacy, "ends all sessions"},
		"old, unsure":       {func(e *facts.Endpoint) { legacy(e); with(e, facts.AskStale, status(429)) }, "not known"},
	} {
		if got := Endpoint(endpoint(c.change), time.Time{}).Restart; !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

// Sessions that stay are reported, even if the endpoint claims to have ended them.
func TestEndpointUndeleted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts.Endpoint)
		want   string
	}{
		"all deleted": {func(*facts.Endpoint) {}, ""},
		"one":         {func(e *facts.Endpoint) { e.Retention.Undeleted = 1 }, "1 session of the probe could not be deleted, and stays until"},
		"405":         {func(e *facts.Endpoint) { e.Retention.Undeleted = 21 }, "21 sessions"},
		"ignored":     {func(e *facts.Endpoint) { with(e, facts.AskDeleted, result) }, "21 sessions"},
	} {
		r := Endpoint(endpoint(func(e *facts.Endpoint) { sessions(e); c.change(e) }), time.Time{})
		if got := strings.Join(r.Problems, "; "); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The remedies fit the process that listens.
func TestEndpointFrameworks(t *testing.T) {
	for line, want := range map[string][2]bool{ // of Node, of Python
		"node /x/server.js":    {true, false},
		"python3 /x/server.py": {false, true},
		"/usr/bin/server":      {false, false},
		"":                     {true, true},
	} {
		r := Endpoint(endpoint(func(e *facts.Endpoint) {
			sessions(e)
			if e.Process.Listener.Args = strings.Fields(line); line == "" {
				e.Process = facts.Process{Why: "it does not run on this machine"}
			}
		}), time.Time{})
		all := r.Findings[0].Remedy.Summary + strings.Join(r.Findings[0].Remedy.Steps, "; ")
		if got := [2]bool{strings.Contains(all, "mastra"), strings.Contains(all, "FastMCP")}; got != want {
			t.Errorf("%q: %s", line, all)
		}
	}
}

// Only a bad answer is a failure, not one that is missing or cannot be observed.
func TestEndpointFails(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts.Endpoint)
		want   bool
	}{
		"healthy":      {nil, false},
		"sessions":     {sessions, false},
		"nothing seen": {func(e *facts.Endpoint) { e.Process = facts.Process{} }, false},
		"old":          {legacy, true},
		"leaks":        {func(e *facts.Endpoint) { left(e, facts.Settled, 20) }, true},
	} {
		if got := Endpoint(endpoint(c.change), time.Time{}).Fails(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// How a server is reached, according to its command line.
func TestServingMode(t *testing.T) {
	const bin = "node /x/node_modules/.bin/"
	for _, c := range []struct{ line, mode string }{
		{bin + "supergateway --stdio x --outputTransport streamableHttp",
			"Streamable HTTP, stateless: a server for each request"},
		{bin + "supergateway --stdio x --outputTransport streamableHttp --stateful",
			"Streamable HTTP, stateful: a server for each session, without --sessionTimeout"},
		{bin + "supergateway --stdio x --outputTransport streamableHttp --stateful --sessionTimeout 600000",
			"Streamable HTTP, stateful: a server for each session, ended when it is idle for 10 min"},
		{bin + "supergateway --stdio x", "HTTP+SSE, deprecated, one server for all clients"},
		{bin + "supergateway --stdio x --outputTransport ws", "WebSocket, one server for all clients"},
		{bin + "supergateway --sse http://x/sse", ""},
		{bin + "supergateway", ""},
		{bin + "mcp-server-everything streamableHttp", "Streamable HTTP"},
		{bin + "mcp-server-everything sse", "HTTP+SSE, deprecated"},
		{bin + "mcp-server-everything stdio", ""},
		{bin + "mcp-server-everything", ""},
		{"python -m mcp_server_x --transport streamable-http --stateless", "Streamable HTTP, stateless"},
		{"python -m mcp_server_x --transport=sse", "HTTP+SSE, deprecated"},
	} {
		s := &scan.Snapshot{Schema: scan.Schema, Kind: scan.Kind, Host: scan.Host{OS: "linux"}, Processes: []scan.Process{
			{PID: 1, Args: []string{"/sbin/init"}}, {PID: 20, PPID: 1, Start: 5, Args: strings.Fields(c.line)},
		}}
		r := rules.Judge(process.Recognise(s), rules.Options{})
		got := []string{}
		for _, o := range r.Gateways {
			got = append(got, o.Mode)
		}
		for _, o := range r.Servers {
			got = append(got, o.Mode)
		}
		if len(got) != 1 || got[0] != c.mode {
			t.Errorf("%s: %q, not %q", c.line, got, c.mode)
		}
	}
}
