package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/rules/command"
	"mcpdoctor/rules/format"
	"mcpdoctor/rules/process"
)

var _ = register(Rule{
	ID:       "spawn-per-request",
	Order:    20,
	Title:    "a running gateway keeps one server per request",
	Severity: Error,
	Reap: "safe when the gateway's mode allows a server one request, and the server is older than any request that may still " +
		"be answered; else on request",
	Why: "A gateway that starts a stdio server for each request or session and never terminates it fills the memory while it looks healthy: " +
		"it answers, its servers have a running parent and an open stdin, and none is adopted. " +
		"supergateway before 4 does so in its default mode (Streamable HTTP without --stateful); with --stateful but without " +
		"--sessionTimeout it keeps the servers of sessions that were never closed.",
	Evidence: []string{
		"several copies of one command directly below one gateway",
		"their ages are spread: each was started by a request of its own",
		"the gateway's flags and version: --stateful, --sessionTimeout, --long-lived",
	},
	Wrong: []string{
		"many requests in progress: as many servers as there are open connections may be working. Then only those are safe that are " +
			"older than ten minutes, and a minute older than the last data received on any connection (where the system shows that); " +
			"the newest is always kept",
		"a gateway in stateful mode whose sessions are all in use: a warning, on request only",
	},
	Remedy: []string{
		catalog.Supergateway.Remedies.Spawn, catalog.DockerGateway.Remedies.Spawn,
		"pm2: change args in the ecosystem file, then pm2 delete and pm2 start: a plain restart keeps the old arguments, and " +
			"perhaps the old children",
		RemedyDirect,
	},
	check: findSpawned,
})

// RemedyDirect is a remedy of diagnose.Endpoint too.
const RemedyDirect = "serve Streamable HTTP directly where the server can: one process for all clients"

// answered is the age from which a server for one request counts as left over while no connection is open.
const answered = 5 * time.Second

func findSpawned(j *judgement) {
	for _, gateway := range j.WithRole(process.RoleGateway) {
		all := j.ownedServers(gateway)
		j.SortByStart(all)
		for _, copies := range grouped(all, identity) {
			j.spawned(gateway, copies, all[len(all)-1])
		}
	}
}

// ownedServers returns the servers of an owner that no rule has claimed.
func (j *judgement) ownedServers(owner *process.Instance) []*process.Instance {
	return slices.DeleteFunc(slices.Clone(owner.Owned), func(in *process.Instance) bool {
		return j.decisions[in] != nil || in.Service != nil
	})
}

func (j *judgement) spawned(gateway *process.Instance, copies []*process.Instance, newest *process.Instance) {
	m := gateway.Recognition.Gateway.Mode(gateway.Recognition.Run(gateway.Version())) // how it is meant to use its servers
	open, counted := gateway.Inbound()
	// A gateway that does not listen itself may be given its connections by another process (a worker of a
	// cluster), or may only finish old ones.
	deputy := counted && !hasPort(gateway.Listen())
	if m.Proved == catalog.RequestAge && counted && !deputy && open == 0 {
		m.Idle, m.Proved = answered, answered // a client that is waiting has a connection
	}
	idle := slices.DeleteFunc(slices.Clone(copies), func(in *process.Instance) bool {
		age, known := in.Age()
		return !known || in == newest || age < m.Idle
	})
	if excess(idle, copies, m, open) < m.AtLeast {
		return
	}
	if first, last := idle[0].Root().Started, idle[len(idle)-1].Root().Started; m.Proved == 0 && last.Sub(first) < time.Minute {
		return // started in one burst of requests, which may still be in progress
	}
	if idle = j.claim(idle); len(idle) == 0 {
		return
	}
	c := claim{
		severity: Warning, subjects: idle, parent: gateway,
		key: fmt.Sprint(gateway.Root().ID(), copies[0].Identity), remedy: spawnRemedy(gateway, m),
	}
	proved := provedAge(gateway, m, open, counted, deputy)
	for _, in := range copies {
		// A child that the gateway's command line does not name may be something else.
		switch age, _ := in.Age(); {
		case !slices.Contains(idle, in):
			c.others = append(c.others, in)
		case proved > 0 && age >= proved && j.startsProgram(gateway, in):
			c.safe = append(c.safe, in)
		default:
			c.onRequest = append(c.onRequest, in)
		}
	}
	if m.Proved > 0 && m.Proved < catalog.SessionAge || len(c.safe) > 0 { // the leak is certain, whatever is safe
		c.severity, c.confidence = Error, process.Certain
	}
	per := "per session"
	if m.PerRequest {
		per = "per request"
	}
	c.title = fmt.Sprintf("%s keeps one server %s: %s of %s, %s RSS",
		gatewayTitle(gateway), per, format.Count(len(copies), "instance"), copies[0].Name, format.Bytes(rss(copies)))
	all := format.Plural(len(copies), "it is", fmt.Sprintf("all %d are", len(copies)))
	c.evidence = []string{j.agesOf(copies), all + " still running: " + m.Why}
	if len(m.Missing) > 0 {
		c.evidence = append(c.evidence, format.List(m.Missing, 2)+" "+format.Plural(len(m.Missing), "is", "are")+" missing from its command line")
	}
	if counted {
		c.evidence = append(c.evidence, connections(gateway, open, len(copies)))
	}
	if len(c.others) == 1 && c.others[0] == newest {
		c.evidence = append(c.evidence, fmt.Sprintf("the newest (pid %d) is kept: it may be working", newest.Main().PID))
	} else if len(c.others) > 0 {
		c.evidence = append(c.evidence, fmt.Sprintf("%d of them are kept: they are new, or may be working", len(c.others)))
	}
	j.report(c)
}

// excess returns how many of the idle copies are more than the gateway can be using. As many servers as
// there are open connections may be working, and which ones cannot be seen. In a mode of one request per
// server, ten minutes are more than most clients wait.
func excess(idle, copies []*process.Instance, m catalog.Mode, open int) int {
	if !m.PerRequest {
		return min(len(idle), len(copies)-open)
	}
	old := 0
	for _, in := range idle {
		if age, _ := in.Age(); age >= catalog.SessionAge {
			old++
		}
	}
	return max(len(idle)-open, old)
}

// provedAge returns the age from which a server of the gateway is known to be left over; 0 when none is.
func provedAge(gateway *process.Instance, m catalog.Mode, open int, counted, deputy bool) time.Duration {
	silence, known := gateway.InboundSilence()
	switch {
	case m.Proved == 0:
		return 0
	case gateway.Unreadable("listen"), deputy, open > 0 && !known:
		return 0 // which server a connection waits for cannot be seen, and a request may take an hour
	case open > 0:
		// A server older than the oldest unanswered request works on none.
		return max(m.Proved, catalog.SessionAge, silence+time.Minute)
	case !counted:
		return max(m.Proved, catalog.SessionAge)
	}
	return m.Proved
}

// startsProgram reports whether the gateway's command line names in's program.
func (j *judgement) startsProgram(gateway, in *process.Instance) bool {
	return slices.ContainsFunc(gateway.Recognition.Targets(j.Snapshot.Host.OS), func(target command.Command) bool {
		return command.SameProgram(target, in.Recognition.Command)
	})
}

func gatewayTitle(gateway *process.Instance) string {
	title := fmt.Sprintf("%s (pid %d", strings.TrimSpace(gateway.Name+" "+gateway.Version()), gateway.Main().PID)
	if port := gateway.Port(); port != "" {
		title += ", port " + port
	}
	if gateway.Service != nil {
		title += ", started by " + gateway.Service.Manager + " as " + gateway.Service.Name
	} else if gateway.Owner.Kind == process.OwnerService {
		title += ", started by " + gateway.Owner.Name
	}
	return title + ")"
}

// connections compares the open connections to a gateway with its servers.
func connections(gateway *process.Instance, open, servers int) string {
	line := fmt.Sprintf("%s %s open to it, against %s",
		format.Count(open, "connection"), format.Plural(open, "is", "are"), format.Count(servers, "server"))
	if open > 0 {
		line += ": so many may be working"
		if silence, known := gateway.InboundSilence(); known {
			line += ", on requests received in the last " + format.Age(silence)
		}
	}
	return line
}

func spawnRemedy(gateway *process.Instance, m catalog.Mode) Remedy {
	if app, pm2 := strings.CutPrefix(gateway.Owner.Name, "pm2"); pm2 && gateway.Owner.Kind == process.OwnerService {
		app = cmp.Or(strings.TrimSpace(app), "NAME")
		return Remedy{
			Summary:  m.Remedy,
			Steps:    []string{"change args in the app's entry of the pm2 ecosystem file; a plain pm2 restart keeps the old arguments and children"},
			Commands: []string{"pm2 delete " + app + " && pm2 start ecosystem.config.js --only " + app},
		}
	}
	what := fmt.Sprintf("the gateway (pid %d)", gateway.Main().PID)
	if gateway.Main().PID == 1 {
		what = "the container, whose PID 1 is the gateway,"
	}
	return Remedy{
		Summary: m.Remedy,
		Steps:   []string{"restart " + what + " with the change: its servers exit with it, unless they ignore a closed stdin"},
	}
}
