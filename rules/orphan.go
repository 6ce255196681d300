package rules

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

var _ = register(Rule{
	ID:       "orphan",
	Order:    10,
	Title:    "the client has exited and its server is still running",
	Severity: Error,
	Reap:     "safe when proved; on request when it listens, may be a service, or has an unreadable stdin",
	Why: "A stdio server should exit when its client closes stdin. One that keeps a timer, a socket or a thread alive does not notice, " +
		"and a launcher such as npx, uv or sh may swallow the signal that was meant for it. When the client is killed or crashes, " +
		"such a server is adopted by PID 1 or a subreaper and runs until the next reboot. Nothing can ever use it again.",
	Evidence: []string{
		"its topmost launcher was adopted (by PID 1, systemd --user, WSL's init, tini ...); on Windows, its parent has exited or is younger than it",
		"its stdin is closed at the other end: the strongest evidence",
		"no running process reads its output",
		"no supervisor keeps it",
		"it does not listen for connections",
	},
	Wrong: []string{
		"a daemon whose start script has exited: it listens or has /dev/null at its stdin, and is left alone or needs confirmation",
		"a server that is shutting down: clients allow it about 4 seconds, so look twice",
		"a server that still runs a job of its former client (a build, a development server): it needs confirmation",
		"a one-shot (printf ... | server) that still works on its answer: it needs confirmation while its parent runs, its output is read or goes to a file, or requests are unread",
		"a server that was started with & where the system does not show its stdin (macOS, Windows, FreeBSD): adopted and unsupervised is all that can be seen there",
		"a program named like a server that works on a connection it opened itself, or opens a port later, although its stdin is closed",
		"a server whose stdin is in transit between two processes (SCM_RIGHTS) while an orphan holds it too: this cannot be seen",
	},
	Remedy: []string{
		RemedyNode,
		RemedyPython,
		RemedyGo,
		RemedySignal,
		"client: close the session, wait, then terminate the whole process group, then kill it",
		"to terminate it, use mcpdoctor reap rather than kill: the PID may belong to another process by then, which reap checks",
		RemedyLauncher,
		"before it happens: mcpdoctor check -- COMMAND starts a server, ends it as clients do, and shows which process stays",
	},
	Code:  watchers,
	check: findOrphans,
})

// The remedies that diagnose.Stdio gives too.
const (
	RemedyNode     = "server, Node: on 'end' and 'close' of process.stdin, write the answers and call process.exit(0); unref() timers that must not keep it alive"
	RemedyPython   = "server, Python: leave the loop at the end of sys.stdin; make background threads daemon threads"
	RemedyGo       = "server, Go: return from main when reading os.Stdin returns io.EOF"
	RemedySignal   = "server: exit on SIGTERM; a handler of the signal has to exit the process"
	RemedyLauncher = "launcher: configure the interpreter and the script (node /path/server.js) instead of npx, uvx or sh -c, so that there is one process to terminate"
)

// shutdownGrace is how long a server whose stdin is closed may just be shutting down: SDK clients close
// stdin, wait 2 s, send SIGTERM, wait 2 s and send SIGKILL; some servers take 15 s.
const shutdownGrace = 20 * time.Second

// orphanCandidate is an instance that may have lost its client.
type orphanCandidate struct {
	in         *process.Instance
	confidence process.Confidence
	safe       bool
	doubt      string // why it is not safe
	proof      string // what shows that it is an orphan
}

func findOrphans(j *judgement) []Finding {
	gone := map[*process.Instance]orphanCandidate{}
	for _, in := range j.Instances {
		if l, ok := j.judgeOrphan(in); ok {
			gone[in] = l
		}
	}
	j.spareRead(gone)
	j.followHolders(gone)
	j.followOwners(gone)
	j.findContainers(gone)

	groups := map[string][]orphanCandidate{}
	for _, in := range j.claim(j.ordered(gone)) {
		l := gone[in]
		key := strings.Join([]string{in.Identity, string(l.confidence), l.doubt}, "\x00")
		groups[key] = append(groups[key], l)
	}
	var out []Finding
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, j.orphanFinding(key, groups[key]))
	}
	return out
}

// ordered returns the candidates by their PIDs.
func (j *judgement) ordered(gone map[*process.Instance]orphanCandidate) []*process.Instance {
	var out []*process.Instance
	for _, in := range j.Instances {
		if _, ok := gone[in]; ok {
			out = append(out, in)
		}
	}
	return out
}

// judgeOrphan judges one instance by itself; false when it is no orphan.
func (j *judgement) judgeOrphan(in *process.Instance) (orphanCandidate, bool) {
	if in.Service != nil || in.Owner.Kind == process.OwnerService || in.Role == process.RoleHelper {
		return orphanCandidate{}, false
	}
	if in.Role == process.RoleClient && !in.NonInteractive() {
		return orphanCandidate{}, false // a client that a person uses is never a leak
	}
	if in.Root().PID == 1 || in.Role != process.RoleServer && in.Owner.Kind != process.OwnerNobody {
		return orphanCandidate{}, false // a gateway or client is left behind only when it was adopted
	}
	if j.contained(in) {
		return orphanCandidate{}, false // judged by findContainers
	}
	w, _ := in.Stdin()
	listen := in.Listen()
	adopted := in.Owner.Kind == process.OwnerNobody
	l := orphanCandidate{in: in}
	switch {
	case w == process.StdinClosed:
		return j.judgeClosed(in, listen)
	case in.Role != process.RoleServer || !adopted:
		return orphanCandidate{}, false // without a dead stdin, only an adopted server is suspected
	case w == process.StdinOpen, w == process.StdinNoPipe:
		return orphanCandidate{}, false // its client holds it, or it was started as a daemon
	case j.sharedDaemon(in, listen):
		return orphanCandidate{}, false
	case w == process.StdinUnread:
		l.confidence, l.proof = process.Likely, "its stdin is closed at the other end"
		l.doubt = "it has unread requests, and may be working on them"
	case w == process.StdinMaybeClosed:
		l.confidence, l.proof = process.Likely, "the pipe that carries its requests is closed at the other end"
		l.doubt = "that pipe is not its descriptor 0, so it may be something else"
	case w == process.StdinUnreadable && j.OtherUser(in.Root()):
		return orphanCandidate{}, false // nothing can be seen of another user's processes, and nothing be done
	case w == process.StdinUnreadable:
		l.confidence, l.doubt = process.Possible, "its stdin is unreadable, so it may still be open"
	case len(listen) > 0 || process.SpeaksHTTP(in.Recognition.Command):
		// A server that listens needs no client above it. Only beside a service of the very same
		// command is it known to have no business here.
		twin := j.supervisedTwin(in)
		if twin == nil {
			return orphanCandidate{}, false
		}
		l.confidence, l.doubt = process.Possible, fmt.Sprintf("it listens like a daemon, but %s keeps pid %d with the same command instead", twin.Service.Manager, twin.Service.MainPID)
	case in.Unreadable("listen"):
		l.confidence, l.doubt = process.Possible, mayListenUnseen
	case j.maybeService(in) != "":
		l.confidence, l.doubt = process.Possible, j.maybeService(in)
	case !j.pastGrace(in):
		l.confidence, l.doubt = process.Likely, tooYoung
	case in.Root().TTY != "" && in.Root().TTY != "-":
		l.confidence, l.doubt = process.Possible, "it has a terminal, and may have been started by hand"
	default:
		l.confidence, l.safe = process.Likely, true
	}
	j.downgrade(&l)
	return l, true
}

// downgrade lowers the confidence by how surely the instance was recognised: what is only possibly a server
// is never safe. A name that speaks of MCP is enough when stdin is closed, since only a program that takes
// requests has a pipe there.
func (j *judgement) downgrade(l *orphanCandidate) {
	if l.in.Recognition.Confidence != process.Possible || l.in.Recognition.By == process.ByConvention && l.proof != "" && !l.in.Recognition.Command.NamedByFolder {
		return
	}
	l.confidence, l.safe = process.Possible, false
	if l.doubt == "" {
		l.doubt = "it may not be an MCP server"
	}
}

// tooYoung is the doubt about what may be shutting down: see shutdownGrace.
const tooYoung = "it is younger than 20 s, or of unknown age, and may be shutting down"

// pastGrace reports whether an instance is too old to be shutting down.
func (j *judgement) pastGrace(in *process.Instance) bool {
	age, known := in.Age()
	return known && age >= shutdownGrace
}

// judgeClosed judges an instance whose stdin is closed at the other end.
func (j *judgement) judgeClosed(in *process.Instance, listen []string) (orphanCandidate, bool) {
	l := orphanCandidate{in: in, confidence: process.Certain, proof: "its stdin is closed at the other end"}
	inbound, _ := in.Inbound()
	settled := j.Settled[in.Root().ID()]
	switch {
	case j.sharedDaemon(in, listen) || inbound > 0:
		return orphanCandidate{}, false
	case len(listen) > 0:
		l.confidence, l.doubt = process.Likely, "it listens on "+format.List(listen, 2)+", and may be a daemon"
	case j.mayListen(in):
		l.confidence, l.doubt = process.Possible, mayListenUnseen
	case in.Role == process.RoleClient:
		l.confidence, l.doubt = process.Likely, "it is a client, which may be working without a terminal"
	case in.Owner.Kind == process.OwnerTerminal || j.belowShell(in):
		l.confidence, l.doubt = process.Possible, "a shell started it, and may be waiting for its last answer"
	case j.answersElsewhere(in) && j.below(in):
		return orphanCandidate{}, false // a job of its running parent
	case j.answersElsewhere(in):
		l.confidence, l.doubt = process.Likely, "its output goes to a file, a terminal or /dev/null, as when a script asked once and waits for the result"
	case j.below(in):
		j.judgeBelow(&l, settled)
	case in.Owner.Kind != process.OwnerNobody:
		l.confidence, l.doubt = process.Likely, "its parent cannot be seen from here, and may be waiting for an answer"
	case !j.pastGrace(in) && !settled:
		l.doubt = tooYoung
	}
	if l.doubt == "" && j.unasked(in) {
		l.doubt = "a supervisor may keep it, and could not be asked"
	}
	if job := j.job(in); l.doubt == "" && job != process.None {
		l.doubt = fmt.Sprintf("it has started %s (pid %d), which is running and may need it", process.BaseName(j.Process(job)), j.Process(job).PID)
	}
	l.safe = l.doubt == ""
	j.downgrade(&l)
	return l, true
}

// job returns an unrecognised process that a server started in the course of its work, or none. What it
// starts in its first minute is rather a part of it.
func (j *judgement) job(in *process.Instance) int32 {
	begun := in.Main().Started
	for _, m := range in.Members {
		if started := j.Process(m).Started; j.Recognitions[m] == nil && !begun.IsZero() && started.Sub(begun) > time.Minute {
			return m
		}
	}
	return process.None
}

const mayListenUnseen = "it may listen for connections"

// mayListen reports whether an instance was configured to listen, or its sockets are unreadable. A server
// on the network needs no stdin, so a closed one proves nothing.
func (j *judgement) mayListen(in *process.Instance) bool {
	return process.SpeaksHTTP(in.Recognition.Command) || in.Unreadable("listen") || in.Role == process.RoleGateway && in.Main().Listen == nil
}

// followOwners adds the servers below an orphaned gateway or server: they cannot be reached either.
func (j *judgement) followOwners(gone map[*process.Instance]orphanCandidate) {
	for grown := true; grown; {
		grown = false
		for _, in := range j.Instances {
			if _, ok := gone[in]; ok || in.OwnedBy == nil || in.Role != process.RoleServer || in.OwnedBy.Role == process.RoleClient || in.Service != nil || len(in.Listen()) > 0 {
				continue
			}
			if over, ok := gone[in.OwnedBy]; ok {
				l := orphanCandidate{in: in, confidence: over.confidence, safe: over.safe, doubt: over.doubt}
				l.proof = fmt.Sprintf("it belongs to %s (pid %d), which is an orphan", in.OwnedBy.Name, in.OwnedBy.Main().PID)
				j.downgrade(&l)
				gone[in], grown = l, true
			}
		}
	}
}

// sharedDaemon reports whether an instance listens for proxies of its own program that are in use: some
// servers run once per project and are reached over a socket.
func (j *judgement) sharedDaemon(in *process.Instance, listen []string) bool {
	if len(listen) == 0 {
		return false
	}
	for _, other := range j.Copies[in.Identity] {
		if other != in && (other.Owner.Kind == process.OwnerClient || other.Owner.Kind == process.OwnerGateway) {
			return true
		}
	}
	return false
}

// supervisedTwin returns an instance of the same command that a supervisor keeps.
func (j *judgement) supervisedTwin(in *process.Instance) *process.Instance {
	for _, other := range j.Copies[in.Identity] {
		if other != in && other.Service != nil {
			return other
		}
	}
	return nil
}

// judgeBelow judges an instance with a closed stdin below a running parent that did not adopt it. A known
// client talks to its servers until it ends them. Any other program may have asked once, closed stdin as
// it should, and be waiting for the answer.
func (j *judgement) judgeBelow(l *orphanCandidate, settled bool) {
	in := l.in
	known := in.OwnedBy != nil && in.OwnedBy.Recognition.By != process.ByRelation
	what := "parent"
	if known {
		what = string(in.Owner.Kind)
		l.proof += ", and its " + what + " " + in.Owner.String() + " does not know that it is still running"
	} else {
		l.proof += ", though its parent " + in.Owner.String() + " is running"
	}
	switch {
	case !settled:
		l.confidence, l.doubt = process.Likely, "its "+what+" may be shutting it down: look again"
	case j.unread(in):
		l.proof += "; its output is not read either"
	case !known:
		l.confidence, l.doubt = process.Likely, "its "+what+" is running, and may be waiting for a last answer"
	}
}

// answersElsewhere reports whether the output goes where no MCP client reads: to a file, a terminal or
// /dev/null, as for a one-shot.
func (j *judgement) answersElsewhere(in *process.Instance) bool {
	out := in.Main().Stdout
	return out != nil && (out.Type == scan.StdinFile || out.Type == scan.StdinTTY || out.Type == scan.StdinNull)
}

// unread reports whether no process outside of the instance reads its output.
func (j *judgement) unread(in *process.Instance) bool {
	out := in.Main().Stdout
	switch {
	case out == nil:
		return false
	case out.Peer == scan.PeerClosed:
		return true
	case out.Type != scan.StdinPipe || len(out.Holders) == 0 || in.Unreadable("holders"):
		return false
	}
	return !slices.ContainsFunc(out.Holders, func(pid int) bool {
		at := j.Forest.Node(pid)
		return at == process.None || j.InstanceOf[at] != in
	})
}

// below reports whether an instance has a running parent that did not adopt it.
func (j *judgement) below(in *process.Instance) bool {
	return j.Forest.Parent[in.RootNode] != process.None && in.Owner.Kind != process.OwnerNobody
}

// belowShell reports whether the parent is a running shell: `printf ... | mcp-server` in a script.
func (j *judgement) belowShell(in *process.Instance) bool {
	up := j.Forest.Parent[in.RootNode]
	return up != process.None && in.Owner.Kind != process.OwnerNobody && process.TerminalOrShell(j.Process(up))
}

// unasked reports whether a supervisor may keep a process of the instance and could not be asked.
func (j *judgement) unasked(in *process.Instance) bool { return in.Unreadable("service") }

// maybeService returns why a supervisor may keep the instance; "" when none does. The control group of a
// service is only a hint, since orphans inherit it; scopes and the units of desktop applications are no
// services (systemd.io/DESKTOP_ENVIRONMENTS).
func (j *judgement) maybeService(in *process.Instance) string {
	leaf := path.Base(in.Root().Cgroup)
	switch {
	case j.Snapshot.Host.Services == nil:
		return "a supervisor may keep it: none could be asked"
	case j.unasked(in):
		return "a supervisor may keep it, and could not be asked"
	case strings.HasSuffix(leaf, ".service") && !strings.HasPrefix(leaf, "app-") && !strings.HasPrefix(leaf, "user@"):
		return "it is in the control group of " + leaf + ", and may be that service"
	}
	return ""
}

func (j *judgement) orphanFinding(key string, group []orphanCandidate) Finding {
	first := group[0]
	subjects := make([]*process.Instance, len(group))
	for i, l := range group {
		subjects[i] = l.in
	}
	j.SortByStart(subjects)
	c := claim{severity: Error, confidence: first.confidence, key: key, subjects: subjects}
	if !first.safe {
		c.severity = Warning
		if first.confidence == process.Certain {
			c.severity = Error
		}
	}
	what := map[process.Role]string{process.RoleServer: "server", process.RoleGateway: "gateway", process.RoleClient: "non-interactive client"}[first.in.Role]
	c.title = fmt.Sprintf("%s: %s still running after %s client exited", first.in.Name, format.Count(len(group), what), format.Plural(len(group), "its", "their"))
	switch {
	case first.in.Role == process.RoleClient:
		c.title = fmt.Sprintf("%s: %s still running after what started %s exited", first.in.Name, format.Count(len(group), what), format.Plural(len(group), "it", "them"))
	case j.below(first.in) && first.in.OwnedBy == nil:
		c.title = fmt.Sprintf("%s: %s can get no more requests, below a running program", first.in.Name, format.Count(len(group), what))
	case j.below(first.in):
		c.title = fmt.Sprintf("%s: %s still running although %s client has closed stdin", first.in.Name, format.Count(len(group), what), format.Plural(len(group), "its", "their"))
	}
	c.evidence = j.orphanEvidence(group, subjects)
	if first.safe {
		c.safe = subjects
	} else {
		c.onRequest = subjects
	}
	c.remedy = j.orphanRemedy(first, subjects)
	return j.finding(c)
}

func (j *judgement) orphanEvidence(group []orphanCandidate, subjects []*process.Instance) []string {
	var out []string
	adopters := map[string]int{}
	proofs := map[string]int{}
	doubts := map[string]bool{}
	for _, l := range group {
		if l.in.Owner.Kind == process.OwnerNobody && !j.contained(l.in) {
			adopters[j.adoption(l.in)]++
		}
		if l.proof != "" {
			proofs[l.proof]++
		}
		if l.doubt != "" {
			doubts[l.doubt] = true
		}
	}
	out = append(out, tally(adopters, len(group))...)
	out = append(out, tally(proofs, len(group))...)
	if j.Snapshot.Host.Services != nil && group[0].in.Role == process.RoleServer {
		out = append(out, "no supervisor keeps "+format.Plural(len(group), "it", "any of them"))
	}
	out = append(out, j.agesOf(subjects)...)
	out = append(out, j.spinning(subjects)...)
	if from := j.origins(subjects); from != "" {
		out = append(out, from)
	}
	for _, d := range slices.Sorted(maps.Keys(doubts)) {
		out = append(out, "needs confirmation: "+d)
	}
	return out
}

// adoption describes what became of the parent.
func (j *judgement) adoption(in *process.Instance) string {
	parent, who := "its parent", ""
	if rec := j.Recognitions[in.RootNode]; rec.RoleOrNone() == process.RoleLauncher && len(in.Members) > 1 {
		launcher := launcherName(rec)
		parent, who = "the parent of its launcher "+launcher, "its launcher "+launcher+" was "
	}
	switch pid := in.Root().PPID; j.Forest.ParentStates[in.RootNode] {
	case process.ParentMissing:
		return fmt.Sprintf("%s (pid %d) has exited", parent, pid)
	case process.ParentReused:
		return fmt.Sprintf("%s (pid %d) has exited: a younger process has that PID", parent, pid)
	}
	return fmt.Sprintf("%sadopted by %s: no client is above it", who, in.Owner)
}

func launcherName(rec *process.Recognition) string {
	if l := rec.Command.Launchers; len(l) > 0 {
		return l[0]
	}
	return rec.Name
}

func (j *judgement) orphanRemedy(first orphanCandidate, subjects []*process.Instance) Remedy {
	in := first.in
	r := Remedy{Summary: "terminate " + format.Plural(len(subjects), "it", "them") + ", then use a version of " + in.Name + " that exits when its stdin is closed"}
	if l := in.Launchers(); len(l) > 0 {
		r.Steps = append(r.Steps, fmt.Sprintf("configure the server's own program instead of %s, so that the client has one process to terminate", format.List(l, 2)))
	}
	switch {
	case in.Role == process.RoleGateway:
		r.Summary = "terminate the gateway; run it as a service, or from a client that terminates it"
	case in.Role == process.RoleClient:
		r.Summary = "terminate it if it has no work left; start non-interactive clients from a program that waits for them"
	case j.contained(in):
		return j.containerRemedy(subjects)
	}
	if first.safe {
		r.Commands = append(r.Commands, j.reapLine(subjects, false))
	} else {
		r.Steps = append(r.Steps, "check that "+format.Plural(len(subjects), "it is", "they are")+" not in use before you terminate "+format.Plural(len(subjects), "it", "them"))
		r.Commands = append(r.Commands, j.reapLine(subjects, true))
	}
	return r
}
