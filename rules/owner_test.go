package rules

import (
	"testing"
	"time"

	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
	"mcpdoctor/testdata/tables"
)

// Who owns a server, by all that can be above it.
func TestOwner(t *testing.T) {
	const server = "github-mcp-server stdio"
	for _, c := range []struct {
		name    string
		build   func(h *tables.Machine)
		kind    process.OwnerKind
		pid     int
		verdict Verdict
	}{
		{"a client", func(h *tables.Machine) { h.Run(150, 100, time.Hour, "claude"); h.Run(200, 150, time.Hour, server) }, process.OwnerClient, 150, InUse},
		{"a client behind a shell script that is unknown", func(h *tables.Machine) {
			h.Run(150, 100, time.Hour, "claude")
			h.Run(160, 150, time.Hour, "bash /home/dev/start.sh")
			h.Run(200, 160, time.Hour, server)
		}, process.OwnerClient, 150, InUse},
		{"a gateway", func(h *tables.Machine) {
			h.Run(150, 1, time.Hour, "mcp-proxy --port 8000 -- "+server)
			h.Run(200, 150, time.Hour, server)
		}, process.OwnerGateway, 150, InUse},
		{"a program on an SDK", func(h *tables.Machine) {
			h.Run(150, 100, time.Hour, "node my-agent.js")
			h.Run(200, 150, time.Hour, server)
		}, process.OwnerClient, 150, InUse},
		{"a person at a shell", func(h *tables.Machine) { h.Run(200, 100, time.Hour, server) }, process.OwnerTerminal, 100, InUse},
		{"a person at tmux", func(h *tables.Machine) {
			h.Run(150, 1, time.Hour, "tmux new-session -d").Name = "tmux: server"
			h.Run(160, 150, time.Hour, "-zsh")
			h.Run(200, 160, time.Hour, server)
		}, process.OwnerTerminal, 160, InUse},
		{"systemd, as a job", func(h *tables.Machine) {
			h.Run(200, 1, time.Hour, server)
			h.Host.Services = []scan.Service{{Manager: "systemd", Name: "mcp.service", MainPID: 200}}
		}, process.OwnerService, 200, Supervised},
		{"systemd, by a script that is the job", func(h *tables.Machine) {
			h.Run(150, 1, time.Hour, "sh /opt/run.sh")
			h.Run(200, 150, time.Hour, server)
			h.Host.Services = []scan.Service{{Manager: "systemd", Name: "mcp.service", MainPID: 150}}
		}, process.OwnerService, 150, Supervised},
		{"pm2", func(h *tables.Machine) {
			h.Run(150, 1, time.Hour, "PM2 v7.0.4: God Daemon (/root/.pm2)").Args = []string{"PM2 v7.0.4: God Daemon (/root/.pm2)"}
			h.Run(200, 150, time.Hour, server)
		}, process.OwnerService, 150, Supervised},
		{"systemd --user, which only adopts", func(h *tables.Machine) {
			h.Run(150, 1, time.Hour, "/usr/lib/systemd/systemd --user")
			h.Run(200, 150, time.Hour, server)
		}, process.OwnerNobody, 150, Leaked},
		{"WSL's relay, which only adopts", func(h *tables.Machine) {
			h.Run(150, 1, time.Hour, "/init").Name = "Relay(151)"
			h.Run(200, 150, time.Hour, server)
		}, process.OwnerNobody, 150, Leaked},
		{"tini -s, which adopts", func(h *tables.Machine) {
			h.Run(150, 100, 2*time.Hour, "tini -s -- claude")
			h.Run(200, 150, time.Hour, server)
		}, process.OwnerNobody, 150, Leaked},
		{"cron, which starts for others", func(h *tables.Machine) {
			h.Run(150, 1, time.Hour, "/usr/sbin/cron -f")
			h.Run(160, 150, time.Hour, "/bin/sh -c /home/dev/job.sh")
			h.Run(200, 160, time.Hour, server)
		}, process.OwnerUnknown, 160, Unknown},
		{"a parent that cannot be seen", func(h *tables.Machine) { h.Run(200, 4444, time.Hour, server) }, process.OwnerUnknown, 4444, Unknown},
		{"the container's own init", func(h *tables.Machine) {
			h.Host.Container = true
			h.Processes = nil
			h.Run(1, 0, time.Hour, "tini -- "+server)
			h.Run(7, 1, time.Hour, server)
		}, process.OwnerUnknown, 0, Unknown},
		{"a client that is PID 1 of its container", func(h *tables.Machine) {
			h.Host.Container = true
			h.Processes = nil
			h.Run(1, 0, time.Hour, "python -m hermes_cli.main gateway run")
			h.Run(7, 1, time.Hour, server)
		}, process.OwnerClient, 1, InUse},
		{"an unknown program that is PID 1 of its container", func(h *tables.Machine) {
			h.Host.Container = true
			h.Processes = nil
			h.Run(1, 0, time.Hour, "python app.py")
			h.Run(7, 1, time.Hour, server)
		}, process.OwnerClient, 1, InUse},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := tables.NewMachine()
			c.build(h)
			r := Judge(process.Recognise(&h.Snapshot), Options{})
			if len(r.Servers) != 1 {
				t.Fatalf("there are %d servers", len(r.Servers))
			}
			s := r.Servers[0]
			if s.Owner.Kind != c.kind || s.Owner.PID != c.pid || s.Verdict != c.verdict {
				t.Errorf("owner %s %d (%s), %s because %s; want %s %d, %s", s.Owner.Kind, s.Owner.PID, s.Owner.Name, s.Verdict, s.Because, c.kind, c.pid, c.verdict)
			}
		})
	}
}
