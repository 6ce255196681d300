package rules

import (
	"fmt"
	"slices"

	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
)

// parentless reports whether most rows lack a parent PID, as in the text of `ps aux`.
func (j *judgement) parentless() bool {
	unknown := 0
	for _, l := range j.Forest.ParentStates {
		if l == process.ParentUnknown {
			unknown++
		}
	}
	return unknown > 0 && unknown*2 >= len(j.Forest.ParentStates)
}

func (j *judgement) server(in *process.Instance) Server {
	d := j.decision(in)
	age, _ := in.Age()
	return Server{
		Server: in.Name, PIDs: in.PIDs(), RootPID: in.Root().PID, Owner: in.Owner,
		RecognisedBy: string(in.Recognition.Confidence) + ", by " + in.Recognition.By, Started: in.Root().Started,
		AgeSeconds: int64(age.Seconds()), RSSBytes: in.RSS(), SwapBytes: in.Swap(), Listen: in.Listen(),
		Mode: process.ServingMode(*in.Recognition, in.Version()), Verdict: d.verdict, Because: d.because,
	}
}

// decision is the verdict on one instance, and why it is so.
type decision struct {
	verdict Verdict
	because string
	by      *Rule // the one that has claimed the instance and not reported it yet
}

// decision returns the verdict of the rule that claimed the instance, or why none did.
func (j *judgement) decision(in *process.Instance) *decision {
	if d := j.decisions[in]; d != nil {
		return d
	}
	w, holders := in.Stdin()
	open, owner := w == process.StdinOpen, in.Owner.String()
	switch in.Owner.Kind {
	case process.OwnerService:
		return &decision{verdict: Supervised, because: "kept by " + owner}
	case process.OwnerTerminal:
		return &decision{verdict: InUse, because: "started by hand from " + owner}
	case process.OwnerClient, process.OwnerGateway:
		what := "is running"
		if open && slices.Contains(holders, in.Owner.PID) {
			what = "holds its stdin"
		} else if open {
			what += " and its stdin is open"
		}
		return &decision{verdict: InUse, because: fmt.Sprintf("its %s %s %s", in.Owner.Kind, owner, what)}
	case process.OwnerNobody:
		return adopted(in, w, holders)
	}
	d := &decision{verdict: Unknown, because: "its parent is no known MCP client"}
	if in.Owner.PID != 0 && in.Owner.Name != "" {
		d.because = "its parent " + owner + " is running"
	}
	if open {
		d.verdict, d.because = InUse, d.because+", and its stdin is open"
	}
	return d
}

// adopted is the verdict on an adopted instance that no rule has claimed.
func adopted(in *process.Instance, w process.StdinState, holders []int) *decision {
	d := &decision{verdict: Unknown}
	owner := in.Owner.String()
	switch {
	case w == process.StdinOpen && len(holders) > 0:
		d.verdict = InUse
		d.because = "adopted by " + owner + ", but pid " + format.PIDs(holders, 3) + " " +
			format.Plural(len(holders), "holds", "hold") + " its stdin"
	case w == process.StdinOpen:
		d.because = "adopted by " + owner + ", but its stdin is open"
	case len(in.Listen()) > 0:
		d.because = "listens on " + format.List(in.Listen(), 2) + " and runs under " + owner + ": probably a daemon"
	case w == process.StdinNoPipe:
		d.because = "runs under " + owner + " without a pipe at its stdin: started as a daemon"
	case w == process.StdinUnreadable:
		d.because = "runs under " + owner + "; its stdin is unreadable"
	default:
		d.because = "runs under " + owner + "; whether it is in use cannot be seen"
	}
	return d
}

func (j *judgement) owning(in *process.Instance) Owning {
	age, _ := in.Age()
	o := Owning{
		Name: in.Name, PID: in.Main().PID, Started: in.Root().Started, AgeSeconds: int64(age.Seconds()), RSSBytes: in.RSS(),
		Listen: in.Listen(), Version: in.Version(), Servers: len(in.Owned),
	}
	if in.Role == process.RoleGateway {
		o.Mode = process.ServingMode(*in.Recognition, o.Version)
	}
	return o
}

func (j *judgement) summarise(r *Report) Summary {
	s := Summary{Processes: len(j.Forest.Processes), Clients: len(r.Clients), Gateways: len(r.Gateways), Servers: len(r.Servers)}
	for _, in := range j.Instances {
		if in.Role == process.RoleServer || in.Role == process.RoleGateway {
			s.RSSBytes += in.RSS()
			s.SwapBytes += in.Swap()
		}
	}
	for _, p := range j.Forest.Processes {
		if slices.ContainsFunc(p.Unreadable, isField) {
			s.Unreadable++
		}
	}
	safe := map[int32]bool{}
	for _, f := range r.Findings {
		switch f.Severity {
		case Error:
			s.Findings.Error++
		case Warning:
			s.Findings.Warning++
		case Info:
			s.Findings.Info++
		}
		for _, pid := range f.Reap.Safe {
			safe[j.Forest.Node(pid)] = true
		}
	}
	instances := map[*process.Instance]bool{}
	for node := range safe {
		s.Reapable.Processes++
		s.Reapable.RSSBytes += j.Process(node).RSS()
		instances[j.InstanceOf[node]] = true
	}
	s.Reapable.Instances = len(instances)
	return s
}

// isField reports whether an entry of Unreadable is a field, and not a question that stayed open (see
// scan.Examine).
func isField(unreadable string) bool { return unreadable != "holders" && unreadable != "service" }
