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
	began   time.Time     // the bubble's time when live was called
	uptime  time.Duration // the boot clock at that time
	slept   time.Duration // for how long the machine has been suspended since
	jumped  time.Duration // how far the wall clock was set forward, since ever

	due   []event // in order
	named int     // events so far

	tasks map[int]*task
	init  *task
	next  int // the PID to begin with when one is looked for
	most  int // the largest PID
	taken int // a PID that the next process is given; 0 for none

	eyes    eyes
	looks   int
	last    *scan.Snapshot // the table of the last look
	host    scan.Host      // what is the same in every look
	blame   blame          // for what happens now
	signals []sent
	history []string

	// forbids says why a signal is a mistake; "" when it is none. The usual one forbids to signal who is
	// needed.
	forbids  func(*task, string) string
	mistakes []string // what was done that must not be
	atHold   func()   // what happens between the last look and the first handle, once
	holds    int      // handles that were asked for
	careless bool     // a signal goes to who has the PID now: how a test sees that it can fail
}

// blame tells whether what happens is the doing of who is tested.
type blame int

const (
	nobody    blame = iota
	reaper          // a signal led to it
	consented       // a signal to which the user gave his consent led to it
)

type event struct {
	at    time.Duration
	n     int
	blame blame
	do    func()
}

// sent is a signal that reached a process.
type sent struct {
	at     time.Duration
	to     *task
	signal string
	wrong  string // why it should not have been sent
}

// wallAtBoot is the time of day when the boot clock of every machine is 0.
var wallAtBoot = time.Date(2026, 8, 20, 6, 0, 0, 0, time.UTC)

// newMachine boots a machine.
func newMachine() *machine {
	m := &machine{tasks: map[int]*task{}, next: 1, most: 1 << 22, host: scan.Host{OS: "linux", Name: "bench", MemoryTotalBytes: 16 << 30}}
	m.forbids = func(to *task, _ string) string { return to.needed() }
	m.eyes = eyes{uid: 1000, systemd: true, answers: true}
	m.init = m.start(nil, "/sbin/init")
	m.next = 300 // the kernel does not give smaller ones again (RESERVED_PIDS)
	return m
}

// clock is the boot clock.
func (m *machine) clock() time.Duration {
	if !m.live {
		return m.present
	}
	return m.uptime + time.Since(m.began) + m.slept
}

// wall is the time of day, as this machine has it.
func (m *machine) wall() time.Time { return wallAtBoot.Add(m.clock() + m.jumped) }

// run lets the history end: from now on the boot clock follows that of the bubble.
func (m *machine) run() {
	m.live, m.began, m.uptime = true, time.Now(), m.present
}

// suspend lets the machine sleep: the boot clock runs on, while no timer does.
func (m *machine) suspend(d time.Duration) { m.slept += d }

// at lets something happen when the boot clock has got there; what is past happens at once.
func (m *machine) at(when time.Duration, do func()) {
	e := event{at: max(when, m.present), n: m.named, blame: m.blame, do: do}
	m.named++
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
func (m *machine) play(until time.Duration) {
	before := m.blame
	for len(m.due) > 0 && m.due[0].at <= until {
		e := m.due[0]
		m.due = m.due[1:]
		m.present, m.blame = max(m.present, e.at), e.blame
		e.do()
	}
	m.present, m.blame = max(m.present, until), before
}

// catchUp lets everything happen until now. The machine must be locked.
func (m *machine) catchUp() { m.play(m.clock()) }

// told notes what happens, for who has to understand a failure.
func (m *machine) told(format string, args ...any) {
	by := ""
	if m.blame != nobody {
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
	ended    bool

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

	stdin   input
	stdout  input
	wires   []*wire // all of which it holds an end
	listens []string
	inbound int      // connections to it that are always at work
	asked   []*asked // connections to it, with when each was last written to
	veiled  []string // what nobody can read of it

	subreaper bool
	neglects  bool // does not wait for its children, so that they stay as zombies

	// How it ends. A time below 0 means never.
	eof     time.Duration // after the end of its stdin
	term    time.Duration // after SIGTERM
	atTerm  func()        // what it does on SIGTERM besides
	passes  bool          // passes SIGTERM on to its children
	follows bool          // ends when its last child has
	stuck   bool          // SIGKILL does not end it
	refuses error         // what the system says to who wants to signal it
	pending bool          // a SIGTERM waits until it goes on

	purposes []*purpose
}

// asked is a connection to a process that listens.
type asked struct{ at time.Duration }

// input is what is at a descriptor.
type input struct {
	kind scan.StdinType
	wire *wire
	fd   int // where the wire is when descriptor 0 is /dev/null
}

// wire is a pipe, or a pair of sockets of which one end is used for writing.
type wire struct {
	kind             scan.StdinType
	writers, readers []*task
	left             bool // bytes that were not read
	flying           bool // an end is on its way between two processes
}

// purpose is why processes run. As long as it is needed, none of them may be ended.
type purpose struct {
	what string
	over bool
	of   *task // who needs it; nil for a person, or the world outside
}

func (u *purpose) needed() bool {
	return !u.over && (u.of == nil || !u.of.ended && u.of.needed() != "")
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
	p := &task{m: m, pid: m.freePID(), born: m.present, parent: parent, args: lineWords(line), state: "S", tty: "-", rss: 40 << 20, eof: -1, cgroup: "/init.scope"}
	p.pgid, p.sid = p.pid, p.pid
	p.stdin.kind, p.stdout.kind = scan.StdinNull, scan.StdinNull
	if parent != nil {
		p.uid, p.tty, p.pgid, p.sid, p.cgroup, p.env = parent.uid, parent.tty, parent.pgid, parent.sid, parent.cgroup, parent.env
		p.read(parent.stdin)
		p.write(parent.stdout)
		parent.children = append(parent.children, p)
	}
	m.tasks[p.pid] = p
	m.told("%d starts below %d: %s", p.pid, p.ppid(), line)
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
	if pid := m.taken; pid != 0 {
		m.taken = 0
		return pid
	}
	for {
		pid := m.next
		if m.next++; m.next > m.most {
			m.next = 300
		}
		if m.tasks[pid] == nil {
			return pid
		}
	}
}

// own makes it the leader of a session of its own (setsid(2)).
func (p *task) own() { p.pgid, p.sid, p.tty = p.pid, p.pid, "-" }

// read puts something at its stdin; write at its stdout.
func (p *task) read(in input) {
	p.drop(&p.stdin)
	p.stdin = in
	if in.wire != nil {
		in.wire.readers = append(in.wire.readers, p)
		p.wires = append(p.wires, in.wire)
	}
}

func (p *task) write(out input) {
	p.drop(&p.stdout)
	p.stdout = out
	if out.wire != nil {
		out.wire.writers = append(out.wire.writers, p)
		p.wires = append(p.wires, out.wire)
	}
}

// hold gives it the writing end of a wire, at a descriptor of its own; hear the reading end.
func (p *task) hold(w *wire) {
	w.writers = append(w.writers, p)
	p.wires = append(p.wires, w)
}

func (p *task) hear(w *wire) {
	w.readers = append(w.readers, p)
	p.wires = append(p.wires, w)
}

// drop closes what it has at stdin or stdout.
func (p *task) drop(end *input) {
	if w := end.wire; w != nil {
		*end = input{kind: scan.StdinNull}
		p.let(w)
	}
}

// let closes all its ends of a wire.
func (p *task) let(w *wire) {
	is := func(q *task) bool { return q == p }
	wrote := slices.Contains(w.writers, p)
	w.writers, w.readers = slices.DeleteFunc(w.writers, is), slices.DeleteFunc(w.readers, is)
	p.wires = slices.DeleteFunc(p.wires, func(x *wire) bool { return x == w })
	if wrote && len(w.writers) == 0 && !w.flying {
		w.hangUp(p.m)
	}
}

// hangUp tells the readers that nothing more will come.
func (w *wire) hangUp(m *machine) {
	for _, r := range w.readers {
		if r.stdin.wire == w && r.eof >= 0 {
			m.after(r.eof, func() { m.end(r, "at the end of its stdin") })
		}
	}
}

// open tells that somebody can still write into it.
func (w *wire) open() bool { return len(w.writers) > 0 || w.flying }

// end lets a process end.
func (m *machine) end(p *task, why string) {
	if p.ended || p == m.init {
		return
	}
	m.told("%d ends: %s", p.pid, why)
	if m.blame == reaper {
		if need := p.needed(); need != "" {
			m.mistakes = append(m.mistakes, fmt.Sprintf("%v ended because another was signalled, though it is needed: %s", p, need))
		}
	}
	p.ended = true
	for len(p.wires) > 0 {
		p.let(p.wires[len(p.wires)-1])
	}
	heir := m.heir(p)
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
	if up.neglects && !up.ended {
		return
	}
	delete(m.tasks, p.pid)
	up.children = slices.DeleteFunc(up.children, func(c *task) bool { return c == p })
	if up.follows && !slices.ContainsFunc(up.children, func(c *task) bool { return !c.ended }) {
		m.after(20*time.Millisecond, func() { m.end(up, "its last child has ended") })
	}
}

// heir is who adopts the children of p: the nearest ancestor that asked for it, or the first process.
func (m *machine) heir(p *task) *task {
	for up := p.parent; up != nil; up = up.parent {
		if up.subreaper && !up.ended {
			return up
		}
	}
	return m.init
}
