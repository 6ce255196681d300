package main

import (
	"fmt"
	"strings"
	"time"

	"mcpdoctor/scan"
	"mcpdoctor/scan/terminate"
)

// taskHandle is a handle on a process of a [machine]. Like a pidfd, it refers to the process and not to its PID.
type taskHandle struct {
	m    *machine
	task *task
}

// openProcess takes the place of [terminate.Open].
func (m *machine) openProcess(id scan.ID) (terminate.Handle, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUp()
	m.opened++
	if do := m.beforeOpen; do != nil {
		m.beforeOpen = nil
		do()
	}
	switch p := m.tasks[id.PID]; {
	case id.Start == 0:
		return nil, terminate.ErrNoStart
	case p == nil, p.exited, p.ticks() != id.Start:
		return nil, terminate.ErrGone
	default:
		return &taskHandle{m, p}, nil
	}
}

func (g *taskHandle) Terminate() error { return g.m.send(g.task, "SIGTERM") }
func (g *taskHandle) Continue() error  { return g.m.send(g.task, "SIGCONT") }
func (g *taskHandle) Kill() error      { return g.m.send(g.task, "SIGKILL") }
func (g *taskHandle) Close()           {}

func (g *taskHandle) Exited() bool {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	g.m.catchUp()
	return g.task.exited && !g.m.signalsByPID
}

// send sends a signal of mcpdoctor, and records it as a mistake if it is one.
func (m *machine) send(p *task, signal string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUp()
	if now := m.tasks[p.pid]; m.signalsByPID && now != nil {
		p = now
	}
	switch {
	case p.exited:
		return terminate.ErrGone
	case p.signalErr != nil:
		return p.signalErr
	}
	wrong := m.forbidden(p, signal)
	m.logf("%s reaches %v", signal, p)
	m.signals = append(m.signals, sentSignal{m.present, p, signal, wrong})
	if wrong != "" {
		m.mistakes = append(m.mistakes, fmt.Sprintf("%s was sent to %v: %s", signal, p, wrong))
	}
	if m.cause = bySignal; p.needed() != "" {
		m.cause = byConsent
	}
	m.deliver(p, signal)
	m.cause = byItself
	return nil
}

// deliver does what a signal does to a process.
func (m *machine) deliver(p *task, signal string) {
	switch {
	case p.exited:
	case signal == "SIGKILL":
		if !p.unkillable {
			m.after(time.Millisecond, func() { m.exit(p, "killed") })
		}
	case signal == "SIGCONT":
		if p.state == "T" {
			p.state = "S"
		}
		if p.termPending {
			p.termPending = false
			m.deliver(p, "SIGTERM")
		}
	case p.state == "T":
		p.termPending = true
	default:
		if p.onTerm != nil {
			p.onTerm()
		}
		if p.forwardsTerm {
			for _, c := range p.children {
				m.deliver(c, signal)
			}
		}
		if p.termDelay >= 0 {
			m.after(p.termDelay, func() { m.exit(p, "terminated") })
		}
	}
}

// lineWords splits a line at spaces, outside of single quotes. A line that begins with "=" is one word: a title that
// the program gave itself.
func lineWords(line string) []string {
	if title, ok := strings.CutPrefix(line, "="); ok {
		return []string{title}
	}
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

func commandWords(args []string) string { return strings.Join(args, " ") }

// table lists the machine's processes, for the message of a failure.
func (m *machine) table() string {
	var b strings.Builder
	for _, p := range m.sorted() {
		in := string(p.stdin.kind)
		if w := p.stdin.pipe; w != nil {
			in = fmt.Sprintf("%s held by %v", w.kind, pids(w.writers))
		}
		needed := p.needed()
		if len(p.purposes) == 0 {
			needed = ""
		} else if needed == "" {
			needed = "NOT NEEDED"
		}
		fmt.Fprintf(&b, "%8d %8d %10s uid %-5d %s  %s  [stdin %s, listens %v %d, unreadable %v] %s\n",
			p.pid, p.ppid(), (m.present - p.born).Round(time.Second), p.uid, p.state, commandWords(p.args), in, p.listens, p.busyConnections+len(p.connections), p.unreadable, needed)
	}
	return b.String()
}

func pids(tasks []*task) []int {
	out := []int{}
	for _, p := range tasks {
		out = append(out, p.pid)
	}
	return out
}
