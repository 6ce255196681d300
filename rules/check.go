package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpdoctor/scan"
	"mcpdoctor/scan/probe"
)

// CheckSchema is the version of the JSON form of a [Check].
const CheckSchema = 1

// CheckKind names the JSON form in its own text.
const CheckKind = "mcpdoctor.check"

// Check is what became of a stdio server and of all below it when it was brought to its end, and what
// can be changed. It is a plain value: text and JSON are two readers of it.
//
// Strings that came from a process are raw here. Package report makes them safe to show.
type Check struct {
	Schema  int       `json:"schema"`
	Kind    string    `json:"kind"`
	Tool    Tool      `json:"tool"`
	Taken   time.Time `json:"taken"`
	Command []string  `json:"command"`

	TimeoutSeconds float64 `json:"timeout_seconds"` // how long each end was waited for

	Server CheckedServer `json:"server"`

	// Failed and Unknown count the rows with these verdicts.
	Failed  int `json:"failed"`
	Unknown int `json:"unknown"`

	Rows []CheckRow `json:"rows"`

	// Problems are sentences about what could not be seen or done.
	Problems []string `json:"problems"`
}

// CheckedServer is the server as it was while it was running.
type CheckedServer struct {
	Name     string `json:"name"` // what it calls itself
	Version  string `json:"version"`
	Protocol string `json:"protocol"`
	Tools    int    `json:"tools"`

	// StartupSeconds are how long starts took until the handshake was answered.
	StartupSeconds []float64 `json:"startup_seconds"`

	// RSSBytes and PSSBytes are the sums over the layers at rest; absent when one is not known.
	RSSBytes *int64 `json:"rss_bytes,omitempty"`
	PSSBytes *int64 `json:"pss_bytes,omitempty"`

	// Layers are the processes, those of the chain first, from the outermost wrapper to the server.
	Layers []Layer `json:"layers"`
}

// Layer is one process of a server at rest.
type Layer struct {
	PID      int       `json:"pid"`
	PPID     int       `json:"ppid"`
	Kind     LayerKind `json:"kind"`
	Name     string    `json:"name"` // "npx", "sh", "node"
	Command  string    `json:"command"`
	RSSBytes *int64    `json:"rss_bytes,omitempty"`
	PSSBytes *int64    `json:"pss_bytes,omitempty"`
}

// LayerKind is what a process is to the server.
type LayerKind string

// The kinds. A launcher that nobody knows for one is taken for the server, and what it starts for a
// helper.
const (
	LayerWrapper LayerKind = "wrapper"
	LayerServer  LayerKind = "server"
	LayerHelper  LayerKind = "helper"
)

// CheckRow is one question with its answer.
type CheckRow struct {
	ID       CheckID      `json:"id"`
	Question string       `json:"question"`
	Answer   string       `json:"answer"`
	Verdict  CheckVerdict `json:"verdict"`

	// Seconds is how long it took until all had ended; absent when they did not.
	Seconds *float64 `json:"seconds,omitempty"`

	// Because are the facts behind a failure, one sentence each: which layer lost what.
	Because []string `json:"because,omitempty"`

	// Left are the processes that stayed.
	Left []LeftRow `json:"left,omitempty"`

	Remedy *CheckRemedy `json:"remedy,omitempty"` // nil unless it failed
}

// CheckID names a question.
type CheckID string

// The questions.
const (
	CheckStdin      CheckID = "stdin-closed"
	CheckTerminated CheckID = "terminated"
	CheckKilled     CheckID = "client-killed"
	CheckStdout     CheckID = "stdout"
)

// CheckVerdict is the verdict on one question.
type CheckVerdict string

// The verdicts.
const (
	CheckOK      CheckVerdict = "ok"
	CheckFailed  CheckVerdict = "failed"
	CheckUnknown CheckVerdict = "cannot tell"
)

// LeftRow is a process that stayed.
type LeftRow struct {
	PID        int       `json:"pid"`
	PPID       int       `json:"ppid"` // of now
	Parent     string    `json:"parent"`
	Adopted    bool      `json:"adopted"`
	Kind       LayerKind `json:"kind"`
	Name       string    `json:"name"`
	Command    string    `json:"command"`
	CPUPercent *float64  `json:"cpu_percent,omitempty"` // of one core, while it was waited for
	RSSBytes   *int64    `json:"rss_bytes,omitempty"`
}

// CheckRemedy is what can be changed so that a question has another answer.
type CheckRemedy struct {
	Rule     string   `json:"rule,omitempty"` // whose texts these are
	Steps    []string `json:"steps"`
	Commands []string `json:"commands,omitempty"` // to be typed
	Entry    *Entry   `json:"entry,omitempty"`    // to configure instead
	Code     *Snippet `json:"code,omitempty"`
}

// SDKWait is how long clients on an SDK wait for a server after they have closed its stdin, before
// they send SIGTERM: the TypeScript and Python SDKs 2 s, the Go SDK 5 s.
const SDKWait = 2 * time.Second

// JudgeStdio judges what was seen of a stdio server.
func JudgeStdio(s *probe.Stdio) *Check {
	c := &checked{Stdio: s, command: Resolve(&scan.Process{Args: s.Command}, s.OS)}
	out := &Check{
		Schema: CheckSchema, Kind: CheckKind, Command: s.Command, TimeoutSeconds: seconds(s.Timeout), Server: c.server(),
		Rows: []CheckRow{}, Problems: append([]string{}, s.Problems...),
	}
	for _, e := range s.Ends {
		out.Rows = append(out.Rows, c.judge(e))
	}
	out.Rows = append(out.Rows, judgeNoise(s.Noise))
	for _, r := range out.Rows {
		switch r.Verdict {
		case CheckFailed:
			out.Failed++
		case CheckUnknown:
			out.Unknown++
		}
	}
	for _, p := range s.Left {
		out.Problems = append(out.Problems, fmt.Sprintf("pid %d could not be ended and is still there: %s", p.PID, commandLine(&p)))
	}
	return out
}

// checked is a server with what its command line says.
type checked struct {
	*probe.Stdio
	command Command
}

func (c *checked) server() CheckedServer {
	s := CheckedServer{Name: c.Server.Name, Version: c.Server.Version, Protocol: c.Server.Protocol, Tools: c.Server.Tools, StartupSeconds: []float64{}, Layers: []Layer{}}
	for _, d := range c.Startups {
		s.StartupSeconds = append(s.StartupSeconds, seconds(d))
	}
	t := c.treeOf(c.Rest)
	for i := range c.Rest {
		p := &c.Rest[i]
		s.Layers = append(s.Layers, Layer{
			PID: p.PID, PPID: p.PPID, Kind: t.kind(p), Name: t.name(p), Command: commandLine(p), RSSBytes: p.RSSBytes, PSSBytes: p.PSSBytes,
		})
	}
	s.RSSBytes = sum(c.Rest, func(p *scan.Process) *int64 { return p.RSSBytes })
	s.PSSBytes = sum(c.Rest, func(p *scan.Process) *int64 { return p.PSSBytes })
	return s
}

// sum adds what is known of every process; nil when it is not.
func sum(tree []scan.Process, of func(*scan.Process) *int64) *int64 {
	var n int64
	for i := range tree {
		v := of(&tree[i])
		if v == nil {
			return nil
		}
		n += *v
	}
	if len(tree) == 0 {
		return nil
	}
	return &n
}

func seconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond)) / float64(time.Second)
}

func judgeNoise(n probe.Noise) CheckRow {
	r := CheckRow{ID: CheckStdout, Question: "is all that it writes to stdout a message", Answer: "yes", Verdict: CheckOK}
	if n.Lines > 0 {
		r.Answer, r.Verdict = "no: "+Count(n.Lines, "line")+" of something else", CheckFailed
		r.Because = []string{"the first is: " + n.First, "the specification says that a server must not; some clients end the connection"}
		r.Remedy = &CheckRemedy{Steps: []string{"server: write logs and banners to stderr; in a wrapper's script redirect what else prints (>&2)"}}
	}
	return r
}

// ends has what is said of each way to end a server.
var ends = map[probe.Way]struct {
	id       CheckID
	question string
}{
	probe.CloseStdin: {CheckStdin, "does it all end when stdin is closed"},
	probe.Terminate:  {CheckTerminated, "does it all end when its top gets SIGTERM"},
	probe.KillClient: {CheckKilled, "does it all end when its client is killed"},
}

// judge answers one question.
func (c *checked) judge(e probe.End) CheckRow {
	r := CheckRow{ID: ends[e.Way].id, Question: ends[e.Way].question, Verdict: CheckUnknown}
	switch {
	case e.Untried != "":
		r.Answer = "it could not be tried: " + e.Untried
	case e.Early:
		r.Answer = "it had ended by itself before"
	case len(e.Left) > 0:
		c.judgeLeft(e, &r)
	case c.command.Kind == KindImage:
		r.Answer = "what was started here ended, but the container runs elsewhere: look with " + containerTool(c.command) + " ps"
	default:
		took := seconds(e.Took)
		r.Verdict, r.Seconds, r.Answer = CheckOK, &took, fmt.Sprintf("yes, within %.1f s", max(took, 0.1))
		if e.Way == probe.CloseStdin && e.Took > SDKWait {
			r.Answer += fmt.Sprintf("; a client on an SDK sends SIGTERM after %.0f s", SDKWait.Seconds())
		}
	}
	return r
}

func containerTool(c Command) string {
	tool, _, _ := strings.Cut(c.Launchers[len(c.Launchers)-1], " ")
	return tool
}

// judgeLeft says of whom stayed why they did, and what can be done.
func (c *checked) judgeLeft(e probe.End, r *CheckRow) {
	t := c.treeOf(e.Before)
	for i := range e.Left {
		t.left[e.Left[i].Process.ID()] = &e.Left[i]
		r.Left = append(r.Left, t.row(&e.Left[i]))
	}
	r.Verdict = CheckFailed
	r.Answer = fmt.Sprintf("no: %s of %d %s left after %s", Count(len(e.Left), "process"), len(e.Before), be(len(e.Left), "is", "are"), Age(c.Timeout))
	var b blame
	if e.Way == probe.Terminate {
		b = t.lostSignal(r)
	} else {
		b = t.lostEnd(r)
	}
	r.Remedy = c.remedy(t, b)
}

// blame is what has to be changed.
type blame struct {
	wrapper bool // it keeps from the server what is meant for it, or stays itself
	end     bool // the server does not see to the end of stdin
	signal  bool // the server does not see to SIGTERM
	helper  bool // the server does not see to what it has started
}

// row is one process that stayed, under whom.
func (t *trialTree) row(l *probe.Leftover) LeftRow {
	p := &l.Process
	row := LeftRow{PID: p.PID, PPID: p.PPID, Adopted: l.Adopted, Kind: t.kind(p), Name: t.name(p), Command: commandLine(p), RSSBytes: p.RSSBytes}
	switch up := t.before[p.PPID]; {
	case up != nil:
		row.Parent = t.says(up)
	case p.PPID != t.self:
		row.Parent = fmt.Sprintf("pid %d", p.PPID)
	case l.Adopted:
		row.Parent = "mcpdoctor, as PID 1 would have"
	default:
		row.Parent = "mcpdoctor"
	}
	if l.CPU >= 0 {
		row.CPUPercent = &l.CPU
	}
	return row
}

// lostEnd says why processes stayed at whose stdin nobody is any more.
func (t *trialTree) lostEnd(r *CheckRow) (b blame) {
	main := t.main
	l := t.left[main.ID()]
	switch {
	case l != nil && t.open(l):
		r.Because = append(r.Because, t.says(main)+" never saw the end of its stdin: "+t.holder(l)+" the other end")
		b.wrapper = main != t.top
	case l != nil:
		r.Because = append(r.Because, t.says(main)+" went on at the end of its stdin"+working(l))
		b.end = true
	}
	for _, p := range t.order {
		rest := t.left[p.ID()]
		switch {
		case rest == nil || p == main:
		case t.kind(p) == LayerWrapper && l != nil:
			r.Because = append(r.Because, t.says(p)+" waits for what it started"+working(rest))
		case t.kind(p) == LayerWrapper:
			r.Because = append(r.Because, t.says(p)+" stayed though the server had ended"+working(rest))
			b.wrapper = true
		case l != nil:
			r.Because = append(r.Because, t.says(p)+" stayed with the server"+working(rest))
		default:
			r.Because = append(r.Because, t.leftHelper(p)+working(rest))
			b.helper = true
		}
	}
	if l != nil && l.Outcome == scan.Killed {
		r.Because = append(r.Because, t.says(main)+" was sent SIGTERM then, and had to be killed")
		b.signal = true
	}
	return b
}

// holder says who holds the other end of the stdin of who stayed.
func (t *trialTree) holder(l *probe.Leftover) string {
	for _, pid := range l.Process.Stdin.Holders {
		if p := t.before[pid]; p != nil {
			return t.says(p) + " holds"
		}
	}
	return "another process holds"
}

func (t *trialTree) leftHelper(p *scan.Process) string {
	return t.says(p) + ", which the server had started, stayed when the server ended"
}

// lostSignal says where a SIGTERM to the first process was lost.
func (t *trialTree) lostSignal(r *CheckRow) (b blame) {
	for _, p := range t.order {
		l := t.left[p.ID()]
		if l == nil {
			continue
		}
		up := t.before[p.PPID]
		alone := up == nil || t.left[up.ID()] == nil // what was above it has ended
		deaf := l.Outcome == scan.Killed
		switch {
		case p == t.top:
			r.Because = append(r.Because, t.says(p)+" got SIGTERM and did not end"+working(l))
			b.signal, b.wrapper = p == t.main, p != t.main
		case t.kind(p) == LayerHelper && t.left[t.main.ID()] == nil:
			r.Because = append(r.Because, t.leftHelper(p)+working(l))
			b.helper = true
		case alone && up != nil && deaf:
			r.Because = append(r.Because, fmt.Sprintf("%s ended and %s stayed, and had to be killed after a SIGTERM of its own%s", t.says(up), t.says(p), working(l)))
			b.wrapper, b.signal = true, true
		case alone && up != nil:
			r.Because = append(r.Because, fmt.Sprintf("%s ended and did not pass SIGTERM on: %s stayed, and ended at a SIGTERM of its own%s", t.says(up), t.says(p), working(l)))
			b.wrapper = true
		case alone:
			r.Because = append(r.Because, t.says(p)+", which had lost its parent before, stayed"+working(l))
			b.helper = true
		default:
			r.Because = append(r.Because, t.says(p)+" stayed below it"+working(l))
			b.signal = b.signal || p == t.main && deaf
		}
	}
	return b
}

// working says what a process that stayed is doing.
func working(l *probe.Leftover) string {
	const busy = 20 // percent of a core: an idle server with a timer uses less than one
	if l.CPU >= busy {
		return fmt.Sprintf(", at %.0f %% CPU", l.CPU)
	}
	return ""
}

// open tells that somebody holds the other end of the stdin of who stayed.
func (t *trialTree) open(l *probe.Leftover) bool {
	in := l.Process.Stdin
	return in != nil && in.FD == 0 && in.Peer == scan.PeerOpen
}

// trialTree is the tree of one start, and who of it was left.
type trialTree struct {
	os     string
	self   int // the PID of who checked
	order  []*scan.Process
	before map[int]*scan.Process // by PID
	below  map[int][]*scan.Process
	left   map[scan.ID]*probe.Leftover
	top    *scan.Process
	main   *scan.Process // the server, when there is a tree
	chain  []*scan.Process
}

// treeOf finds the chain from the process that was started down to the server.
func (c *checked) treeOf(tree []scan.Process) *trialTree {
	t := &trialTree{os: c.OS, self: c.Self, before: map[int]*scan.Process{}, below: map[int][]*scan.Process{}, left: map[scan.ID]*probe.Leftover{}}
	for i := range tree {
		p := &tree[i]
		t.order = append(t.order, p)
		t.before[p.PID] = p
		t.below[p.PPID] = append(t.below[p.PPID], p)
	}
	if len(t.order) == 0 {
		return t
	}
	t.top = t.order[0]
	for p := t.top; p != nil && !slices.Contains(t.chain, p); p = t.starts(p) {
		t.main, t.chain = p, append(t.chain, p)
	}
	return t
}

// starts returns what a wrapper has started; nil when p is none. A program that nobody knows for a
// launcher is one when it has started what is known for a server, and is not known for one itself.
func (t *trialTree) starts(p *scan.Process) *scan.Process {
	children := t.below[p.PID]
	if len(children) == 0 {
		return nil
	}
	if len(Resolve(p, t.os).Launchers) > 0 {
		return children[0]
	}
	if rec := classify(p, t.os); rec.serves() {
		return nil
	}
	for _, child := range children {
		if rec := classify(child, t.os); rec.serves() {
			return child
		}
	}
	return nil
}

func (t *trialTree) kind(p *scan.Process) LayerKind {
	switch i := slices.IndexFunc(t.chain, func(q *scan.Process) bool { return q.ID() == p.ID() }); {
	case i < 0:
		return LayerHelper
	case i < len(t.chain)-1:
		return LayerWrapper
	}
	return LayerServer
}

// name is what a layer is called: the launcher, the interpreter, or the program.
func (t *trialTree) name(p *scan.Process) string {
	c := Resolve(p, t.os)
	switch {
	case len(c.Launchers) > 0:
		return c.Launchers[0]
	case c.Runtime != "":
		return c.Runtime
	case c.Program != "":
		return c.Program
	}
	return p.Name
}

func (t *trialTree) says(p *scan.Process) string { return fmt.Sprintf("%s (pid %d)", t.name(p), p.PID) }
