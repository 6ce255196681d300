package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpdoctor/rules/format"
	"mcpdoctor/scan/facts"
)

// forwarders pass connections on to a server that is not below them.
var forwarders = []string{
	"docker-proxy", "rootlessport", "ssh", "sshd", "nginx", "caddy", "haproxy", "traefik", "envoy", "socat", "cloudflared", "ngrok",
	"tailscaled", "wslrelay.exe", "gvproxy", "slirp4netns", "pasta",
}

// forwarder reports whether the listener is not the server, so that its children and its memory prove nothing.
func (j *endpointJudge) forwarder() bool {
	return slices.Contains(forwarders, j.e.Process.Listener.Name)
}

// leaks judges what the sessions left behind on this machine.
func (j *endpointJudge) leaks() {
	verdict, answer := j.processes()
	j.row(TopicProcesses, verdict, answer)
	if !j.forwarder() {
		verdict, answer = j.memory()
		j.row(TopicMemory, verdict, answer)
	}
}

const (
	// fewRequests is how many processes have to be left before that cannot be chance.
	fewRequests = 3

	// perRequest is the smallest share of the requests, as a divisor, that counts as one process for each.
	perRequest = 2
)

// processes judges what the sessions left below the listener.
func (j *endpointJudge) processes() (Verdict, string) {
	r, pid := j.e.Retention, j.e.Process.Listener.PID
	settled, seen := j.looks[facts.Settled]
	what := format.Count(r.Served, "request")
	if j.e.Session {
		what = format.Count(r.Served, "dropped session")
	} else if j.e.Transport == facts.LegacySSE {
		what = format.Count(r.Served, "dropped stream")
	}
	switch {
	case !j.e.Process.Found:
		return Unsure, j.e.Process.Why
	case j.forwarder():
		return Unsure, fmt.Sprintf("%s (pid %d) listens on the port and forwards to a server elsewhere", j.e.Process.Listener.Name, pid)
	case !seen:
		return Unsure, "the probe ran out of time"
	case settled.Gone:
		return Failed, fmt.Sprintf("the server itself (pid %d) exited after %s", pid, what)
	case r.Sent == 0:
		return Unsure, "no session was opened: probe with --sessions 20"
	case r.Served == 0:
		return Unsure, fmt.Sprintf("none of %s was served", format.Count(r.Sent, "request"))
	case settled.SessionProcesses == 0:
		return OK, fmt.Sprintf("%s left none below pid %d", what, pid)
	}
	left := format.Count(settled.SessionChildren, "process")
	if settled.SessionProcesses > settled.SessionChildren {
		left = fmt.Sprintf("%s (%d with descendants)", left, settled.SessionProcesses)
	}
	line := fmt.Sprintf("%s left %s below pid %d", what, left, pid)
	cleared, deleted := j.looks[facts.Cleared]
	mode := j.gateway.Mode(j.run)
	many := func(n int) bool { return n >= fewRequests && n*perRequest >= r.Served }
	switch {
	case !many(settled.SessionChildren):
		return Unsure, line + ": too few for one each; other clients may be active"
	case !j.e.Session:
		j.piling = line
	case deleted && many(cleared.SessionChildren+cleared.Strays):
		j.piling = fmt.Sprintf("%s deleted, but %s left", format.Count(r.Deleted, "session"), format.Count(cleared.SessionProcesses, "process"))
	case mode.NeverEnds:
		j.piling = line + ", forever: " + strings.Join(mode.Missing, ", ") + " is missing from its command line"
	case deleted:
		return Note, line + "; DELETE ended them"
	default:
		return Note, line + " for at least " + format.Age(time.Duration(r.DroppedMS)*time.Millisecond)
	}
	return Failed, j.piling
}

// What separates a leak from a garbage collector that takes its time, measured on eleven servers in rounds of 800:
// those that keep their sessions grew by 12 to 230 KB for each, in the second round 0.6 to 1.1 times as much as in the
// first. Healthy ones grew by 23 KB at most, mostly by less than 8, and 0.1 to 0.7 times as much.
const (
	noise     = 8 << 10  // per session: less is never called growth
	heavy     = 64 << 10 // per session: from here on it is growth even where no session is known to be kept
	levelling = 2        // the second round has to grow by this share of the first, else memory levels off
)

// memory judges two equal rounds after a warm-up. Fewer sessions prove nothing: see [facts.LeastForMemory].
func (j *endpointJudge) memory() (Verdict, string) {
	r := j.e.Retention
	switch {
	case !j.e.Process.Found:
		return Unsure, j.e.Process.Why
	case j.looks[facts.Settled].Gone:
		return Unsure, "the server exited"
	case len(r.Rounds) >= 2:
	case r.Asked < facts.LeastForMemory:
		return Unsure, fmt.Sprintf("needs at least %d requests: probe with --sessions 2000", facts.LeastForMemory)
	case r.Refused != nil:
		cost := j.looks[facts.AtOnce].RSSBytes - j.looks[facts.AtSessions].RSSBytes
		return Unsure, fmt.Sprintf("it refused before both rounds were finished; %d sessions cost %s", r.Served, format.Bytes(max(0, cost)))
	default:
		return Unsure, "the two rounds were not finished"
	}
	first, second := r.Rounds[0], r.Rounds[1]
	grown := second.AfterBytes - second.BeforeBytes
	each := grown / int64(second.Sessions)
	line := fmt.Sprintf("two rounds of %d after a warm-up: %s, then %s", first.Sessions, growth(first), growth(second))
	steady := grown*levelling >= first.AfterBytes-first.BeforeBytes
	switch {
	case each < noise:
		return OK, line + ", which is noise"
	case steady && (j.kept > 0 || each >= heavy):
		j.growing = fmt.Sprintf("%s, %s each", line, format.Bytes(each))
		return Failed, j.growing
	}
	return Unsure, line + ": more than noise, but no proof; probe with more --sessions"
}

func growth(r facts.Round) string {
	return fmt.Sprintf("%+.1f MB", float64(r.AfterBytes-r.BeforeBytes)/(1<<20))
}
