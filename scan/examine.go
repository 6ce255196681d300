package scan

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"time"
)

// ExamineOptions say where to look closer, how closely and how patiently.
type ExamineOptions struct {
	// Root is the procfs mount to read, "/proc" when empty; see [Options].
	Root string

	// Brief are clients, and servers that one seems to talk to: when their stdin turns out to be
	// open, their sockets do not matter, so that Stdout, Listen and InboundConnections are left out;
	// and of servers CWD too. It halves the cost for a machine full of servers that are in use.
	Brief []int

	// Deadline is how long the whole look may take until what has not come back is given up; one
	// second when zero.
	Deadline time.Duration
}

func (o ExamineOptions) deadline() time.Duration {
	if o.Deadline <= 0 {
		return defaultDeadline
	}
	return o.Deadline
}

// Examine looks closer at the processes pids and fills in, in place, what [Take] leaves out: Stdin,
// Listen, InboundConnections and InboundSilenceSeconds, SwapBytes, CWD, and the jobs of Host.Services that these processes are; of those whose parent is not among them, Cgroup, Exe and Env too, which
// what is below inherits. No process is signalled, stopped or written to, and nothing is forked.
//
// A fact is only ever attached to the process that the snapshot names: PID and start time are
// compared through the same handle that everything is read through. Processes that are gone, whose
// PID changed hands, that are dead (state Z) or whose start time is unknown are left as they were.
//
// A field that the system refused, or did not give before the deadline, is named in Unreadable. The
// names that are no JSON fields of their own are "stdin" (its type could not be seen), "holders"
// (see [Holders]) and "service": a service manager may keep the process, but it could not be asked
// without a fork, which is what [Services] is for.
//
// Only Linux shows the other end of a standard input; elsewhere Stdin stays nil.
func Examine(ctx context.Context, s *Snapshot, pids []int, o ExamineOptions) {
	ctx, cancel := context.WithTimeout(ctx, o.deadline())
	defer cancel()
	rows := s.examinable(pids)
	examine(ctx, s, rows, o)
	findServices(ctx, s, rows)
}

// Holders fills in Stdin.Holders of those of the processes pids whose standard input is open: who
// holds the other end; and Stdout.Holders where the output is: who reads it. It passes over the
// descriptors of every process, 100 ms and more on a large machine, so that it is asked for the few
// where the answer decides something.
//
// A process that holds the other end of its own standard input is named as well, like any other.
// Holders of processes that may not be looked into are missed; then "holders" is in Unreadable, and
// the processes named are some of them. An empty list means that nobody seen holds it: the holder is
// in another PID namespace, or the end is on its way between two processes.
func Holders(ctx context.Context, s *Snapshot, pids []int, o ExamineOptions) {
	ctx, cancel := context.WithTimeout(ctx, o.deadline())
	defer cancel()
	open := slices.DeleteFunc(s.examinable(pids), func(p *Process) bool {
		return (p.Stdin == nil || p.Stdin.Peer != PeerOpen) && (p.Stdout == nil || p.Stdout.Peer != PeerOpen)
	})
	if len(open) > 0 {
		holders(ctx, s, open, o)
	}
}

// ReadPSS fills in PSSBytes of the processes pids: the memory that would come back. The kernel walks the
// page tables for it, with the lock of the process's memory held: 0.2 ms for a small server, 20 ms
// for one of 10 GiB. What it refuses, or does not give before the deadline, is named in Unreadable.
// Only Linux tells; elsewhere PSSBytes stays nil.
func ReadPSS(ctx context.Context, s *Snapshot, pids []int, o ExamineOptions) {
	ctx, cancel := context.WithTimeout(ctx, o.deadline())
	defer cancel()
	if rows := s.examinable(pids); len(rows) > 0 {
		readPSS(ctx, s, rows, o)
	}
}

// examinable returns the rows of the processes that can be looked at, each once, in order of PID.
func (s *Snapshot) examinable(pids []int) []*Process {
	pids = slices.Clone(pids)
	slices.Sort(pids)
	var rows []*Process
	for _, pid := range slices.Compact(pids) {
		if p := s.find(pid); p != nil && p.Start != 0 && p.State != "Z" {
			rows = append(rows, p)
		}
	}
	return rows
}

// setUnreadable says whether the system refused a field.
func (p *Process) setUnreadable(field string, refused bool) {
	i := slices.Index(p.Unreadable, field)
	switch {
	case refused && i < 0:
		// Take lets many processes share one list.
		p.Unreadable = append(slices.Clip(p.Unreadable), field)
	case !refused && i >= 0:
		p.Unreadable = slices.Concat(p.Unreadable[:i], p.Unreadable[i+1:])
		if len(p.Unreadable) == 0 {
			p.Unreadable = nil
		}
	}
}

// envNames are the environment variables that a snapshot may hold: those that name the program that
// started a process or the manager that keeps it. None of them carries a secret, and no other is
// ever read into a snapshot. They are inherited: each says where a process comes from, none proves
// by itself who keeps it now.
//
// "name" is pm2's name for its app and is too common a word to mean anything else: it is only taken
// next to "pm_id".
var envNames = []string{
	// Clients.
	"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", // Claude Code
	"CODEX_MANAGED_BY_BUN", "CODEX_MANAGED_BY_NPM", "CODEX_SANDBOX", // Codex
	"CURSOR_AGENT", "CURSOR_TRACE_ID", // Cursor
	"ELECTRON_RUN_AS_NODE",     // a desktop application that starts its own Node
	"GEMINI_CLI",               // Gemini CLI
	"HERMES_MCP_PARENT_PID",    // hermes-agent: the client's PID
	"OPENCODE",                 // opencode
	"VSCODE_CWD", "VSCODE_PID", // VS Code and what is built from it

	// Daemons that outlive their clients by design.
	"CODEGRAPH_DAEMON_INTERNAL",

	// Terminals, and what keeps them.
	"STY", "TERM_PROGRAM", "TMUX",

	// Launchers.
	"npm_config_user_agent",        // npm, pnpm, yarn or bun, with version
	"npm_lifecycle_event",          // "npx", or the script of package.json
	"UV", "UV_RUN_RECURSION_DEPTH", // uv, uvx

	// Service managers.
	"INVOCATION_ID", "MANAGERPID", "SYSTEMD_EXEC_PID", // systemd
	"PM2_HOME", "name", "pm_id", // pm2
	"SUPERVISOR_ENABLED", "SUPERVISOR_GROUP_NAME", "SUPERVISOR_PROCESS_NAME", // supervisord
	"XPC_SERVICE_NAME", // launchd
}

// maxEnvValue is the longest value that is kept; no honest one comes near it but a path.
const maxEnvValue = 1 << 10

// chosenEnv is envNames for looking up.
var chosenEnv = func() map[string]bool {
	chosen := make(map[string]bool, len(envNames))
	for _, name := range envNames {
		chosen[name] = true
	}
	return chosen
}()

// chooseEnv keeps the chosen ones of an environment's entries ("NAME=value"), the first of each
// name, as getenv(3) does. It returns nil when there are none.
func chooseEnv(entries iter.Seq[[]byte]) map[string]string {
	var env map[string]string
	for entry := range entries {
		name, value, ok := bytes.Cut(entry, []byte("="))
		if !ok || !chosenEnv[string(name)] || len(value) > maxEnvValue {
			continue
		}
		if _, seen := env[string(name)]; seen {
			continue
		}
		if env == nil {
			env = make(map[string]string)
		}
		env[string(name)] = string(value)
	}
	if _, pm2 := env["pm_id"]; !pm2 {
		delete(env, "name")
	}
	if len(env) == 0 {
		return nil
	}
	return env
}
