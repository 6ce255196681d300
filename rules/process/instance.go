package process

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpdoctor/scan"
)

// Instance is one running server with its launchers and helpers: the unit that is counted, shown and reaped. Clients and
// gateways are instances too, of their own role, and so are browsers that no server is above of.
type Instance struct {
	Table *Table

	Role     Role // RoleServer, RoleGateway, RoleClient or RoleHelper
	RootNode int32
	MainNode int32   // the process that does the work; the root while only launchers are left
	Members  []int32 // the root first, parents before children

	Name        string // as shown
	Identity    string // what copies of it have in common
	Recognition *Recognition

	// Service is the job of a service manager that it is, which watches one of its processes; nil for none. Being in a
	// unit's cgroup is not enough, since orphans inherit it.
	Service *scan.Service

	Owner   Owner
	OwnedBy *Instance   // the client, gateway or server that owns it; nil when none is known
	Owned   []*Instance // the servers that it owns itself, ascending by their root's PID
}

// setName names an instance by its main process. A launcher often names the package where the worker has only its
// script (`npm exec @azure-devops/mcp` over `node .../dist/index.js`), but copies may have lost either.
func (in *Instance) setName() {
	c := in.Recognition.Command
	in.Identity = c.Identity()
	in.Name = in.Recognition.Name
	if in.Name == "" {
		in.Name = c.Program
	}
	const longest = 60 // a name stands in titles and columns, and any user may choose one
	if len(in.Name) > longest {
		in.Name = strings.ToValidUTF8(in.Name[:longest], "") + "..."
	}
}

// String names an instance by its main process: "Claude Code (pid 71400)".
func (in *Instance) String() string { return fmt.Sprintf("%s (pid %d)", in.Name, in.Main().PID) }

// Root is the topmost process of the instance.
func (in *Instance) Root() *scan.Process { return in.Table.Process(in.RootNode) }

// Main is the process that does the work.
func (in *Instance) Main() *scan.Process { return in.Table.Process(in.MainNode) }

// Age returns how long the root has been running; false when that is not known.
func (in *Instance) Age() (time.Duration, bool) {
	started := in.Root().Started
	if started.IsZero() || in.Table.Now.IsZero() {
		return 0, false
	}
	return max(0, in.Table.Now.Sub(started)), true
}

// PIDs returns the PIDs of all members, ascending.
func (in *Instance) PIDs() []int {
	out := make([]int, len(in.Members))
	for i, m := range in.Members {
		out[i] = in.Table.Process(m).PID
	}
	slices.Sort(out)
	return out
}

// RSS is the sum of what the members have resident.
func (in *Instance) RSS() int64 { return in.sum((*scan.Process).RSS) }

// Swap is the sum of what the members have swapped out.
func (in *Instance) Swap() int64 { return in.sum((*scan.Process).Swap) }

// Size is RSS and swap: leaked servers are swapped out.
func (in *Instance) Size() int64 { return in.RSS() + in.Swap() }

func (in *Instance) sum(of func(*scan.Process) int64) (sum int64) {
	for _, m := range in.Members {
		sum += of(in.Table.Process(m))
	}
	return sum
}

// isHelper reports whether a member is a known helper of the instance, and not what the instance consists of.
func (in *Instance) isHelper(member int32) bool {
	return in.Table.Role(member) == RoleHelper && in.Role != RoleHelper
}

// Listen returns the sockets on which the instance accepts connections, those of unknown workers included. The debugging
// port of a browser is left out, since it serves the server and not clients.
func (in *Instance) Listen() []string {
	var out []string
	for _, m := range in.Members {
		if !in.isHelper(m) {
			out = append(out, in.Table.Process(m).Listen...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Inbound counts the connections to the instance's sockets; false when they were not read. Of each known helper's one is
// left out: the server drives its browser through the debugging port.
func (in *Instance) Inbound() (sum int, known bool) {
	for _, m := range in.Members {
		if c := in.Table.Process(m).InboundConnections; c != nil {
			n := *c
			if in.isHelper(m) {
				n = max(0, n-1)
			}
			sum, known = sum+n, true
		}
	}
	return sum, known
}

// InboundSilence is the longest time since any inbound connection last received data; false when that is not known of
// all connections.
func (in *Instance) InboundSilence() (longest time.Duration, known bool) {
	for _, m := range in.Members {
		p := in.Table.Process(m)
		if p.InboundConnections == nil || *p.InboundConnections == 0 {
			continue
		}
		if p.InboundSilenceSeconds == nil {
			return 0, false
		}
		longest = max(longest, time.Duration(*p.InboundSilenceSeconds)*time.Second)
	}
	return longest, true
}

// Unreadable reports whether a field of one of the members could not be read.
func (in *Instance) Unreadable(field string) bool {
	return slices.ContainsFunc(in.Members, func(m int32) bool { return slices.Contains(in.Table.Process(m).Unreadable, field) })
}

// Version is the version of the program: that of its installed package when it was looked up, else the one that a
// launcher's command line names; "" when neither is known.
func (in *Instance) Version() string {
	if v := in.Main().Version; v != "" {
		return v
	}
	for _, m := range in.Members {
		rec := in.Table.Recognitions[m]
		if rec != nil && strings.IndexAny(rec.Command.Version, "0123456789") == 0 {
			return rec.Command.Version
		}
	}
	return ""
}

// Port is the TCP port on which the instance listens, or that its command line names; "" for none.
func (in *Instance) Port() string {
	for _, l := range in.Listen() {
		if rest, ok := strings.CutPrefix(l, "tcp:"); ok {
			return rest[strings.LastIndexByte(rest, ':')+1:]
		}
	}
	port, _ := in.Recognition.Command.Flag("--port")
	if _, err := strconv.Atoi(port); err != nil {
		return ""
	}
	return port
}

// Launchers returns the names of the instance's launchers, sorted.
func (in *Instance) Launchers() []string {
	seen := map[string]bool{}
	for _, m := range in.Members {
		if in.Table.Role(m) == RoleLauncher {
			for _, l := range in.Table.Recognitions[m].Command.Launchers {
				seen[l] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// HasTerminal reports whether the process that does the work has a terminal.
func (in *Instance) HasTerminal() bool { return in.Main().TTY != "" && in.Main().TTY != "-" }

// NonInteractive reports whether a client runs without a person in front of it, as its command line says.
func (in *Instance) NonInteractive() bool {
	rec := in.Recognition
	return !in.HasTerminal() && rec.By != ByRelation && rec.Client.NonInteractive(rec.Command.Args)
}
