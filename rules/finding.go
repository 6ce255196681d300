package rules

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"mcpdoctor/rules/command"
	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

// WorseFirst orders findings: by severity, then by the bytes they hold, then by rule and PID.
func WorseFirst(a, b Finding) int {
	return cmp.Or(
		b.Severity.Rank()-a.Severity.Rank(),
		cmp.Compare(b.RSSBytes, a.RSSBytes),
		strings.Compare(a.Rule, b.Rule),
		slices.Compare(a.PIDs, b.PIDs),
	)
}

// claim is what a rule found; [judgement.report] makes a Finding of it.
type claim struct {
	severity   Severity           // that of the rule when empty
	confidence process.Confidence // Likely when empty
	title      string
	evidence   []string // empty ones are left out
	key        string   // distinguishes this leak from others of the rule, in every run

	subjects []*process.Instance // what the finding is about
	others   []*process.Instance // shown, but no subjects
	parent   *process.Instance   // the culprit; nil for none. As a subject it is its main process only

	safe      []*process.Instance
	doubt     string // why what is in safe needs confirmation, "" when it does not
	onRequest []*process.Instance
	remedy    Remedy // reap is added to its commands, unless instead is set
	instead   bool   // its commands are better than reap
}

// report adds a claim to the findings and sets the verdict of its subjects.
func (j *judgement) report(c claim) {
	if c.doubt != "" {
		c.safe, c.onRequest = nil, c.safe
		c.evidence = append(c.evidence, "needs confirmation: "+c.doubt)
	}
	f := Finding{
		ID: j.rule.ID + "-" + Hash(c.key), Rule: j.rule.ID, Title: c.title,
		Severity: cmp.Or(c.severity, j.rule.Severity), Confidence: cmp.Or(c.confidence, process.Likely),
		Evidence: slices.DeleteFunc(c.evidence, func(s string) bool { return s == "" }), Instances: len(c.subjects), Remedy: c.remedy,
		PIDs: []int{}, Processes: []Row{}, Reap: Reap{Safe: []int{}, OnRequest: []int{}},
	}
	shown := map[*process.Instance]bool{}
	for _, in := range slices.Concat(c.subjects, c.others, c.safe, c.onRequest) {
		shown[in] = true
	}
	if c.parent != nil {
		f.ParentPID = c.parent.Main().PID
		shown[c.parent] = true
	}
	for _, in := range c.subjects {
		if in == c.parent {
			f.PIDs = append(f.PIDs, f.ParentPID)
		} else {
			f.PIDs = append(f.PIDs, in.PIDs()...)
		}
		if d := j.decisions[in]; d != nil && d.by == j.rule {
			d.because, d.by = j.rule.ID+": "+c.title, nil
			if f.Severity == Error && f.Confidence != process.Possible {
				d.verdict = Leaked
			}
		}
	}
	pss, measured := int64(0), true
	for in := range shown {
		for _, m := range in.Members {
			f.Processes = append(f.Processes, NewRow(in, m))
			if in == c.parent {
				continue
			}
			p := j.Process(m)
			f.RSSBytes += p.RSS()
			if p.PSSBytes != nil {
				pss += *p.PSSBytes
			} else {
				measured = false
			}
		}
	}
	if measured && pss > 0 {
		f.PSSBytes = pss
		f.Evidence = append(f.Evidence, fmt.Sprintf("terminating them frees %s (PSS)", format.Bytes(pss)))
	}
	foreign := 0
	reapable := slices.Concat(c.safe, c.onRequest)
	for i, in := range reapable {
		foreign += j.giveUp(in, &f.Reap, i < len(c.safe))
	}
	if foreign > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s %s to another user: only that user or root can terminate %s",
			format.Count(foreign, "process"), format.Plural(foreign, "belongs", "belong"), format.Plural(foreign, "it", "them")))
	}
	if len(reapable) > 0 && !c.instead {
		f.Remedy.Commands = append(f.Remedy.Commands, j.reapLine(reapable, len(c.safe) == 0))
	}
	f.Remedy.Commands = append(f.Remedy.Commands, "mcpdoctor explain "+j.rule.ID)
	slices.Sort(f.PIDs)
	slices.Sort(f.Reap.Safe)
	slices.Sort(f.Reap.OnRequest)
	slices.SortFunc(f.Processes, func(a, b Row) int { return a.PID - b.PID })
	if len(j.Only) == 0 || slices.Contains(j.Only, j.rule.ID) {
		j.out.Findings = append(j.out.Findings, f)
	}
}

// giveUp adds the processes of an instance to what may be reaped, and returns how many belong to another
// user and were left out.
func (j *judgement) giveUp(in *process.Instance, r *Reap, safe bool) (foreign int) {
	for _, m := range in.Members {
		p := j.Process(m)
		switch {
		case p.PID <= 1 || p.State == "Z":
		case j.OtherUser(p):
			foreign++
		case safe && (j.Recognitions[m] != nil || j.renders(in, p)):
			r.Safe = append(r.Safe, p.PID)
		default:
			// An unknown process below a server (a build, a shell of the user's) is never safe, even when
			// its server is.
			r.OnRequest = append(r.OnRequest, p.PID)
		}
	}
	return foreign
}

// renders reports whether an unrecognised process is part of a browser: the same program.
func (j *judgement) renders(in *process.Instance, p *scan.Process) bool {
	return in.Role == process.RoleHelper && command.SameProgram(in.Recognition.Command, command.Parse(p, j.Snapshot.Host.OS))
}

// NewRow describes one process of an instance.
func NewRow(in *process.Instance, node int32) Row {
	p, rec := in.Table.Process(node), in.Table.Recognitions[node]
	row := ProcessRow(p, in.Table.Now)
	switch {
	case p.State == "Z":
		row.Role = "zombie"
	case rec != nil:
		row.Role = string(rec.Role)
	case in.Role == process.RoleServer || in.Role == process.RoleHelper:
		row.Role = string(process.RoleHelper)
	}
	if in.Role != process.RoleClient && in.Role != process.RoleGateway {
		row.Server = in.Name
	}
	return row
}

// ProcessRow describes a process of which only the system's facts are known.
func ProcessRow(p *scan.Process, now time.Time) Row {
	row := Row{PID: p.PID, PPID: p.PPID, Started: p.Started, Command: process.CommandLine(p), Argv: p.Args, RSSBytes: p.RSSBytes}
	if !p.Started.IsZero() {
		age := int64(max(0, now.Sub(p.Started)).Seconds())
		row.AgeSeconds = &age
	}
	return row
}

// Hash shortens a key to eight hexadecimal digits.
func Hash(key string) string {
	h := fnv.New32a()
	h.Write([]byte(key)) //nolint:errcheck // a hash never fails
	return fmt.Sprintf("%08x", h.Sum32())
}
