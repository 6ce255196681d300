package diagnose_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/diagnose"
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

// endpoint is what is seen of a healthy endpoint without sessions whose process was seen, changed by a test.
func endpoint(change func(*facts.Endpoint)) *facts.Endpoint {
	rss := int64(50 << 20)
	e := &facts.Endpoint{
		URL: "http://127.0.0.1:8000/mcp", Transport: facts.Streamable, Version: "2025-11-25", Name: "x", Requests: 24, LimitMS: 15000,
		Exchanges: []facts.Exchange{{Ask: facts.AskInitialize, Answer: result}, {Ask: facts.AskModern, Answer: status(400)}, {Ask: facts.AskWithout, Answer: result}, {Ask: facts.AskUnknown, Answer: result}},
		Retention: facts.Retention{Asked: 20, Request: "initialize", Sent: 20, Served: 20, Looks: []facts.Look{{When: facts.AtStart}, {When: facts.AtSessions}, {When: facts.AtOnce}, {When: facts.Settled, RSSBytes: rss}}},
		Process:   facts.Process{Found: true, OS: "linux", Port: "8000", Listener: scan.Process{PID: 77, Name: "node", Args: []string{"node", "/x/server.js"}, RSSBytes: &rss}},
	}
	if change != nil {
		change(e)
	}
	return e
}

// with answers a question.
func with(e *facts.Endpoint, ask facts.Ask, a facts.Answer) {
	i := slices.IndexFunc(e.Exchanges, func(x facts.Exchange) bool { return x.Ask == ask })
	if i < 0 {
		e.Exchanges = append(e.Exchanges, facts.Exchange{Ask: ask, Answer: a})
		return
	}
	e.Exchanges[i].Answer = a
}

// sessions turns an endpoint into a healthy one with sessions.
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
		e.Process.Listener.Args = append([]string{"node", "/x/node_modules/.bin/supergateway", "--stdio", "node s.mjs", "--outputTransport", "streamableHttp"}, flags...)
		e.Process.Listener.Version = version
	}
}

// left says that so many processes, each with one of its own, came with the sessions and stayed.
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
	e.Retention.Rounds = []facts.Round{{Sessions: 800, BeforeBytes: base, AfterBytes: base + first<<20}, {Sessions: 800, BeforeBytes: base, AfterBytes: base + second<<20}}
}

func TestEndpointVerdicts(t *testing.T) {
	both := func(all ...func(*facts.Endpoint)) func(*facts.Endpoint) {
		return func(e *facts.Endpoint) {
			for _, f := range all {
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
	for name, c := range map[string]struct {
		change  func(*facts.Endpoint)
		topic   diagnose.Topic
		want    diagnose.EndpointOutcome
		words   string // in the answer
		finding string // severity and rule; "" for none
	}{
		"healthy":        {nil, diagnose.TopicTransport, diagnose.OK, "2025-11-25", ""},
		"both revisions": {func(e *facts.Endpoint) { e.Modern = true }, diagnose.TopicTransport, diagnose.OK, "2026-07-28 beside", ""},
		"new revision only": {func(e *facts.Endpoint) {
			e.Transport, e.Modern = facts.Stateless, true
			with(e, facts.AskInitialize, status(400))
		}, diagnose.TopicTransport, diagnose.OK, "alone", ""},
		"new and broken": {func(e *facts.Endpoint) { e.Transport = facts.Stateless; with(e, facts.AskModern, status(500)) }, diagnose.TopicTransport, diagnose.Failed, "500", "error session-retention"},
		"no session":     {nil, diagnose.TopicSession, diagnose.Note, "no", ""},
		"session":        {sessions, diagnose.TopicSession, diagnose.Note, "yes", "info session-retention"},

		"served without":           {nil, diagnose.TopicWithout, diagnose.OK, "needs none", ""},
		"served without, sessions": {both(sessions, says(facts.AskWithout, result)), diagnose.TopicWithout, diagnose.Note, "though", "info session-retention"},
		"refused without":          {sessions, diagnose.TopicWithout, diagnose.OK, "400", "info session-retention"},
		"refused with 200":         {both(sessions, says(facts.AskWithout, refused)), diagnose.TopicWithout, diagnose.Note, "not with 400", "info session-retention"},
		"refused and no session":   {says(facts.AskWithout, status(400)), diagnose.TopicWithout, diagnose.Failed, "400", "error session-retention"},
		"silent without":           {both(sessions, says(facts.AskWithout, silence)), diagnose.TopicWithout, diagnose.Failed, "no answer", "error session-retention"},
		"not served with":          {both(sessions, says(facts.AskWith, status(500))), diagnose.TopicWith, diagnose.Failed, "500", "error session-retention"},

		"unknown, stateless":     {nil, diagnose.TopicUnknown, diagnose.OK, "does not look", ""},
		"unknown, stateless 400": {says(facts.AskUnknown, status(400)), diagnose.TopicUnknown, diagnose.Note, "400", ""},
		"unknown 404":            {sessions, diagnose.TopicUnknown, diagnose.OK, "initialize again", "info session-retention"},
		"unknown 400":            {both(sessions, says(facts.AskUnknown, status(400))), diagnose.TopicUnknown, diagnose.Failed, "instead of 404", "error session-retention"},
		"unknown 500":            {both(sessions, says(facts.AskUnknown, status(500))), diagnose.TopicUnknown, diagnose.Failed, "500", "error session-retention"},
		"unknown 202":            {both(sessions, says(facts.AskUnknown, accepted)), diagnose.TopicUnknown, diagnose.Failed, "202", "error session-retention"},
		"unknown fails later":    {both(sessions, says(facts.AskUnknown, refused)), diagnose.TopicUnknown, diagnose.Failed, "before initialization", "error session-retention"},
		"unknown served":         {both(sessions, says(facts.AskUnknown, result)), diagnose.TopicUnknown, diagnose.OK, "insist", "info session-retention"},
		"unknown silent":         {both(sessions, says(facts.AskUnknown, silence)), diagnose.TopicUnknown, diagnose.Failed, "no answer", "error session-retention"},
		"unknown, rate limit":    {both(sessions, says(facts.AskUnknown, status(429))), diagnose.TopicUnknown, diagnose.Unsure, "429", "info session-retention"},

		"unknown, too long":         {both(sessions, says(facts.AskUnknown, tooLong)), diagnose.TopicUnknown, diagnose.Unsure, "a limit of the probe's own", "info session-retention"},
		"unknown, no time":          {both(sessions, says(facts.AskUnknown, noTime)), diagnose.TopicUnknown, diagnose.Unsure, "longer --timeout", "info session-retention"},
		"unknown, little patience":  {both(sessions, says(facts.AskUnknown, silence), impatient(2900)), diagnose.TopicUnknown, diagnose.Unsure, "longer --timeout", "info session-retention"},
		"unknown, slow server":      {both(sessions, says(facts.AskUnknown, silence), takes(facts.AskWithout, 4000)), diagnose.TopicUnknown, diagnose.Unsure, "it is slow, or silent", "info session-retention"},
		"unknown, all silent":       {both(sessions, says(facts.AskUnknown, silence), says(facts.AskWithout, silence)), diagnose.TopicUnknown, diagnose.Unsure, "it is slow, or silent", "info session-retention"},
		"unknown and deleted late":  {both(sessions, says(facts.AskUnknown, silence), says(facts.AskDeleted, silence)), diagnose.TopicUnknown, diagnose.Failed, "no answer", "error session-retention"},
		"unknown 401":               {both(sessions, says(facts.AskUnknown, status(401))), diagnose.TopicUnknown, diagnose.Unsure, "401", "info session-retention"},
		"unknown as the known":      {both(sessions, says(facts.AskUnknown, status(404)), says(facts.AskWith, status(404))), diagnose.TopicUnknown, diagnose.Unsure, "tells nothing", "error session-retention"},
		"unknown as without":        {both(says(facts.AskUnknown, status(400)), says(facts.AskWithout, status(400))), diagnose.TopicUnknown, diagnose.Unsure, "tells nothing", "error session-retention"},
		"without, too long":         {says(facts.AskWithout, tooLong), diagnose.TopicWithout, diagnose.Unsure, "a limit of the probe's own", ""},
		"without, rate limit":       {says(facts.AskWithout, status(429)), diagnose.TopicWithout, diagnose.Unsure, "fewer", ""},
		"without 404":               {both(sessions, says(facts.AskWithout, status(404))), diagnose.TopicWithout, diagnose.Note, "instead of 400", "info session-retention"},
		"with, rate limit":          {both(sessions, says(facts.AskWith, status(429))), diagnose.TopicWith, diagnose.Unsure, "fewer", "info session-retention"},
		"delete as the known":       {both(sessions, says(facts.AskWith, status(404))), diagnose.TopicDelete, diagnose.Unsure, "tells nothing", "error session-retention"},
		"dropped as the known":      {both(sessions, says(facts.AskWith, status(404)), says(facts.AskDropped, status(404))), diagnose.TopicDropped, diagnose.Unsure, "tells nothing", "error session-retention"},
		"delete, rate limit":        {both(sessions, says(facts.AskDelete, status(429)), says(facts.AskDeleted, result)), diagnose.TopicDelete, diagnose.Unsure, "fewer", "info session-retention"},
		"deleted, rate limit":       {both(sessions, says(facts.AskDeleted, status(429))), diagnose.TopicDelete, diagnose.Unsure, "fewer", "info session-retention"},
		"deleted, no time":          {both(sessions, says(facts.AskDeleted, noTime)), diagnose.TopicDelete, diagnose.Unsure, "longer", "info session-retention"},
		"deleted all the same":      {both(sessions, says(facts.AskDelete, status(500))), diagnose.TopicDelete, diagnose.Note, "all the same", "info session-retention"},
		"dropped, no ping":          {both(sessions, says(facts.AskDropped, noMethod)), diagnose.TopicDropped, diagnose.Note, "5 s later", "info session-retention"},
		"dropped, rate limit":       {both(sessions, says(facts.AskDropped, status(429))), diagnose.TopicDropped, diagnose.Unsure, "fewer", ""},
		"limit, rate limit":         {both(sessions, refuses(status(429), 7)), diagnose.TopicLimit, diagnose.Unsure, "fewer", "info session-retention"},
		"limit, none served":        {both(sessions, refuses(status(503), 0)), diagnose.TopicLimit, diagnose.Unsure, "others", "info session-retention"},
		"limit, silent":             {both(sessions, refuses(silence, 2)), diagnose.TopicLimit, diagnose.Failed, "no answer", "error session-retention"},
		"limit, silent for good":    {both(sessions, refuses(silence, 2), says(facts.AskDropped, silence)), diagnose.TopicLimit, diagnose.Failed, "no answer", "error session-retention"},
		"limit, silent, in a hurry": {both(sessions, refuses(silence, 2), impatient(2000)), diagnose.TopicLimit, diagnose.Unsure, "longer", "info session-retention"},
		"limit, no time":            {both(sessions, refuses(noTime, 2)), diagnose.TopicLimit, diagnose.Unsure, "longer", "info session-retention"},
		"none served":               {both(sessions, refuses(status(429), 0)), diagnose.TopicProcesses, diagnose.Unsure, "none of", "info session-retention"},
		"memory of the dead":        {func(e *facts.Endpoint) { e.Retention.Looks[3].Gone = true }, diagnose.TopicMemory, diagnose.Unsure, "has ended", "error session-retention"},
		"old, in a hurry":           {both(legacy, says(facts.AskClosed, silence), impatient(2000)), diagnose.TopicClosed, diagnose.Unsure, "longer", "warning sse-transport"},
		"old, both silent":          {both(legacy, says(facts.AskClosed, silence), says(facts.AskStale, silence)), diagnose.TopicStale, diagnose.Failed, "in vain", "error sse-transport"},
		"old, error":                {both(legacy, says(facts.AskStale, refused)), diagnose.TopicStale, diagnose.Failed, "not told", "error sse-transport"},
		"old, again, no time":       {both(legacy, says(facts.AskAgain, noTime)), diagnose.TopicAgain, diagnose.Unsure, "longer", "warning sse-transport"},

		"deleted":         {sessions, diagnose.TopicDelete, diagnose.OK, "404", "info session-retention"},
		"405":             {both(sessions, says(facts.AskDelete, status(405)), says(facts.AskDeleted, result)), diagnose.TopicDelete, diagnose.Note, "allows", "info session-retention"},
		"ignored":         {both(sessions, says(facts.AskDeleted, result)), diagnose.TopicDelete, diagnose.Failed, "not ended", "warning session-retention"},
		"no such method":  {both(sessions, says(facts.AskDelete, status(404)), says(facts.AskDeleted, result)), diagnose.TopicDelete, diagnose.Failed, "not ended", "warning session-retention"},
		"dropped, kept":   {sessions, diagnose.TopicDropped, diagnose.Note, "5 s later", "info session-retention"},
		"dropped, gone":   {both(sessions, says(facts.AskDropped, status(404))), diagnose.TopicDropped, diagnose.OK, "404", ""},
		"dropped, silent": {both(sessions, says(facts.AskDropped, silence)), diagnose.TopicDropped, diagnose.Unsure, "no answer", ""},

		"limit": {both(sessions, func(e *facts.Endpoint) { a := status(503); e.Retention.Refused, e.Retention.Served = &a, 7 }), diagnose.TopicLimit, diagnose.Note, "7 of 20", "info session-retention"},
		"fails": {func(e *facts.Endpoint) { a := status(500); e.Retention.Refused, e.Retention.Served = &a, 7 }, diagnose.TopicLimit, diagnose.Failed, "500", "error session-retention"},

		"no process left":     {nil, diagnose.TopicProcesses, diagnose.OK, "20 requests left none", ""},
		"one for each":        {stays(facts.Settled, 20), diagnose.TopicProcesses, diagnose.Failed, "20 requests left 20 processes (40 with their own)", "error spawn-per-request"},
		"a pool":              {stays(facts.Settled, 4), diagnose.TopicProcesses, diagnose.Unsure, "too few", ""},
		"one request":         {func(e *facts.Endpoint) { e.Retention.Served = 1; left(e, facts.Settled, 1) }, diagnose.TopicProcesses, diagnose.Unsure, "too few", ""},
		"deleted, gone":       {both(sessions, stays(facts.Settled, 20)), diagnose.TopicProcesses, diagnose.Note, "DELETE ended them", "info session-retention"},
		"deleted, stay":       {both(sessions, stays(facts.Settled, 20), stays(facts.Cleared, 20)), diagnose.TopicProcesses, diagnose.Failed, "deleted, and left", "error spawn-per-request"},
		"not deletable":       {both(sessions, stays(facts.Settled, 20), func(e *facts.Endpoint) { e.Retention.Looks = e.Retention.Looks[:4] }), diagnose.TopicProcesses, diagnose.Note, "at least", "info session-retention"},
		"gateway for ever":    {both(sessions, stays(facts.Settled, 20), gatewayFlags("3.4.3", "--stateful")), diagnose.TopicProcesses, diagnose.Failed, "--sessionTimeout is missing", "error spawn-per-request"},
		"gateway timed":       {both(sessions, stays(facts.Settled, 20), gatewayFlags("3.4.3", "--stateful", "--sessionTimeout", "60000")), diagnose.TopicProcesses, diagnose.Note, "DELETE", ""},
		"gateway 4":           {both(sessions, stays(facts.Settled, 20), gatewayFlags("4.0.0", "--stateful")), diagnose.TopicProcesses, diagnose.Note, "DELETE", "info session-retention"},
		"elsewhere":           {func(e *facts.Endpoint) { e.Process = facts.Process{Why: "it does not run on this machine"} }, diagnose.TopicProcesses, diagnose.Unsure, "not run on this machine", ""},
		"behind docker-proxy": {both(stays(facts.Settled, 20), func(e *facts.Endpoint) { e.Process.Listener.Name = "docker-proxy" }), diagnose.TopicProcesses, diagnose.Unsure, "passes on", ""},
		"it ended":            {func(e *facts.Endpoint) { e.Retention.Looks[3].Gone = true }, diagnose.TopicProcesses, diagnose.Failed, "itself", "error session-retention"},
		"nothing opened":      {func(e *facts.Endpoint) { e.Retention = facts.Retention{Looks: e.Retention.Looks} }, diagnose.TopicProcesses, diagnose.Unsure, "--sessions 20", ""},
		"time over":           {func(e *facts.Endpoint) { e.Retention.Looks = e.Retention.Looks[:2] }, diagnose.TopicProcesses, diagnose.Unsure, "time was over", ""},

		"memory, few":              {nil, diagnose.TopicMemory, diagnose.Unsure, "--sessions 2000", ""},
		"memory, level":            {grows(18, 2), diagnose.TopicMemory, diagnose.OK, "noise", ""},
		"memory, falls":            {grows(21, -10), diagnose.TopicMemory, diagnose.OK, "noise", ""},
		"memory, 7 KB":             {grows(9, 5), diagnose.TopicMemory, diagnose.OK, "noise", ""},
		"memory, 23 KB":            {grows(29, 18), diagnose.TopicMemory, diagnose.Unsure, "no proof", ""},
		"memory, slows down":       {grows(200, 60), diagnose.TopicMemory, diagnose.Unsure, "no proof", ""},
		"memory, heavy":            {grows(160, 150), diagnose.TopicMemory, diagnose.Failed, "for each", "error session-retention"},
		"memory, of sessions":      {both(sessions, grows(13, 12)), diagnose.TopicMemory, diagnose.Failed, "+13.0 MB, then +12.0 MB", "warning session-retention"},
		"memory, sessions level":   {both(sessions, grows(13, 4)), diagnose.TopicMemory, diagnose.OK, "noise", "info session-retention"},
		"memory, sessions let go":  {both(sessions, grows(13, 12), says(facts.AskDropped, status(404))), diagnose.TopicMemory, diagnose.Unsure, "no proof", ""},
		"memory, elsewhere":        {func(e *facts.Endpoint) { e.Process = facts.Process{Why: "it does not run on this machine"} }, diagnose.TopicMemory, diagnose.Unsure, "machine", ""},
		"memory, refused":          {both(sessions, func(e *facts.Endpoint) { a := status(503); e.Retention.Refused, e.Retention.Asked = &a, 2000 }), diagnose.TopicMemory, diagnose.Unsure, "refused before", "info session-retention"},
		"memory, rounds cut short": {func(e *facts.Endpoint) { e.Retention.Asked = 2000 }, diagnose.TopicMemory, diagnose.Unsure, "not finished", ""},

		"old transport":         {legacy, diagnose.TopicTransport, diagnose.Failed, "deprecated", "warning sse-transport"},
		"old, told":             {legacy, diagnose.TopicClosed, diagnose.OK, "is told", "warning sse-transport"},
		"old, trap":             {both(legacy, says(facts.AskStale, accepted)), diagnose.TopicStale, diagnose.Failed, "nobody answers", "error sse-transport"},
		"old, silent":           {both(legacy, says(facts.AskClosed, silence)), diagnose.TopicClosed, diagnose.Failed, "in vain", "error sse-transport"},
		"old, one client alone": {both(legacy, says(facts.AskAgain, status(500))), diagnose.TopicAgain, diagnose.Failed, "500", "error sse-transport"},
		"old, bears another":    {legacy, diagnose.TopicAgain, diagnose.OK, "yes", "warning sse-transport"},
		"old, no initialize":    {both(legacy, says(facts.AskOverStream, silence)), diagnose.TopicTransport, diagnose.Failed, "no answer", "warning sse-transport"},
	} {
		r := diagnose.Endpoint(endpoint(c.change), time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC))
		i := slices.IndexFunc(r.Verdicts, func(v diagnose.EndpointVerdict) bool { return v.Topic == c.topic })
		if i < 0 {
			t.Errorf("%s: there is no row %s in %+v", name, c.topic, r.Verdicts)
			continue
		}
		if v := r.Verdicts[i]; v.Verdict != c.want || !strings.Contains(v.Answer, c.words) {
			t.Errorf("%s: %s: %s, not %s and %q", name, v.Verdict, v.Answer, c.want, c.words)
		}
		worst := ""
		if len(r.Findings) > 0 {
			worst = string(r.Findings[0].Severity) + " " + r.Findings[0].Rule
		}
		if worst != c.finding {
			t.Errorf("%s: the worst finding is %q, not %q", name, worst, c.finding)
		}
		checkEndpoint(t, name, r)
	}
}

// checkEndpoint holds what is true of every report on an endpoint.
func checkEndpoint(t *testing.T, name string, r *diagnose.EndpointReport) {
	t.Helper()
	if r.Restart == "" || r.Growth == "" || r.Schema != 1 || r.Kind != "mcpdoctor.probe" {
		t.Errorf("%s: %+v", name, r)
	}
	topics := map[diagnose.Topic]bool{}
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

// What is said about a restart must not contradict the rows.
func TestEndpointRestart(t *testing.T) {
	says := func(ask facts.Ask, a facts.Answer) func(*facts.Endpoint) {
		return func(e *facts.Endpoint) { sessions(e); with(e, ask, a) }
	}
	for name, c := range map[string]struct {
		change func(*facts.Endpoint)
		want   string
	}{
		"no sessions": {nil, "survivable: no request depends"}, "told": {sessions, "survivable: clients whose session is gone are told"},
		"served": {says(facts.AskUnknown, result), "survivable: a session that it does not know is served"},
		"400":    {says(facts.AskUnknown, status(400)), "strands its clients"}, "401": {says(facts.AskUnknown, status(401)), "not known"},
		"too long": {says(facts.AskUnknown, tooLong), "not known"}, "none is served": {says(facts.AskWith, status(404)), "not known"},
		"nothing is served": {func(e *facts.Endpoint) { with(e, facts.AskWithout, status(400)) }, "not known: it serves no"},
		"it ended":          {func(e *facts.Endpoint) { sessions(e); e.Retention.Looks[3].Gone = true }, "not known: the server ended"},
		"it fell silent":    {func(e *facts.Endpoint) { sessions(e); a := silence; e.Retention.Refused = &a }, "not known: the server stopped"},
		"not asked":         {func(e *facts.Endpoint) { e.Exchanges = e.Exchanges[:2] }, "not known: not all"},
		"old":               {legacy, "costs its clients"}, "old, unsure": {func(e *facts.Endpoint) { legacy(e); with(e, facts.AskStale, status(429)) }, "not known"},
	} {
		if got := diagnose.Endpoint(endpoint(c.change), time.Time{}).Restart; !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

// Sessions that stay are told, also where the endpoint says that it ended them.
func TestEndpointUndeleted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts.Endpoint)
		want   string
	}{
		"all deleted": {func(*facts.Endpoint) {}, ""}, "one": {func(e *facts.Endpoint) { e.Retention.Undeleted = 1 }, "1 session that the probe opened could not be deleted, and stays until"},
		"405": {func(e *facts.Endpoint) { e.Retention.Undeleted = 21 }, "21 sessions"}, "ignored": {func(e *facts.Endpoint) { with(e, facts.AskDeleted, result) }, "21 sessions"},
	} {
		r := diagnose.Endpoint(endpoint(func(e *facts.Endpoint) { sessions(e); c.change(e) }), time.Time{})
		if got := strings.Join(r.Problems, "; "); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A remedy is one for what listens.
func TestEndpointFrameworks(t *testing.T) {
	for line, want := range map[string][2]bool{ // of Node, of Python
		"node /x/server.js": {true, false}, "python3 /x/server.py": {false, true}, "/usr/bin/server": {false, false}, "": {true, true},
	} {
		r := diagnose.Endpoint(endpoint(func(e *facts.Endpoint) {
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

// Only a bad answer is a failure: what was not asked or cannot be seen is none.
func TestEndpointFails(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*facts.Endpoint)
		want   bool
	}{
		"healthy": {nil, false}, "sessions": {sessions, false}, "nothing seen": {func(e *facts.Endpoint) { e.Process = facts.Process{} }, false},
		"old": {legacy, true}, "leaks": {func(e *facts.Endpoint) { left(e, facts.Settled, 20) }, true},
	} {
		if got := diagnose.Endpoint(endpoint(c.change), time.Time{}).Fails(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What a command line says about how a server is reached.
func TestServingMode(t *testing.T) {
	for line, want := range map[string]string{
		"node /x/node_modules/.bin/supergateway --stdio x --outputTransport streamableHttp":                                    "Streamable HTTP, stateless: a server for each request",
		"node /x/node_modules/.bin/supergateway --stdio x --outputTransport streamableHttp --stateful":                         "Streamable HTTP, stateful: a server for each session, without --sessionTimeout",
		"node /x/node_modules/.bin/supergateway --stdio x --outputTransport streamableHttp --stateful --sessionTimeout 600000": "Streamable HTTP, stateful: a server for each session, ended when it is idle for 10 min",
		"node /x/node_modules/.bin/supergateway --stdio x":                                                                     "HTTP+SSE, deprecated, one server for all clients",
		"node /x/node_modules/.bin/supergateway --stdio x --outputTransport ws":                                                "WebSocket, one server for all clients",
		"node /x/node_modules/.bin/supergateway --sse http://x/sse":                                                            "",
		"node /x/node_modules/.bin/supergateway":                                                                               "",
		"node /x/node_modules/.bin/mcp-server-everything streamableHttp":                                                       "Streamable HTTP",
		"node /x/node_modules/.bin/mcp-server-everything sse":                                                                  "HTTP+SSE, deprecated",
		"node /x/node_modules/.bin/mcp-server-everything stdio":                                                                "",
		"node /x/node_modules/.bin/mcp-server-everything":                                                                      "",
		"python -m mcp_server_x --transport streamable-http --stateless":                                                       "Streamable HTTP, stateless",
		"python -m mcp_server_x --transport=sse":                                                                               "HTTP+SSE, deprecated",
	} {
		s := &scan.Snapshot{Schema: scan.Schema, Kind: scan.Kind, Host: scan.Host{OS: "linux"}, Processes: []scan.Process{
			{PID: 1, Args: []string{"/sbin/init"}}, {PID: 20, PPID: 1, Start: 5, Args: strings.Fields(line)},
		}}
		r := rules.Judge(process.Recognise(s), rules.Options{})
		got := []string{}
		for _, o := range r.Gateways {
			got = append(got, o.Mode)
		}
		for _, o := range r.Servers {
			got = append(got, o.Mode)
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, not %q", line, got, want)
		}
	}
}
