package tables

import (
	"strings"
	"time"

	"mcpdoctor/scan"
)

// Noon is when machines are looked at.
var Noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

// Machine is a small machine: an init, a shell on a terminal (pid 100), and what a test adds.
type Machine struct{ scan.Snapshot }

// NewMachine returns a machine with nothing else on it.
func NewMachine() *Machine {
	h := &Machine{scan.Snapshot{Schema: scan.Schema, Kind: scan.Kind, Taken: Noon, Host: scan.Host{OS: "linux", Services: []scan.Service{}}}}
	h.Run(1, 0, 1000*time.Hour, "/usr/lib/systemd/systemd")
	h.Run(50, 1, 100*time.Hour, "sshd: dev@pts/0")
	h.Run(100, 50, 99*time.Hour, "-bash").TTY = "pts/0"
	return h
}

// Run adds a process of that age. It is sleeping, has no terminal and listens nowhere; its stdin was
// not looked at.
func (h *Machine) Run(pid, ppid int, age time.Duration, line string) *scan.Process {
	rss := int64(64 << 20)
	h.Processes = append(h.Processes, scan.Process{
		PID: pid, PPID: ppid, Start: int64(1e8) - int64(age/(10*time.Millisecond)), Started: Noon.Add(-age),
		Args: strings.Fields(line), State: "S", RSSBytes: &rss, TTY: "-", Listen: []string{},
	})
	return &h.Processes[len(h.Processes)-1]
}

// Pipe is a stdin or stdout that is a pipe.
func Pipe(peer scan.StdinPeer, holders ...int) *scan.Stdin {
	return &scan.Stdin{Type: scan.StdinPipe, Peer: peer, Holders: holders}
}
