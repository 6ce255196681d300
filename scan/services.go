package scan

import (
	"context"
	"path/filepath"
	"slices"
)

// Services asks systemd or launchd, by starting systemctl(1) or launchctl(1), about those of the processes pids of
// which [Examine] could not say whether a service manager keeps them ("service" in Unreadable). It adds the main
// processes of jobs to s.Host.Services. If there are no such processes it does nothing; if a manager does not
// answer, "service" stays and Problems says so.
//
// Everything that a service starts inherits its control group and its variables. Only the process that the manager
// monitors is the job.
func Services(ctx context.Context, s *Snapshot, pids []int, o ExamineOptions) {
	ctx, cancel := context.WithTimeout(ctx, o.deadline())
	defer cancel()
	unresolved := slices.DeleteFunc(s.examinable(pids), func(p *Process) bool { return !slices.Contains(p.Unreadable, "service") })
	if len(unresolved) > 0 {
		askManagers(ctx, s, unresolved)
	}
}

// findServices fills in the jobs among rows that can be recognised without asking a manager, and marks "service"
// unreadable where one would have to be asked. Host.Services stays nil if no manager answered for any process.
func findServices(ctx context.Context, s *Snapshot, rows []*Process) {
	system := newSystemManager(s)
	apps := make(pm2Apps)
	services, known := []Service{}, system.known()
	for _, p := range rows {
		parent := s.find(p.PPID)
		job, supervised := childOfSupervisor(p, parent)
		if supervised == no {
			job, supervised = apps.job(ctx, p, parent)
		}
		if supervised == no {
			job, supervised = system.job(p, parent)
		}
		p.setUnreadable("service", supervised == perhaps)
		switch supervised {
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

// supervised says whether a service manager keeps a process.
type supervised int

const (
	no supervised = iota
	yes
	perhaps // the manager was not asked, or did not answer
)

// childOfSupervisor recognises the jobs of those managers that are the parents of their jobs.
func childOfSupervisor(p, parent *Process) (Service, supervised) {
	if parent == nil {
		return Service{}, no
	}
	job := Service{MainPID: p.PID}
	program := filepath.Base(argAt(parent, 0))
	if manager, ok := oneJobSupervisors[program]; ok {
		job.Manager, job.Name = manager, filepath.Base(argAt(parent, 1))
		return job, yes
	}
	if program != "supervisord" && filepath.Base(argAt(parent, 1)) != "supervisord" { // it is a Python script
		return Service{}, no
	}
	// As PID 1 of a container supervisord adopts orphans, which have inherited its variables. Its own jobs
	// lead a process group, and it holds their stdin.
	if p.PGID != p.PID || p.Stdin != nil && p.Stdin.Peer == PeerClosed {
		return Service{}, no
	}
	job.Manager, job.Name = "supervisord", p.Env["SUPERVISOR_PROCESS_NAME"]
	if group := p.Env["SUPERVISOR_GROUP_NAME"]; group != "" && group != job.Name {
		job.Name = group + ":" + job.Name // as supervisorctl writes it
	}
	return job, yes
}

// oneJobSupervisors run once per job, with its name as their first argument, and adopt no orphans.
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

// resolve records a manager's answer: jobs are the names of its jobs by their main PID.
func (s *Snapshot) resolve(unresolved []*Process, manager string, jobs map[int]string) {
	if s.Host.Services == nil {
		s.Host.Services = []Service{}
	}
	for _, p := range unresolved {
		if name, ok := jobs[p.PID]; ok {
			s.Host.Services = append(s.Host.Services, Service{Manager: manager, Name: name, MainPID: p.PID})
		}
		p.setUnreadable("service", false)
	}
	slices.SortStableFunc(s.Host.Services, func(a, b Service) int { return a.MainPID - b.MainPID })
}
