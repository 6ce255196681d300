package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"mcpdoctor/scan"
)

// machine is a simulated computer: processes, the pipes between them, and clocks. It behaves as a kernel does: an end
// closes when its last holder has exited, orphans are adopted, PIDs are reused. A test runs it in a bubble of
// testing/synctest, whose clock stands still while the command runs and leaps while it waits.
type machine struct {
	mu sync.Mutex

	// The boot clock counts from 0, also while the machine is suspended (CLOCK_BOOTTIME). All events up to present have
	// happened. It follows the bubble's clock once goLive was called.
	present   time.Duration
	live      bool
	liveSince time.Time     // the bubble's time when goLive was called
	uptime    time.Duration // the boot clock at that time
	suspended time.Duration // how long the machine was suspended since
	clockSet  time.Duration // how far the wall clock was set forward

	due        []event // in order
	eventCount int     // events so far

	tasks   map[int]*task
	init    *task
	next    int // the PID to try first
	maxPID  int // the largest PID
	nextPID int // the PID of the next process, if not 0

	observer observer
	looks    int
	last     *scan.Snapshot // the table of the last look
	host     scan.Host      // the same in every look
	cause    cause          // of what happens now
	signals  []sentSignal
	history  []string

	// forbidden returns why a signal is a mistake; "" if it is none. By default, a process that is needed must not be
	// signalled.
	forbidden    func(*task, string) string
	mistakes     []string // what must not happen
	beforeOpen   func()   // runs once, between the last look and the first handle
	opened       int      // how many handles were opened
	signalsByPID bool     // a fault: signals go to the process that has the PID now
}

// cause is whether a signal of mcpdoctor led to an event.
type cause int

const (
	byItself  cause = iota
	bySignal        // a signal did
	byConsent       // a signal that the user consented to did
)

type event struct {
	at    time.Duration
	n     int
	cause cause
	do    func()
}

// sentSignal is a signal that reached a process.
type sentSignal struct {
	at      time.Duration
	to      *task
	signal  string
	mistake string // why it should not have been sent; "" if it was right
}

// wallAtBoot is the time when the boot clock of every machine is 0.
var wallAtBoot = time.Date(2026, 8, 20, 6, 0, 0, 0, time.UTC)

// newMachine boots a machine.
func newMachine() *machine {
	m := &machine{tasks: map[int]*task{}, next: 1, maxPID: 1 << 22, host: scan.Host{OS: "linux", Name: "bench", MemoryTotalBytes: 16 << 30}}
	m.forbidden = func(to *task, _ string) string { return to.needed() }
	m.observer = observer{uid: 1000, systemd: true, servicesAnswer: true}
	m.init = m.start(nil, "/sbin/init")
	m.next = 300 // the kernel does not reuse smaller ones (RESERVED_PIDS)
	return m
}

// clock is the boot clock.
func (m *machine) clock() time.Duration {
	if !m.live {
		return m.present
	}
	return m.uptime + time.Since(m.liveSince) + m.suspended
}

// wall is the machine's wall clock.
func (m *machine) wall() time.Time { return wallAtBoot.Add(m.clock() + m.clockSet) }

// goLive ends the history: from now on the boot clock follows that of the bubble.
func (m *machine) goLive() {
	m.live, m.liveSince, m.uptime = true, time.Now(), m.present
}

// suspend suspends the machine: the boot clock runs on, timers do not.
func (m *machine) suspend(d time.Duration) { m.suspended += d }

// at schedules an event; if its time has passed, it happens at once.
func (m *machine) at(when time.Duration, do func()) {
	e := event{at: max(when, m.present), n: m.eventCount, cause: m.cause, do: do}
	m.eventCount++
	i, _ := slices.BinarySearchFunc(m.due, e, func(a, b event) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return a.n - b.n
	})
	m.due = slices.Insert(m.due, i, e)
}

// after schedules an event by its delay.
func (m *machine) after(d time.Duration, do func()) { m.at(m.present+d, do) }

// advance runs all events that are due until then.
func (m *machine) advance(until time.Duration) {
	before := m.cause
	for len(m.due) > 0 && m.due[0].at <= until {
		e := m.due[0]
		m.due = m.due[1:]
		m.present, m.cause = max(m.present, e.at), e.cause
		e.do()
	}
	m.present, m.cause = max(m.present, until), before
}

// catchUp runs all events that are due. The machine must be locked.
func (m *machine) catchUp() { m.advance(m.clock()) }

// logf adds to the history, for the message of a failure.
func (m *machine) logf(format string, args ...any) {
	by := ""
	if m.cause != byItself {
		by = " (through a signal)"
	}
	m.history = append(m.history, fmt.Sprintf("%12s  ", m.present.Round(time.Millisecond))+fmt.Sprintf(format, args...)+by)
}

// task is a process.
type task struct {
	m        *machine
	pid      int
	born     time.Duration
	parent   *task // or adopter; nil for the first
	children []*task
	exited   bool

	args      []string
	name      string // the kernel's; that of the program if empty
	uid       int
	tty       string
	pgid, sid int
	cgroup    string
	env       map[string]string
	state     string // S, T, D, Z
	rss       int64
	version   string

	stdin           descriptor
	stdout          descriptor
	pipes           []*pipe // all that it holds an end of
	listens         []string
	busyConnections int           // inbound connections that are never idle
	connections     []*connection // other inbound connections
	unreadable      []string      // what cannot be read

	subreaper     bool
	leavesZombies bool // does not wait for its children

	// How it exits. A delay below 0 means never.
	eofDelay          time.Duration // after the end of its stdin
	termDelay         time.Duration // after SIGTERM
	onTerm            func()        // called on SIGTERM
	forwardsTerm      bool          // forwards SIGTERM to its children
	exitsWithChildren bool          // exits after its last child
	unkillable        bool          // survives SIGKILL
	signalErr         error         // the error of any signal
	termPending       bool          // SIGTERM waits for SIGCONT

	purposes []*purpose
}

// connection is a connection to a process that listens; at is when data was last received.
type connection struct{ since time.Duration }

// descriptor is what stdin or stdout is.
type descriptor struct {
	kind scan.StdinType
	pipe *pipe
	fd   int // where stdin really is if descriptor 0 is /dev/null
}

// pipe is a pipe, or a socket pair used in one direction.
type pipe struct {
	kind             scan.StdinType
	writers, readers []*task
	unread           bool // holds bytes that were not read
	inTransit        bool // a writing end is being passed to another process (SCM_RIGHTS)
}

// purpose is why processes run. As long as it is needed, none of them may be terminated.
type purpose struct {
	what     string
	over     bool
	neededBy *task // nil for a person or a remote client
}

func (u *purpose) needed() bool {
	return !u.over && (u.neededBy == nil || !u.neededBy.exited && u.neededBy.needed() != "")
}

// needed returns what a process is needed for; "" for nothing. A process without a purpose is not an MCP process, and
// needed.
func (p *task) needed() string {
	if len(p.purposes) == 0 {
		return "it has nothing to do with MCP"
	}
	for _, u := range p.purposes {
		if u.needed() {
			return u.what
		}
	}
	return ""
}

func (p *task) ticks() int64 { return int64(p.born/(10*time.Millisecond)) + 1 }

func (p *task) String() string { return fmt.Sprintf("%d (%s)", p.pid, commandWords(p.args)) }

// start starts a process, which inherits what a fork does: user, terminal, session, control group, environment,
// and descriptors 0 and 1.
func (m *machine) start(parent *task, line string) *task {
	p := &task{
		m: m, pid: m.freePID(), born: m.present, parent: parent, args: lineWords(line),
		state: "S", tty: "-", rss: 40 << 20, eofDelay: -1, cgroup: "/init.scope",
	}
	p.pgid, p.sid = p.pid, p.pid
	p.stdin.kind, p.stdout.kind = scan.StdinNull, scan.StdinNull
	if parent != nil {
		p.uid, p.tty, p.pgid, p.sid, p.cgroup, p.env = parent.uid, parent.tty, parent.pgid, parent.sid, parent.cgroup, parent.env
		p.setStdin(parent.stdin)
		p.setStdout(parent.stdout)
		parent.children = append(parent.children, p)
	}
	m.tasks[p.pid] = p
	m.logf("%d starts below %d: %s", p.pid, p.ppid(), line)
	return p
}

func (p *task) ppid() int {
	if p.parent == nil {
		return 0
	}
	return p.parent.pid
}

// freePID returns the next free PID, as the kernel does: upwards, and from the beginning again after the largest.
func (m *machine) freePID() int {
	if pid := m.nextPID; pid != 0 {
		m.nextPID = 0
		return pid
	}
	for {
		pid := m.next
		if m.next++; m.next > m.maxPID {
			m.next = 300
		}
		if m.tasks[pid] == nil {
			return pid
		}
	}
}

// setsid makes p the leader of a new session (setsid(2)).
func (p *task) setsid() { p.pgid, p.sid, p.tty = p.pid, p.pid, "-" }

// setStdin replaces stdin, setStdout stdout.
func (p *task) setStdin(in descriptor) {
	p.closeDescriptor(&p.stdin)
	p.stdin = in
	if in.pipe != nil {
		in.pipe.readers = append(in.pipe.readers, p)
		p.pipes = append(p.pipes, in.pipe)
	}
}

func (p *task) setStdout(out descriptor) {
	p.closeDescriptor(&p.stdout)
	p.stdout = out
	if out.pipe != nil {
		out.pipe.writers = append(out.pipe.writers, p)
		p.pipes = append(p.pipes, out.pipe)
	}
}

// addWriter gives p another descriptor for the writing end of a pipe, addReader one for the reading end.
func (p *task) addWriter(w *pipe) {
	w.writers = append(w.writers, p)
	p.pipes = append(p.pipes, w)
}

func (p *task) addReader(w *pipe) {
	w.readers = append(w.readers, p)
	p.pipes = append(p.pipes, w)
}

// closeDescriptor closes stdin or stdout.
func (p *task) closeDescriptor(end *descriptor) {
	if w := end.pipe; w != nil {
		*end = descriptor{kind: scan.StdinNull}
		p.closePipe(w)
	}
}

// closePipe closes all of p's ends of a pipe.
func (p *task) closePipe(w *pipe) {
	is := func(q *task) bool { return q == p }
	wrote := slices.Contains(w.writers, p)
	w.writers, w.readers = slices.DeleteFunc(w.writers, is), slices.DeleteFunc(w.readers, is)
	p.pipes = slices.DeleteFunc(p.pipes, func(x *pipe) bool { return x == w })
	if wrote && len(w.writers) == 0 && !w.inTransit {
		w.hangUp(p.m)
	}
}

// hangUp gives the readers end-of-file.
func (w *pipe) hangUp(m *machine) {
	for _, r := range w.readers {
		if r.stdin.pipe == w && r.eofDelay >= 0 {
			m.after(r.eofDelay, func() { m.exit(r, "at the end of its stdin") })
		}
	}
}

// hasWriter reports whether a process can still write to the pipe.
func (w *pipe) hasWriter() bool { return len(w.writers) > 0 || w.inTransit }

// exit makes a process exit.
func (m *machine) exit(p *task, why string) {
	if p.exited || p == m.init {
		return
	}
	m.logf("%d ends: %s", p.pid, why)
	if m.cause == bySignal {
		if need := p.needed(); need != "" {
			m.mistakes = append(m.mistakes, fmt.Sprintf("%v ended because another was signalled, though it is needed: %s", p, need))
		}
	}
	p.exited = true
	for len(p.pipes) > 0 {
		p.closePipe(p.pipes[len(p.pipes)-1])
	}
	heir := m.adopter(p)
	for _, c := range p.children {
		c.parent = heir
		if c.state == "Z" {
			delete(m.tasks, c.pid)
			continue
		}
		heir.children = append(heir.children, c)
	}
	p.children, p.state = nil, "Z"
	up := p.parent
	if up.leavesZombies && !up.exited {
		return
	}
	delete(m.tasks, p.pid)
	up.children = slices.DeleteFunc(up.children, func(c *task) bool { return c == p })
	if up.exitsWithChildren && !slices.ContainsFunc(up.children, func(c *task) bool { return !c.exited }) {
		m.after(20*time.Millisecond, func() { m.exit(up, "its last child has ended") })
	}
}

// adopter is the process that adopts the children of p: the nearest subreaper above it, or init.
func (m *machine) adopter(p *task) *task {
	for up := p.parent; up != nil; up = up.parent {
		if up.subreaper && !up.exited {
			return up
		}
	}
	return m.init
}
