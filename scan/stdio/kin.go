package stdio

import (
	"context"
	"slices"
	"time"

	"mcpdoctor/scan"
	"mcpdoctor/scan/terminate"
)

// kin finds the processes that a check has started, and those that they have started, whatever they
// did to get away: forked twice, changed session, lost their parents. Nobody else is ever taken for
// one of them. Means, each sufficient:
//
//   - by descent: the parent is one of them and alive;
//   - by adoption: on Linux the keeper has itself made their adopter (PR_SET_CHILD_SUBREAPER of
//     prctl(2)), so that who loses its parent becomes its child. mcpdoctor does that too, for the case
//     that its keeper is killed; a child of its own from before, as exec in a shell leaves them, is none
//     of them;
//   - by the mark, a random value that only they have in their environment;
//   - by memory: it was one of them before (PID and start time).
type kin struct {
	self   int    // whose children they are
	mark   string // "NAME=value"
	adopts bool   // who of them loses its parent becomes a child of self
	now    func() time.Time

	born      int64            // when self began: nobody older is one of them
	strangers map[scan.ID]bool // children of self from before
	known     map[scan.ID]bool
	unmarked  map[scan.ID]bool // who was looked at and has no mark

	// told is called with each who is new; nil when nobody wants to know.
	told func(scan.ID)

	// own are children of self that [os/exec] waits for. Of these, the hidden one is never in a tree: the
	// client that will be killed.
	own, hidden map[int]bool
}

func newKin(ctx context.Context, self int, mark string, now func() time.Time) (*kin, error) {
	k := &kin{
		self: self, mark: mark, adopts: canAdopt, now: now,
		strangers: map[scan.ID]bool{}, known: map[scan.ID]bool{}, unmarked: map[scan.ID]bool{}, own: map[int]bool{}, hidden: map[int]bool{},
	}
	s, err := scan.Take(ctx, scan.Options{Now: now()})
	if err != nil {
		return nil, err
	}
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.PPID == self {
			k.strangers[p.ID()] = true
		}
		if p.PID == self {
			k.born = p.Start
		}
	}
	return k, nil
}

// look returns a table in which they are, and who of them is alive: parents before children, else in
// the order of their starts.
func (k *kin) look(ctx context.Context) (*scan.Snapshot, []*scan.Process, error) {
	s, err := scan.Take(ctx, scan.Options{Now: k.now()})
	if err != nil {
		return nil, nil, err
	}
	at := make(map[int]*scan.Process, len(s.Processes))
	for i := range s.Processes {
		at[s.Processes[i].PID] = &s.Processes[i]
	}
	var out []*scan.Process
	for p := range k.find(s) {
		switch {
		case p.State == "Z":
			k.reap(p)
		case !k.hidden[p.PID]:
			out = append(out, p)
		}
	}
	return s, order(out, at), nil
}

// find returns those in a table that are theirs, the dead and the hidden too.
func (k *kin) find(s *scan.Snapshot) map[*scan.Process]bool {
	below := map[int][]*scan.Process{}
	for i := range s.Processes {
		p := &s.Processes[i]
		below[p.PPID] = append(below[p.PPID], p)
	}
	found := map[*scan.Process]bool{}
	var take func(p *scan.Process)
	take = func(p *scan.Process) {
		if found[p] {
			return
		}
		found[p] = true
		k.remember(p.ID())
		for _, child := range below[p.PID] {
			if child.Start >= p.Start { // on Windows a PPID may be that of a dead one, used again
				take(child)
			}
		}
	}
	for i := range s.Processes {
		if p := &s.Processes[i]; k.known[p.ID()] || p.PPID == k.self && k.adopted(p) {
			take(p)
		}
	}
	for i := range s.Processes { // their environments cost more, and most have been found by now
		if p := &s.Processes[i]; !found[p] && k.marked(p) {
			take(p)
		}
	}
	return found
}

func (k *kin) remember(id scan.ID) {
	if k.known[id] {
		return
	}
	k.known[id] = true
	if k.told != nil {
		k.told(id)
	}
}

// adopted tells that a child of self is one of them.
func (k *kin) adopted(p *scan.Process) bool {
	// Those who were here before have children too, which self adopts as well; and PID 1 adopts everybody's.
	alone := len(k.strangers) == 0 && k.self != 1
	return !k.strangers[p.ID()] && (alone || k.own[p.PID] || k.marked(p))
}

// strays returns who may be one of them though nothing tells so, where nobody adopts who loses its
// parent: it began after self, and has no parent but the first process of the system.
func (k *kin) strays(s *scan.Snapshot) []scan.Process {
	if k.adopts {
		return nil
	}
	at := map[int]*scan.Process{}
	for i := range s.Processes {
		at[s.Processes[i].PID] = &s.Processes[i]
	}
	var out []scan.Process
	for i := range s.Processes {
		p := &s.Processes[i]
		up := at[p.PPID]
		alone := p.PPID == 1 || up == nil || up.Start > p.Start // on Windows a PPID may be that of a dead one, used again
		if alone && p.Start >= k.born && p.PID != k.self && p.State != "Z" && !k.known[p.ID()] {
			out = append(out, *p)
		}
	}
	return out
}

// marked tells that a process has the mark in the environment that it was started with.
func (k *kin) marked(p *scan.Process) bool {
	if p.Start < k.born || p.PID == k.self || p.State == "Z" || k.strangers[p.ID()] || k.unmarked[p.ID()] {
		return false
	}
	if hasMark(p.ID(), k.mark) {
		return true
	}
	k.unmarked[p.ID()] = true
	return false
}

// reap takes the status of a dead one that self has adopted, so that its entry goes.
func (k *kin) reap(p *scan.Process) {
	if p.PPID == k.self && !k.own[p.PID] {
		waitFor(p.PID)
	}
}

// order puts parents before children, and siblings in the order of their starts.
func order(found []*scan.Process, at map[int]*scan.Process) []*scan.Process {
	slices.SortFunc(found, func(a, b *scan.Process) int {
		switch {
		case a.Start != b.Start && a.Start < b.Start:
			return -1
		case a.Start != b.Start:
			return 1
		}
		return a.PID - b.PID
	})
	inside := map[*scan.Process]bool{}
	for _, p := range found {
		inside[p] = true
	}
	var out []*scan.Process
	done := map[*scan.Process]bool{}
	var add func(p *scan.Process)
	add = func(p *scan.Process) {
		if done[p] {
			return
		}
		done[p] = true
		out = append(out, p)
		for _, child := range found {
			if at[child.PPID] == p {
				add(child)
			}
		}
	}
	for _, p := range found {
		if up := at[p.PPID]; up == nil || !inside[up] {
			add(p)
		}
	}
	for _, p := range found { // a circle of stale parents
		add(p)
	}
	return out
}

// stages groups processes for their end, the deepest first.
func stages(tree []*scan.Process) [][]scan.ID {
	depth := map[int]int{}
	var out [][]scan.ID
	for _, p := range tree {
		d := 0
		if up, ok := depth[p.PPID]; ok {
			d = up + 1
		}
		depth[p.PID] = d
		for len(out) <= d {
			out = append(out, nil)
		}
		out[d] = append(out[d], p.ID())
	}
	slices.Reverse(out)
	return out
}

const (
	// polite is how long who is left has between SIGTERM and SIGKILL when a check clears up. docker run
	// and the like take their containers along in that time. Clients on an SDK give as much.
	polite = 2 * time.Second

	// hurried is the same when somebody waits for the command to end.
	hurried = 300 * time.Millisecond

	// rounds is how often a check looks for more, since who is ended may have started others meanwhile.
	rounds = 4
)

// clear ends all of them, and returns who is left nevertheless.
func (k *kin) clear(ctx context.Context) []scan.Process {
	grace := polite
	if ctx.Err() != nil {
		grace = hurried
	}
	ctx = context.WithoutCancel(ctx)
	for round := 0; ; round++ {
		_, tree, err := k.look(ctx)
		if err != nil || round == rounds || len(tree) == 0 {
			return values(tree)
		}
		if round == 0 {
			terminate.Terminate(ctx, hold, []terminate.Group{{Stages: stages(tree)}}, grace)
			continue
		}
		// Who was started since has nobody who would miss it; and one that may not be signalled must not
		// keep the others.
		var alone []terminate.Group
		for _, p := range tree {
			alone = append(alone, terminate.Group{Stages: [][]scan.ID{{p.ID()}}})
		}
		terminate.Terminate(ctx, hold, alone, 0)
	}
}

func hold(id scan.ID) (terminate.Handle, error) {
	h, err := terminate.Open(id)
	if err != nil {
		return nil, err
	}
	return h, nil
}
