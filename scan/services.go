package scan

import (
	"context"
	"path/filepath"
	"slices"
)

// Services asks the service managers that need a process to be started to ask them, systemd and
// launchd, about those of the processes pids that [Examine] left in doubt ("service" in Unreadable),
// and settles the doubt: what the manager names as the main process of a job is added to
// s.Host.Services, the rest is known to be nobody's. Without a doubt it does nothing. It takes at most
// o.Deadline; a manager that does not answer leaves the doubt and a sentence in Problems.
//
// To be in the control group of a service, or to have its variables in the environment, is inherited
// by everything that a service starts. What counts is that the manager watches this very process.
func Services(ctx context.Context, s *Snapshot, pids []int, o ExamineOptions) {
	ctx, cancel := context.WithTimeout(ctx, o.deadline())
	defer cancel()
	var doubted []*Process
	for _, p := range s.examinable(pids) {
		if slices.Contains(p.Unreadable, "service") {
			doubted = append(doubted, p)
		}
	}
	if len(doubted) > 0 {
		askManagers(ctx, s, doubted)
	}
}

// findServices fills in the jobs among rows that can be told without asking anybody, and leaves
// "service" in Unreadable where a manager would have to be asked.
//
// Host.Services is left nil only when no manager answered for anything: where none runs that could
// keep a process it is empty.
func findServices(ctx context.Context, s *Snapshot, rows []*Process) {
	system := newSystemManager(s)
	apps := make(pm2Apps)
	services, known := []Service{}, system.known()
	for _, p := range rows {
		parent := s.find(p.PPID)
		job, kept := childOfSupervisor(p, parent)
		if kept == no {
			job, kept = apps.job(ctx, p, parent)
		}
		if kept == no {
			job, kept = system.job(p, parent)
		}
		p.setUnreadable("service", kept == perhaps)
		switch kept {
		case yes:
			services = append(services, job)
		case perhaps:
			known = false
		}
	}
	s.Host.Services = nil
	if len(services) > 0 || known {
		s.Host.Services = services
	}
}

// kept tells whether a manager keeps a process.
type kept int

const (
	no kept = iota
	yes
	perhaps // the manager would have to be asked, or may not be
)

// childOfSupervisor recognises the jobs of those managers that are the parents of their jobs.
func childOfSupervisor(p, parent *Process) (Service, kept) {
	if parent == nil {
		return Service{}, no
	}
	job := Service{MainPID: p.PID}
	program := filepath.Base(argAt(parent, 0))
	if manager, ok := oneJobSupervisors[program]; ok {
		job.Manager, job.Name = manager, filepath.Base(argAt(parent, 1))
		return job, yes
	}
	// As PID 1 of a container supervisord adopts orphans, with the variables that they inherited.
	// Its own jobs lead a process group and have a standard input that it holds.
	if program != "supervisord" && filepath.Base(argAt(parent, 1)) != "supervisord" {
		return Service{}, no // its interpreter may come first: it is a Python script
	}
	if p.PGID != p.PID || p.Stdin != nil && p.Stdin.Peer == PeerClosed {
		return Service{}, no
	}
	job.Manager, job.Name = "supervisord", p.Env["SUPERVISOR_PROCESS_NAME"]
	if group := p.Env["SUPERVISOR_GROUP_NAME"]; group != "" && group != job.Name {
		job.Name = group + ":" + job.Name // as supervisorctl writes it
	}
	return job, yes
}

// oneJobSupervisors are started once for each job, with its name as their first argument. They
// adopt nobody.
var oneJobSupervisors = map[string]string{
	"runsv":            "runit",
	"s6-supervise":     "s6",
	"supervise-daemon": "openrc",
}

// argAt returns an argument, empty when there is none.
func argAt(p *Process, i int) string {
	if i < len(p.Args) {
		return p.Args[i]
	}
	return ""
}

// settle ends the doubt about processes that their manager was asked about.
func (s *Snapshot) settle(doubted []*Process, job func(*Process) (Service, bool)) {
	if s.Host.Services == nil {
		s.Host.Services = []Service{}
	}
	for _, p := range doubted {
		if service, ok := job(p); ok {
			s.Host.Services = append(s.Host.Services, service)
		}
		p.setUnreadable("service", false)
	}
	slices.SortStableFunc(s.Host.Services, func(a, b Service) int { return a.MainPID - b.MainPID })
}
