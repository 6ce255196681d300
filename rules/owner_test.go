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

func TestForest(t *testing.T) {
	row := func(pid, ppid int, start int64) scan.Process { return scan.Process{PID: pid, PPID: ppid, Start: start} }
	for _, c := range []struct {
		name string
		rows []scan.Process
		want map[int]process.ParentState
	}{
		{"a tree", []scan.Process{row(1, 0, 1), row(2, 1, 2), row(3, 2, 3)}, map[int]process.ParentState{1: process.ParentNone, 2: process.ParentAlive, 3: process.ParentAlive}},
		{"a parent younger than its child", []scan.Process{row(5, 0, 9), row(6, 5, 2)}, map[int]process.ParentState{6: process.ParentReused}},
		{"born in the same tick", []scan.Process{row(5, 0, 2), row(6, 5, 2)}, map[int]process.ParentState{6: process.ParentAlive}},
		{"a start that is not known", []scan.Process{row(5, 0, 9), row(6, 5, 0)}, map[int]process.ParentState{6: process.ParentAlive}},
		{"a parent that is not there", []scan.Process{row(6, 5, 2)}, map[int]process.ParentState{6: process.ParentMissing}},
		{"a process that is its own parent", []scan.Process{row(6, 6, 2)}, map[int]process.ParentState{6: process.ParentCyclic}},
		{"a circle", []scan.Process{row(4, 6, 0), row(5, 4, 0), row(6, 5, 0), row(7, 6, 0)}, map[int]process.ParentState{4: process.ParentCyclic, 5: process.ParentAlive, 6: process.ParentAlive, 7: process.ParentAlive}},
		{"parents that are not told", []scan.Process{row(4, -1, 0)}, map[int]process.ParentState{4: process.ParentUnknown}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := process.NewForest(&scan.Snapshot{Processes: c.rows})
			visited := map[int]int{}
			f.Walk(func(n int32) { visited[f.Processes[n].PID]++ })
			for _, r := range c.rows {
				if visited[r.PID] != 1 {
					t.Errorf("pid %d is visited %d times", r.PID, visited[r.PID])
				}
			}
			for pid, want := range c.want {
				if got := f.ParentStates[f.Node(pid)]; got != want {
					t.Errorf("pid %d has lineage %d, want %d", pid, got, want)
				}
			}
		})
	}
}

// A forest has each process once, with its parent before it, whatever the table says.
func FuzzForest(f *testing.F) {
	f.Add([]byte{1, 0, 1, 2, 1, 2, 3, 2, 3})
	f.Add([]byte{4, 6, 0, 5, 4, 0, 6, 5, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var s scan.Snapshot
		for i := 0; i+2 < len(b); i += 3 {
			s.Processes = append(s.Processes, scan.Process{PID: int(b[i] % 32), PPID: int(b[i+1]%34) - 1, Start: int64(b[i+2])})
		}
		forest := process.NewForest(&s)
		seen := make([]bool, len(forest.Processes))
		n := 0
		forest.Walk(func(node int32) {
			if seen[node] {
				t.Fatalf("node %d is visited twice", node)
			}
			if up := forest.Parent[node]; up != process.None && !seen[up] {
				t.Fatalf("node %d is visited before its parent", node)
			}
			seen[node] = true
			n++
		})
		if n != len(s.Processes) {
			t.Fatalf("%d of %d processes are visited", n, len(s.Processes))
		}
	})
}
