package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"mcpdoctor/scan"
)

// machine is a computer that exists in a test only: processes, the wires between them, and clocks. What
// happens on it is what a kernel would let happen: an end closes when its last holder has ended, the
// children of the dead are adopted, PIDs are used again. A test runs it in a bubble of testing/synctest,
// whose clock stands still while the command works and leaps while it waits.
type machine struct {
	mu sync.Mutex

	// The boot clock counts from 0, also while the machine is suspended (CLOCK_BOOTTIME). It stands at
	// present, up to which all has happened, and follows the bubble's clock once live was called.
	present time.Duration
	live    bool
	liveSince   time.Time     // the bubble's time when live was called
	uptime  time.Duration // the boot clock at that time
	suspended   time.Duration // for how long the machine has been suspended since
	clockSet  time.Duration // how far the wall clock was set forward, since ever

	due   []event // in order
	eventCount int     // events so far

	tasks map[int]*task
	init  *task
	next  int // the PID to begin with when one is looked for
	maxPID  int // the largest PID
	nextPID int // a PID that the next process is given; 0 for none

	observer    observer
	looks   int
	last    *scan.Snapshot // the table of the last look
	host    scan.Host      // what is the same in every look
	cause   cause          // for what happens now
	signals []sentSignal
	history []string

	// forbids says why a signal is a mistake; "" when it is none. The usual one forbids to signal who is
	// needed.
	forbidden  func(*task, string) string
	mistakes []string // what was done that must not be
	beforeOpen   func()   // what happens between the last look and the first handle, once
	opened    int      // handles that were asked for
	signalsByPID bool     // a signal goes to who has the PID now: how a test sees that it can fail
}

// blame tells whether what happens is the doing of who is tested.
type cause int

const (
	byItself    cause = iota
	bySignal          // a signal led to it
	byConsent       // a signal to which the user gave his consent led to it
)

type event struct {
	at    time.Duration
	n     int
	cause cause
	do    func()
}

// sent is a signal that reached a process.
type sentSignal struct {
	at     time.Duration
	to     *task
	signal string
	mistake  string // why it should not have been sent
}

// wallAtBoot is the time of day when the boot clock of every machine is 0.
var wallAtBoot = time.Date(2026, 8, 20, 6, 0, 0, 0, time.UTC)

// newMachine boots a machine.
func newMachine() *machine {
	m := &machine{tasks: map[int]*task{}, next: 1, maxPID: 1 << 22, host: scan.Host{OS: "linux", Name: "bench", MemoryTotalBytes: 16 << 30}}
	m.forbidden = func(to *task, _ string) string { return to.needed() }
	m.observer = observer{uid: 1000, systemd: true, servicesAnswer: true}
	m.init = m.start(nil, "/sbin/init")
	m.next = 300 // the kernel does not give smaller ones again (RESERVED_PIDS)
	return m
}

// clock is the boot clock.
func (m *machine) clock() time.Duration {
	if !m.live {
		return m.present
	}
	return m.uptime + time.Since(m.liveSince) + m.suspended
}

// wall is the time of day, as this machine has it.
func (m *machine) wall() time.Time { return wallAtBoot.Add(m.clock() + m.clockSet) }

// run lets the history end: from now on the boot clock follows that of the bubble.
func (m *machine) goLive() {
	m.live, m.liveSince, m.uptime = true, time.Now(), m.present
}

// suspend lets the machine sleep: the boot clock runs on, while no timer does.
func (m *machine) suspend(d time.Duration) { m.suspended += d }

// at lets something happen when the boot clock has got there; what is past happens at once.
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

// after lets something happen in a while.
func (m *machine) after(d time.Duration, do func()) { m.at(m.present+d, do) }

// play lets everything happen that is due until then.
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

// catchUp lets everything happen until now. The machine must be locked.
func (m *machine) catchUp() { m.advance(m.clock()) }

// told notes what happens, for who has to understand a failure.
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
	parent   *task // the one that started it, or has adopted it; nil for the first
	children []*task
	exited    bool

	args      []string
	name      string // the kernel's; that of the program when empty
	uid       int
	tty       string
	pgid, sid int
	cgroup    string
	env       map[string]string
	state     string // S, T, D, Z
	rss       int64
	version   string

	stdin   descriptor
	stdout  descriptor
	pipes   []*pipe // all of which it holds an end
	listens []string
	busyConnections int      // connections to it that are always at work
	connections   []*connection // connections to it, with when each was last written to
	unreadable  []string // what nobody can read of it

	subreaper bool
	leavesZombies  bool // does not wait for its children, so that they stay as zombies

	// How it ends. A time below 0 means never.
	eofDelay     time.Duration // after the end of its stdin
	termDelay    time.Duration // after SIGTERM
	onTerm  func()        // what it does on SIGTERM besides
	forwardsTerm  bool          // passes SIGTERM on to its children
	exitsWithChildren bool          // ends when its last child has
	unkillable   bool          // SIGKILL does not end it
	signalErr error         // what the system says to who wants to signal it
	termPending bool          // a SIGTERM waits until it goes on

	purposes []*purpose
}

// asked is a connection to a process that listens.
type connection struct{ since time.Duration }

// input is what is at a descriptor.
type descriptor struct {
	kind scan.StdinType
	pipe *pipe
	fd   int // where the wire is when descriptor 0 is /dev/null
}

// wire is a pipe, or a pair of sockets of which one end is used for writing.
type pipe struct {
	kind             scan.StdinType
	writers, readers []*task
	unread             bool // bytes that were not read
	inTransit           bool // an end is on its way between two processes
}

// purpose is why processes run. As long as it is needed, none of them may be ended.
type purpose struct {
	what string
	over bool
	neededBy   *task // who needs it; nil for a person, or the world outside
}

func (u *purpose) needed() bool {
	return !u.over && (u.neededBy == nil || !u.neededBy.exited && u.neededBy.needed() != "")
}

// needed says what a process is needed for; "" for nothing. What has no purpose of MCP is needed for
// something else.
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

// start starts a process, with what a fork hands on: user, terminal, session, control group,
// environment and the descriptors 0 and 1.
func (m *machine) start(parent *task, line string) *task {
	p := &task{m: m, pid: m.freePID(), born: m.present, parent: parent, args: lineWords(line), state: "S", tty: "-", rss: 40 << 20, eofDelay: -1, cgroup: "/init.scope"}
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

// freePID takes the next number that is free, as the kernel does: upwards, and from the beginning when
// the largest is reached.
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

// own makes it the leader of a session of its own (setsid(2)).
func (p *task) setsid() { p.pgid, p.sid, p.tty = p.pid, p.pid, "-" }

// read puts something at its stdin; write at its stdout.
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

// hold gives it the writing end of a wire, at a descriptor of its own; hear the reading end.
func (p *task) addWriter(w *pipe) {
	w.writers = append(w.writers, p)
	p.pipes = append(p.pipes, w)
}

func (p *task) addReader(w *pipe) {
	w.readers = append(w.readers, p)
	p.pipes = append(p.pipes, w)
}

// drop closes what it has at stdin or stdout.
func (p *task) closeDescriptor(end *descriptor) {
	if w := end.pipe; w != nil {
		*end = descriptor{kind: scan.StdinNull}
		p.closePipe(w)
	}
}

// let closes all its ends of a wire.
func (p *task) closePipe(w *pipe) {
	is := func(q *task) bool { return q == p }
	wrote := slices.Contains(w.writers, p)
	w.writers, w.readers = slices.DeleteFunc(w.writers, is), slices.DeleteFunc(w.readers, is)
	p.pipes = slices.DeleteFunc(p.pipes, func(x *pipe) bool { return x == w })
	if wrote && len(w.writers) == 0 && !w.inTransit {
		w.hangUp(p.m)
	}
}

// hangUp tells the readers that nothing more will come.
func (w *pipe) hangUp(m *machine) {
	for _, r := range w.readers {
		if r.stdin.pipe == w && r.eofDelay >= 0 {
			m.after(r.eofDelay, func() { m.exit(r, "at the end of its stdin") })
		}
	}
}

// open tells that somebody can still write into it.
func (w *pipe) hasWriter() bool { return len(w.writers) > 0 || w.inTransit }

// end lets a process end.
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

// heir is who adopts the children of p: the nearest ancestor that asked for it, or the first process.
func (m *machine) adopter(p *task) *task {
	for up := p.parent; up != nil; up = up.parent {
		if up.subreaper && !up.exited {
			return up
		}
	}
	return m.init
}
