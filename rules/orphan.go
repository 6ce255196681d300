package rules

import (
	"cmp"
	"fmt"
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
		"its topmost launcher was adopted (by PID 1, systemd --user, WSL's init, tini ...); on Windows, its parent has exited or is " +
			"younger than it",
		"its stdin is closed at the other end: the strongest evidence",
		"no running process reads its output",
		"no supervisor keeps it",
		"it does not listen for connections",
	},
	Wrong: []string{
		"a daemon whose start script has exited: it listens or has /dev/null at its stdin, and is left alone or needs confirmation",
		"a server that is shutting down: clients allow it about 4 seconds, so look twice",
		"a server that still runs a job of its former client (a build, a development server): it needs confirmation",
		"a one-shot (printf ... | server) that still works on its answer: it needs confirmation while its parent runs, its output " +
			"is read or goes to a file, or requests are unread",
		"a server that was started with & where the system does not show its stdin (macOS, Windows, FreeBSD): adopted and " +
			"unsupervised is all that can be seen there",
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
		"before it happens: mcpdoctor check -- COMMAND starts a server, shuts it down as clients do, and shows which process stays",
	},
	Code:  watchers,
	check: findOrphans,
})

// The remedies that diagnose.Stdio gives too.
const (
	RemedyNode = "server, Node: on 'end' and 'close' of process.stdin, write the answers and call process.exit(0); unref() " +
		"timers that must not keep it alive"
	RemedyPython   = "server, Python: leave the loop at the end of sys.stdin; make background threads daemon threads"
	RemedyGo       = "server, Go: return from main when reading os.Stdin returns io.EOF"
	RemedySignal   = "server: exit on SIGTERM; a handler of the signal has to exit the process"
	RemedyLauncher = "launcher: configure the interpreter and the script (node /path/server.js) instead of npx, uvx or sh -c, so " +
		"that there is one process to terminate"
)

// shutdownGrace is how long a server whose stdin is closed may just be shutting down: SDK clients close
// stdin, wait 2 s, send SIGTERM, wait 2 s and send SIGKILL; some servers take 15 s.
const shutdownGrace = 20 * time.Second

// orphanCandidate is an instance that may have lost its client.
type orphanCandidate struct {
	in         *process.Instance
	confidence process.Confidence
	doubt      string // why it is not safe to terminate; "" when it is
	proof      string // what shows that it is an orphan
}

// orphans are the candidates found so far.
type orphans map[*process.Instance]*orphanCandidate

func findOrphans(j *judgement) {
	gone := orphans{}
	for _, in := range j.Instances {
		if l := j.judgeOrphan(in); l != nil {
			gone[in] = l
		}
	}
	j.spareRead(gone)
	j.follow(gone, j.heldByOrphans)
	j.follow(gone, j.ownedByOrphan)
	j.findContainers(gone)

	lost := slices.DeleteFunc(slices.Clone(j.Instances), func(in *process.Instance) bool { return gone[in] == nil })
	for _, group := range grouped(j.claim(lost), func(in *process.Instance) string { return gone[in].key() }) {
		j.orphaned(gone, group)
	}
}

// key is the same for candidates that make one finding.
func (l *orphanCandidate) key() string {
	return strings.Join([]string{l.in.Identity, string(l.confidence), l.doubt}, "\x00")
}

// follow adds the instances that are orphans because others are, until there are no more.
func (j *judgement) follow(gone orphans, because func(*process.Instance, orphans) *orphanCandidate) {
	for grown := true; grown; {
		grown = false
		for _, in := range j.WithRole(process.RoleServer) {
			if gone[in] != nil || in.Service != nil || len(in.Listen()) > 0 {
				continue
			}
			if l := because(in, gone); l != nil {
				j.downgrade(l)
				gone[in], grown = l, true
			}
		}
	}
}

// judgeOrphan judges one instance by itself; nil when it is no orphan.
func (j *judgement) judgeOrphan(in *process.Instance) *orphanCandidate {
	w, _ := in.Stdin()
	adopted := in.Owner.Kind == process.OwnerNobody
	switch {
	case in.Service != nil || in.Owner.Kind == process.OwnerService || in.Role == process.RoleHelper || in.Root().PID == 1:
		return nil
	case in.Role == process.RoleClient && !in.NonInteractive():
		return nil // a client that a person uses is never a leak
	case in.Role != process.RoleServer && !adopted:
		return nil // a gateway or client is left behind only when it was adopted
	case j.contained(in):
		return nil // judged by findContainers
	case w == process.StdinClosed:
		return j.judgeClosed(in)
	case in.Role != process.RoleServer || !adopted:
		return nil // without a dead stdin, only an adopted server is suspected
	case w == process.StdinOpen, w == process.StdinNoPipe:
		return nil // its client holds it, or it was started as a daemon
	case w == process.StdinUnreadable && j.OtherUser(in.Root()):
		return nil // nothing can be seen of another user's processes, and nothing be done
	case j.sharedDaemon(in):
		return nil
	}
	return j.judgeAdopted(in, w)
}

// judgeAdopted judges an adopted server whose stdin is not certainly closed.
func (j *judgement) judgeAdopted(in *process.Instance, w process.StdinState) *orphanCandidate {
	l := &orphanCandidate{in: in, confidence: process.Likely}
	switch {
	case w == process.StdinUnread:
		l.proof = "its stdin is closed at the other end"
		l.doubt = "it has unread requests, and may be working on them"
	case w == process.StdinMaybeClosed:
		l.proof = "the pipe that carries its requests is closed at the other end"
		l.doubt = "that pipe is not its descriptor 0, so it may be something else"
	case w == process.StdinUnreadable:
		l.confidence, l.doubt = process.Possible, "its stdin is unreadable, so it may still be open"
	case len(in.Listen()) > 0 || process.SpeaksHTTP(in.Recognition.Command):
		// A server that listens needs no client above it. Only beside a service of the very same
		// command is it known to have no business here.
		twin := j.twin(in, func(other *process.Instance) bool { return other.Service != nil })
		if twin == nil {
			return nil
		}
		l.confidence = process.Possible
		l.doubt = fmt.Sprintf("it listens like a daemon, but %s keeps pid %d with the same command instead",
			twin.Service.Manager, twin.Service.MainPID)
	case in.Unreadable("listen"):
		l.confidence, l.doubt = process.Possible, mayListenUnseen
	case j.maybeService(in) != "":
		l.confidence, l.doubt = process.Possible, j.maybeService(in)
	case !pastGrace(in):
		l.doubt = tooYoung
	case in.Root().TTY != "" && in.Root().TTY != "-":
		l.confidence, l.doubt = process.Possible, "it has a terminal, and may have been started by hand"
	}
	j.downgrade(l)
	return l
}

// downgrade lowers the confidence by how surely the instance was recognised: what is only possibly a server
// is never safe. A name that speaks of MCP is enough when stdin is closed, since only a program that takes
// requests has a pipe there.
func (j *judgement) downgrade(l *orphanCandidate) {
	rec := l.in.Recognition
	if rec.Confidence != process.Possible || rec.By == process.ByConvention && l.proof != "" && !rec.Command.NamedByFolder {
		return
	}
	l.confidence, l.doubt = process.Possible, cmp.Or(l.doubt, "it may not be an MCP server")
}

// tooYoung is the doubt about what may be shutting down: see shutdownGrace.
const tooYoung = "it is younger than 20 s, or of unknown age, and may be shutting down"

// pastGrace reports whether an instance is too old to be shutting down.
func pastGrace(in *process.Instance) bool {
	age, known := in.Age()
	return known && age >= shutdownGrace
}

// judgeClosed judges an instance whose stdin is closed at the other end.
func (j *judgement) judgeClosed(in *process.Instance) *orphanCandidate {
	l := &orphanCandidate{in: in, confidence: process.Likely, proof: "its stdin is closed at the other end"}
	inbound, _ := in.Inbound()
	settled := j.Settled[in.Root().ID()]
	switch {
	case j.sharedDaemon(in) || inbound > 0:
		return nil
	case len(in.Listen()) > 0:
		l.doubt = "it listens on " + format.List(in.Listen(), 2) + ", and may be a daemon"
	case mayListen(in):
		l.confidence, l.doubt = process.Possible, mayListenUnseen
	case in.Role == process.RoleClient:
		l.doubt = "it is a client, which may be working without a terminal"
	case in.Owner.Kind == process.OwnerTerminal || j.belowShell(in):
		l.confidence, l.doubt = process.Possible, "a shell started it, and may be waiting for its last answer"
	case answersElsewhere(in) && j.below(in):
		return nil // a job of its running parent
	case answersElsewhere(in):
		l.doubt = "its output goes to a file, a terminal or /dev/null, as when a script asked once and waits for the result"
	case j.below(in):
		j.judgeBelow(l, settled)
	case in.Owner.Kind != process.OwnerNobody:
		l.doubt = "its parent cannot be seen from here, and may be waiting for an answer"
	default:
		l.confidence = process.Certain
		if !pastGrace(in) && !settled {
			l.doubt = tooYoung
		}
	}
	if l.doubt == "" && unasked(in) {
		l.doubt = "a supervisor may keep it, and could not be asked"
	}
	if job := j.job(in); l.doubt == "" && job != nil {
		l.doubt = fmt.Sprintf("it has started %s (pid %d), which is running and may need it", process.BaseName(job), job.PID)
	}
	j.downgrade(l)
	return l
}

// job returns an unrecognised process that a server started in the course of its work; nil for none. What it
// starts in its first minute is rather a part of it.
func (j *judgement) job(in *process.Instance) *scan.Process {
	begun := in.Main().Started
	for _, m := range in.Members {
		if p := j.Process(m); j.Recognitions[m] == nil && !begun.IsZero() && p.Started.Sub(begun) > time.Minute {
			return p
		}
	}
	return nil
}

const mayListenUnseen = "it may listen for connections"

// mayListen reports whether an instance was configured to listen, or its sockets are unreadable. A server
// on the network needs no stdin, so a closed one proves nothing.
func mayListen(in *process.Instance) bool {
	return process.SpeaksHTTP(in.Recognition.Command) || in.Unreadable("listen") || in.Role == process.RoleGateway && in.Main().Listen == nil
}

// ownedByOrphan judges a server below an orphaned gateway or server: it cannot be reached either.
func (j *judgement) ownedByOrphan(in *process.Instance, gone orphans) *orphanCandidate {
	over := gone[in.OwnedBy]
	if over == nil || over.in.Role == process.RoleClient {
		return nil
	}
	proof := fmt.Sprintf("it belongs to %s, which is an orphan", over.in)
	return &orphanCandidate{in: in, confidence: over.confidence, doubt: over.doubt, proof: proof}
}

// sharedDaemon reports whether an instance listens for proxies of its own program that are in use: some
// servers run once per project and are reached over a socket.
func (j *judgement) sharedDaemon(in *process.Instance) bool {
	return len(in.Listen()) > 0 && j.twin(in, func(other *process.Instance) bool {
		return other.Owner.Kind == process.OwnerClient || other.Owner.Kind == process.OwnerGateway
	}) != nil
}

// twin returns another instance of the same server for which something holds; nil for none.
func (j *judgement) twin(in *process.Instance, holds func(*process.Instance) bool) *process.Instance {
	for _, other := range j.Copies[in.Identity] {
		if other != in && holds(other) {
			return other
		}
	}
	return nil
}

// judgeBelow judges an instance with a closed stdin below a running parent that did not adopt it. A known
// client talks to its servers until it ends them. Any other program may have asked once, closed stdin as
// it should, and be waiting for the answer.
func (j *judgement) judgeBelow(l *orphanCandidate, settled bool) {
	owner, what := l.in.Owner, "parent"
	known := l.in.OwnedBy != nil && l.in.OwnedBy.Recognition.By != process.ByRelation
	if known {
		what = string(owner.Kind)
		l.proof += fmt.Sprintf(", and its %s %s does not know that it is still running", what, owner)
	} else {
		l.proof += fmt.Sprintf(", though its parent %s is running", owner)
	}
	switch {
	case !settled:
		l.doubt = "its " + what + " may be shutting it down: look again"
		return
	case j.unread(l.in):
		l.proof += "; its output is not read either"
	case !known:
		l.doubt = "its parent is running, and may be waiting for a last answer"
		return
	}
	l.confidence = process.Certain
}

// answersElsewhere reports whether the output goes where no MCP client reads: to a file, a terminal or
// /dev/null, as for a one-shot.
func answersElsewhere(in *process.Instance) bool {
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
	return !slices.ContainsFunc(out.Holders, func(pid int) bool { return j.InstanceAt(pid) != in })
}

// below reports whether an instance has a running parent that did not adopt it.
func (j *judgement) below(in *process.Instance) bool {
	return j.Forest.Parent[in.RootNode] != process.None && in.Owner.Kind != process.OwnerNobody
}

// belowShell reports whether the parent is a running shell: `printf ... | mcp-server` in a script.
func (j *judgement) belowShell(in *process.Instance) bool {
	return j.below(in) && process.TerminalOrShell(j.Process(j.Forest.Parent[in.RootNode]))
}

// unasked reports whether a supervisor may keep a process of the instance and could not be asked.
func unasked(in *process.Instance) bool { return in.Unreadable("service") }

// maybeService returns why a supervisor may keep the instance; "" when none does. The control group of a
// service is only a hint, since orphans inherit it; scopes and the units of desktop applications are no
// services (systemd.io/DESKTOP_ENVIRONMENTS).
func (j *judgement) maybeService(in *process.Instance) string {
	leaf := path.Base(in.Root().Cgroup)
	switch {
	case j.Snapshot.Host.Services == nil:
		return "a supervisor may keep it: none could be asked"
	case unasked(in):
		return "a supervisor may keep it, and could not be asked"
	case strings.HasSuffix(leaf, ".service") && !strings.HasPrefix(leaf, "app-") && !strings.HasPrefix(leaf, "user@"):
		return "it is in the control group of " + leaf + ", and may be that service"
	}
	return ""
}

func (j *judgement) orphaned(gone orphans, group []*process.Instance) {
	in, first := group[0], gone[group[0]]
	j.SortByStart(group)
	c := claim{
		confidence: first.confidence, key: first.key(), subjects: group, safe: group, doubt: first.doubt,
		remedy: orphanRemedy(first, len(group)),
	}
	if first.doubt != "" && first.confidence != process.Certain {
		c.severity = Warning
	}
	what := map[process.Role]string{
		process.RoleServer: "server", process.RoleGateway: "gateway", process.RoleClient: "non-interactive client",
	}[in.Role]
	its := format.Plural(len(group), "its", "their")
	story := "still running after " + its + " client exited"
	switch {
	case in.Role == process.RoleClient:
		story = "still running after what started " + format.Plural(len(group), "it", "them") + " exited"
	case j.below(in) && in.OwnedBy == nil:
		story = "can get no more requests, below a running program"
	case j.below(in):
		story = "still running although " + its + " client has closed stdin"
	}
	c.title = fmt.Sprintf("%s: %s %s", in.Name, format.Count(len(group), what), story)
	if j.contained(in) {
		c.remedy, c.instead = j.containerRemedy(group), true
	}
	c.evidence = append(tally(group, func(in *process.Instance) string {
		if in.Owner.Kind != process.OwnerNobody || j.contained(in) {
			return ""
		}
		return j.adoption(in)
	}), tally(group, func(in *process.Instance) string { return gone[in].proof })...)
	if j.Snapshot.Host.Services != nil && in.Role == process.RoleServer {
		c.evidence = append(c.evidence, "no supervisor keeps "+format.Plural(len(group), "it", "any of them"))
	}
	c.evidence = append(c.evidence, j.agesOf(group), j.spinning(group), j.origins(group))
	j.report(c)
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

func orphanRemedy(first *orphanCandidate, n int) Remedy {
	in, it := first.in, format.Plural(n, "it", "them")
	r := Remedy{Summary: "terminate " + it + ", then use a version of " + in.Name + " that exits when its stdin is closed"}
	switch in.Role {
	case process.RoleGateway:
		r.Summary = "terminate the gateway; run it as a service, or from a client that terminates it"
	case process.RoleClient:
		r.Summary = "terminate it if it has no work left; start non-interactive clients from a program that waits for them"
	}
	if l := in.Launchers(); len(l) > 0 {
		r.Steps = append(r.Steps, "configure the server's own program instead of "+format.List(l, 2)+
			", so that the client has one process to terminate")
	}
	if first.doubt != "" {
		r.Steps = append(r.Steps, "check that "+format.Plural(n, "it is", "they are")+" not in use before you terminate "+it)
	}
	return r
}
