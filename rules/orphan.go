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
	Title:    "the client is gone and the server stayed",
	Severity: Error,
	Reap:     "safe when proved; on request when a listening port, a possible service or an unreadable stdin leaves doubt",
	Why: "A stdio server should end when its client closes its stdin. One that keeps a timer, a socket or a thread does not notice, " +
		"and a launcher such as npx, uv or sh may swallow the signal that was meant for it. When the client is killed or crashes, " +
		"such a server is adopted by PID 1 or another process that adopts, and stays until the machine is restarted. Nobody can ever use it again.",
	Evidence: []string{
		"its topmost launcher was adopted (PID 1, systemd --user, WSL's init, tini ...), or on Windows names a parent that is dead or younger than itself",
		"nobody holds the other end of its stdin: the strongest evidence",
		"nobody who is alive reads what it writes",
		"no service manager keeps it",
		"it does not listen for connections",
	},
	Wrong: []string{
		"a daemon that was started from a script which has ended: it listens, or its stdin is /dev/null, and is then left alone or given up only on request",
		"a server that is shutting down: a client that closes regularly allows it about 4 seconds, so look twice",
		"a server that still runs something for somebody who is gone (a build, a development server): it is given up only on request then",
		"a one-shot (printf ... | server) that still works on its answer: when its parent lives, somebody reads its output, the output goes to a file, or requests are left, it is given up only on request",
		"a server that was started with & where the system does not show its stdin (macOS, Windows, FreeBSD): there that it was adopted and that no service manager keeps it is all that can be known",
		"a program that is named like a server and works on a connection that it has opened itself, or opens a port later, though its stdin is dead",
		"a server whose stdin is on its way between two processes (SCM_RIGHTS) while an orphan holds it too: this cannot be seen",
	},
	Remedy: []string{
		RemedyNode,
		RemedyPython,
		RemedyGo,
		RemedySignal,
		"client: close the session, wait, then terminate the whole process group, then kill it",
		"to end it: mcpdoctor reap and not kill, since a PID may soon name another process, which reap looks at and kill does not",
		RemedyLauncher,
		"before it happens: mcpdoctor check -- COMMAND starts a server, ends it as clients do, and shows what stays and in which layer",
	},
	Code:  watchers,
	check: findOrphans,
})

// The remedies that are also those of a server that [diagnose.Stdio] found wanting.
const (
	RemedyNode     = "server, Node: at the 'end' and the 'close' of process.stdin, call process.exit(0) when the answers are written; unref() timers that must not keep it alive"
	RemedyPython   = "server, Python: leave the loop when sys.stdin is at its end; make background threads daemon threads"
	RemedyGo       = "server, Go: return from main when reading os.Stdin gives io.EOF"
	RemedySignal   = "server: end at SIGTERM too; whoever handles the signal has to end the process"
	RemedyLauncher = "launcher: configure the interpreter and the script (node /path/server.js) instead of npx, uvx or sh -c, so that there is one process to end"
)

// settle is how long a stdin that was found dead may belong to a server that is only shutting
// down: SDK clients close stdin, wait 2 s, terminate, wait 2 s and kill; some servers take 15 s.
const settle = 20 * time.Second

// lost is what is known of one left-behind instance.
type lost struct {
	in         *process.Instance
	confidence process.Confidence
	safe       bool
	doubt      string // why it is not safe
	proof      string
}

func findOrphans(j *judgement) []Finding {
	gone := map[*process.Instance]lost{}
	for _, in := range j.Instances {
		if l, ok := j.judgeOrphan(in); ok {
			gone[in] = l
		}
	}
	j.spareRead(gone)
	j.followHolders(gone)
	j.takeAlong(gone)
	j.findContainers(gone)

	groups := map[string][]lost{}
	for _, in := range j.take(j.ordered(gone)) {
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

// ordered returns the lost instances by their PIDs.
func (j *judgement) ordered(gone map[*process.Instance]lost) []*process.Instance {
	var out []*process.Instance
	for _, in := range j.Instances {
		if _, ok := gone[in]; ok {
			out = append(out, in)
		}
	}
	return out
}

// judgeOrphan decides on one instance by itself.
func (j *judgement) judgeOrphan(in *process.Instance) (lost, bool) {
	if in.Service != nil || in.Owner.Kind == process.OwnerService || in.Role == process.RoleHelper {
		return lost{}, false
	}
	if in.Role == process.RoleClient && !in.NonInteractive() {
		return lost{}, false // a client that a person uses is never a leak
	}
	if in.Root().PID == 1 || in.Role != process.RoleServer && in.Owner.Kind != process.OwnerNobody {
		return lost{}, false // a gateway or client is left behind only when it was adopted
	}
	if j.contained(in) {
		return lost{}, false // judged by findContainers
	}
	w, _ := in.Stdin()
	listen := in.Listen()
	adopted := in.Owner.Kind == process.OwnerNobody
	l := lost{in: in}
	switch {
	case w == process.StdinClosed:
		return j.judgeDead(in, listen)
	case in.Role != process.RoleServer || !adopted:
		return lost{}, false // without a dead stdin, only an adopted server is suspected
	case w == process.StdinOpen, w == process.StdinNoPipe:
		return lost{}, false // somebody talks to it, or it was started as a daemon
	case j.sharedDaemon(in, listen):
		return lost{}, false
	case w == process.StdinUnread:
		l.confidence, l.proof = process.Likely, "nobody holds the other end of its stdin"
		l.doubt = "it has requests left to read, and may be at work on them"
	case w == process.StdinMaybeClosed:
		l.confidence, l.proof = process.Likely, "a pipe it was given as its wire has nobody at the other end"
		l.doubt = "its stdin was moved to another descriptor, which leaves a doubt"
	case w == process.StdinUnreadable && j.OtherUser(in.Root()):
		return lost{}, false // nothing can be seen of another user's processes, and nothing be done
	case w == process.StdinUnreadable:
		l.confidence, l.doubt = process.Possible, "its stdin could not be read, so that somebody may still hold it"
	case len(listen) > 0 || process.SpeaksHTTP(in.Recognition.Command):
		// A server that listens needs no client above it. Only beside a service of the very same
		// command is it known to have no business here.
		twin := j.supervisedTwin(in)
		if twin == nil {
			return lost{}, false
		}
		l.confidence, l.doubt = process.Possible, fmt.Sprintf("it listens like a daemon, but %s keeps pid %d with the same command and not this one", twin.Service.Manager, twin.Service.MainPID)
	case in.Unreadable("listen"):
		l.confidence, l.doubt = process.Possible, mayListenUnseen
	case j.maybeService(in) != "":
		l.confidence, l.doubt = process.Possible, j.maybeService(in)
	case !j.ripe(in):
		l.confidence, l.doubt = process.Likely, tooYoung
	case in.Root().TTY != "" && in.Root().TTY != "-":
		l.confidence, l.doubt = process.Possible, "it has a terminal, at which somebody may have started it"
	default:
		l.confidence, l.safe = process.Likely, true
	}
	j.weigh(&l)
	return l, true
}

// weigh lowers what is said of an instance by how surely it was recognised: what is only possibly a
// server is never given up unasked. A name of its own that speaks of MCP is enough when the stdin is
// dead, as that of a server is and that of a program which takes no requests is not.
func (j *judgement) weigh(l *lost) {
	if l.in.Recognition.Confidence != process.Possible || l.in.Recognition.By == process.ByConvention && l.proof != "" && !l.in.Recognition.Command.NamedByFolder {
		return
	}
	l.confidence, l.safe = process.Possible, false
	if l.doubt == "" {
		l.doubt = "it is not sure that it is an MCP server"
	}
}

// tooYoung is the doubt about what may be ending by itself: see settle.
const tooYoung = "it is so young, or of an age that cannot be seen, that it may just be ending"

// ripe tells that an instance is old enough to have ended if it were to.
func (j *judgement) ripe(in *process.Instance) bool {
	age, known := in.Age()
	return known && age >= settle
}

// judgeDead decides on an instance at whose stdin nobody is any more.
func (j *judgement) judgeDead(in *process.Instance, listen []string) (lost, bool) {
	l := lost{in: in, confidence: process.Certain, proof: "nobody holds the other end of its stdin"}
	inbound, _ := in.Inbound()
	settled := j.Settled[in.Root().ID()]
	switch {
	case j.sharedDaemon(in, listen) || inbound > 0:
		return lost{}, false
	case len(listen) > 0:
		l.confidence, l.doubt = process.Likely, "it listens on "+format.List(listen, 2)+": a daemon perhaps"
	case j.mayListen(in):
		l.confidence, l.doubt = process.Possible, mayListenUnseen
	case in.Role == process.RoleClient:
		l.confidence, l.doubt = process.Likely, "it is a client, which may be at work without a terminal"
	case in.Owner.Kind == process.OwnerTerminal || j.belowShell(in):
		l.confidence, l.doubt = process.Possible, "a shell started it and may only wait for its last answer"
	case j.answersElsewhere(in) && j.below(in):
		return lost{}, false // a job of somebody who is there
	case j.answersElsewhere(in):
		l.confidence, l.doubt = process.Likely, "its output goes to a file, a terminal or nowhere, as when somebody asked once and waits until it is done"
	case j.below(in):
		j.judgeBelow(&l, settled)
	case in.Owner.Kind != process.OwnerNobody:
		l.confidence, l.doubt = process.Likely, "its parent cannot be seen from here, and may wait for an answer"
	case !j.ripe(in) && !settled:
		l.doubt = tooYoung
	}
	if l.doubt == "" && j.unasked(in) {
		l.doubt = "a service manager may keep it and could not be asked"
	}
	if job := j.job(in); l.doubt == "" && job != process.None {
		l.doubt = fmt.Sprintf("it has started %s (pid %d), which is at work and may need it", process.BaseName(j.Process(job)), j.Process(job).PID)
	}
	l.safe = l.doubt == ""
	j.weigh(&l)
	return l, true
}

// job returns a process that nobody knows and that a server has started in the course of its work, or
// none. What it starts in its first minute are rather its own parts.
func (j *judgement) job(in *process.Instance) int32 {
	begun := in.Main().Started
	for _, m := range in.Members {
		if started := j.Process(m).Started; j.Recognitions[m] == nil && !begun.IsZero() && started.Sub(begun) > time.Minute {
			return m
		}
	}
	return process.None
}

const mayListenUnseen = "it may listen for connections, or be about to"

// mayListen tells that an instance was told to listen, if only later, or that nobody could look
// whether it does. Who serves over the network needs no stdin, so that a dead one proves nothing.
func (j *judgement) mayListen(in *process.Instance) bool {
	return process.SpeaksHTTP(in.Recognition.Command) || in.Unreadable("listen") || in.Role == process.RoleGateway && in.Main().Listen == nil
}

// takeAlong adds what a lost gateway or server has below it: nobody can reach that either.
func (j *judgement) takeAlong(gone map[*process.Instance]lost) {
	for grown := true; grown; {
		grown = false
		for _, in := range j.Instances {
			if _, ok := gone[in]; ok || in.OwnedBy == nil || in.Role != process.RoleServer || in.OwnedBy.Role == process.RoleClient || in.Service != nil || len(in.Listen()) > 0 {
				continue
			}
			if over, ok := gone[in.OwnedBy]; ok {
				l := lost{in: in, confidence: over.confidence, safe: over.safe, doubt: over.doubt}
				l.proof = fmt.Sprintf("it belongs to %s (pid %d), which is an orphan", in.OwnedBy.Name, in.OwnedBy.Main().PID)
				j.weigh(&l)
				gone[in], grown = l, true
			}
		}
	}
}

// sharedDaemon tells that an instance listens for thin proxies of its own program that are in use:
// some servers run once per project and are reached over a socket.
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

// supervisedTwin returns an instance of the same command that a service manager keeps.
func (j *judgement) supervisedTwin(in *process.Instance) *process.Instance {
	for _, other := range j.Copies[in.Identity] {
		if other != in && other.Service != nil {
			return other
		}
	}
	return nil
}

// judgeBelow decides on an instance with a dead stdin whose parent lives and did not adopt it. A
// client that is known for one talks to its servers until it ends them. Any other program may have
// asked once, closed the stdin as it should, and wait for the answer.
func (j *judgement) judgeBelow(l *lost, settled bool) {
	in := l.in
	known := in.OwnedBy != nil && in.OwnedBy.Recognition.By != process.ByRelation
	what := "parent"
	if known {
		what = string(in.Owner.Kind)
		l.proof += ", and its " + what + " " + in.Owner.String() + " does not know that it still runs"
	} else {
		l.proof += ", though its parent " + in.Owner.String() + " is running"
	}
	switch {
	case !settled:
		l.confidence, l.doubt = process.Likely, "its "+what+" may be shutting it down at this moment: look again"
	case j.unread(in):
		l.proof += "; nobody reads its answers either"
	case !known:
		l.confidence, l.doubt = process.Likely, "its "+what+" is running and may wait for a last answer"
	}
}

// answersElsewhere tells that what the server writes goes where no MCP client reads: to a file, a
// terminal, or nowhere, as when somebody only wants what a request does.
func (j *judgement) answersElsewhere(in *process.Instance) bool {
	out := in.Main().Stdout
	return out != nil && (out.Type == scan.StdinFile || out.Type == scan.StdinTTY || out.Type == scan.StdinNull)
}

// unread tells that nobody is there to read what the server writes, so that nobody waits for it.
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

// below tells that an instance has a living parent that did not adopt it, as far as can be known.
func (j *judgement) below(in *process.Instance) bool {
	return j.Forest.Parent[in.RootNode] != process.None && in.Owner.Kind != process.OwnerNobody
}

// belowShell tells that the parent is a living shell: `printf ... | mcp-server` in a script.
func (j *judgement) belowShell(in *process.Instance) bool {
	up := j.Forest.Parent[in.RootNode]
	return up != process.None && in.Owner.Kind != process.OwnerNobody && process.TerminalOrShell(j.Process(up))
}

// unasked tells that a service manager may keep a process of the instance and was not to be asked.
func (j *judgement) unasked(in *process.Instance) bool { return in.Unreadable("service") }

// maybeService says why it is not known that no service manager keeps the instance; "" when it is.
// Lying in the control group of a service is only a hint, since orphans inherit it; scopes, and the
// units of desktop applications, are no services (systemd.io/DESKTOP_ENVIRONMENTS).
func (j *judgement) maybeService(in *process.Instance) string {
	leaf := path.Base(in.Root().Cgroup)
	switch {
	case j.Snapshot.Host.Services == nil:
		return "no service manager could be asked whether it keeps this process"
	case j.unasked(in):
		return "a service manager may keep it and could not be asked"
	case strings.HasSuffix(leaf, ".service") && !strings.HasPrefix(leaf, "app-") && !strings.HasPrefix(leaf, "user@"):
		return "it is in the control group of the service " + leaf + ", which may have started it"
	}
	return ""
}

func (j *judgement) orphanFinding(key string, group []lost) Finding {
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
	what := map[process.Role]string{process.RoleServer: "server", process.RoleGateway: "gateway", process.RoleClient: "headless client"}[first.in.Role]
	c.title = fmt.Sprintf("%s: %s %s after %s client was gone", first.in.Name, format.Count(len(group), what), "stayed", format.Plural(len(group), "its", "their"))
	switch {
	case first.in.Role == process.RoleClient:
		c.title = fmt.Sprintf("%s: %s stayed after what started %s was gone", first.in.Name, format.Count(len(group), what), format.Plural(len(group), "it", "them"))
	case j.below(first.in) && first.in.OwnedBy == nil:
		c.title = fmt.Sprintf("%s: %s can get no requests any more, below a program that is running", first.in.Name, format.Count(len(group), what))
	case j.below(first.in):
		c.title = fmt.Sprintf("%s: %s stayed though %s client has closed the connection", first.in.Name, format.Count(len(group), what), format.Plural(len(group), "its", "their"))
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

func (j *judgement) orphanEvidence(group []lost, subjects []*process.Instance) []string {
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
		out = append(out, "no service manager keeps "+format.Plural(len(group), "it", "any of them"))
	}
	out = append(out, j.agesOf(subjects)...)
	out = append(out, j.spinning(subjects)...)
	if from := j.origins(subjects); from != "" {
		out = append(out, from)
	}
	for _, d := range slices.Sorted(maps.Keys(doubts)) {
		out = append(out, "not ended unasked: "+d)
	}
	return out
}

// adoption says what became of the parent. It is a sentence without its subject, so that it can be
// said of one and of many.
func (j *judgement) adoption(in *process.Instance) string {
	p := in.Root()
	launcher := ""
	if rec := j.Recognitions[in.RootNode]; rec.RoleOrNone() == process.RoleLauncher && len(in.Members) > 1 {
		launcher = "the launcher " + launcherName(rec) + " "
	}
	switch j.Forest.ParentStates[in.RootNode] {
	case process.ParentMissing:
		return fmt.Sprintf("%snames a parent (pid %d) that no longer exists", launcher, p.PPID)
	case process.ParentReused:
		return fmt.Sprintf("%snames a parent (pid %d) that is younger than itself, so its own is dead", launcher, p.PPID)
	}
	return fmt.Sprintf("%swas adopted by %s: no client is above it", launcher, in.Owner.String())
}

func launcherName(rec *process.Recognition) string {
	if l := rec.Command.Launchers; len(l) > 0 {
		return l[0]
	}
	return rec.Name
}

func (j *judgement) orphanRemedy(first lost, subjects []*process.Instance) Remedy {
	in := first.in
	r := Remedy{Summary: "end " + format.Plural(len(subjects), "it", "them") + ", then use a version of " + in.Name + " that ends when its stdin closes"}
	if l := in.Launchers(); len(l) > 0 {
		r.Steps = append(r.Steps, fmt.Sprintf("configure the server's own program instead of %s, so that the client has one process to end", format.List(l, 2)))
	}
	switch {
	case in.Role == process.RoleGateway:
		r.Summary = "end the gateway; start it as a service, or from a client that ends it"
	case in.Role == process.RoleClient:
		r.Summary = "end it if it has no work left; start headless clients from something that waits for them"
	case j.contained(in):
		return j.containerRemedy(subjects)
	}
	if first.safe {
		r.Commands = append(r.Commands, j.reapLine(subjects, false))
	} else {
		r.Steps = append(r.Steps, "make sure that nobody uses "+format.Plural(len(subjects), "it", "them")+" before you end "+format.Plural(len(subjects), "it", "them"))
		r.Commands = append(r.Commands, j.reapLine(subjects, true))
	}
	r.Commands = append(r.Commands, "mcpdoctor explain orphan")
	return r
}
