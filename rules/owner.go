package rules

import (
	"fmt"
	"path"
	"strings"

	"mcpdoctor/scan"
)

// OwnerKind is the sort of process that a server belongs to.
type OwnerKind string

// The kinds of owner. Nobody means an adopter (or, on Windows, a dead parent): a process that
// inherited the server and does not talk to it. Unknown is never to be read as nobody.
const (
	OwnerClient   OwnerKind = "client"
	OwnerGateway  OwnerKind = "gateway"
	OwnerService  OwnerKind = "service"
	OwnerTerminal OwnerKind = "terminal"
	OwnerNobody   OwnerKind = "nobody"
	OwnerUnknown  OwnerKind = "unknown"
)

// Owner is who a server belongs to, as far as the parents tell.
type Owner struct {
	Kind OwnerKind `json:"kind"`
	PID  int       `json:"pid,omitempty"` // 0 when there is no such process
	Name string    `json:"name,omitempty"`
}

// An owner is found by walking up from the topmost launcher of an instance. PPID 1 is neither
// necessary (a subreaper adopts too, and only the top of a chain is adopted) nor sufficient (a
// service has it from birth, and in a container PID 1 may be the client itself).

// owner says who an instance belongs to, as far as parents and service managers tell.
func (t *table) owner(in *instance) Owner {
	if in.service != nil {
		return Owner{Kind: OwnerService, PID: in.service.MainPID, Name: in.service.Manager + " " + in.service.Name}
	}
	up := t.forest.parent[in.rootNode]
	if up == none {
		return t.ownerless(in)
	}
	for at := up; at != none; at = t.forest.parent[at] {
		p := t.forest.procs[at]
		if t.adopter(at) {
			switch {
			case at != up: // somebody we do not know lives in between, and may be the client
				return t.stranger(up)
			case startedBy(p, t.forest.procs[in.rootNode], t.snap.Host.OS):
				return Owner{Kind: OwnerUnknown, PID: p.PID, Name: baseName(p)}
			}
			return Owner{Kind: OwnerNobody, PID: p.PID, Name: baseName(p)}
		}
		if over := t.of[at]; over != nil && over != in {
			switch over.role {
			case RoleClient:
				return Owner{Kind: OwnerClient, PID: p.PID, Name: over.name}
			case RoleGateway, RoleServer: // a server that starts servers is a gateway to them
				return Owner{Kind: OwnerGateway, PID: p.PID, Name: over.name}
			}
		}
		if job := t.services[at]; job != nil { // a script that a manager keeps, and that started this
			return Owner{Kind: OwnerService, PID: p.PID, Name: job.Manager + " " + job.Name}
		}
		if manager := supervisor(p); manager != "" {
			if p.PID == 1 && at == up && t.snap.Host.Services != nil {
				// As PID 1 it adopts too. Its jobs are known, and this is none of them.
				return Owner{Kind: OwnerNobody, PID: p.PID, Name: manager}
			}
			return Owner{Kind: OwnerService, PID: p.PID, Name: manager}
		}
		if terminal(p) {
			return Owner{Kind: OwnerTerminal, PID: p.PID, Name: baseName(p)}
		}
	}
	return t.stranger(up)
}

// stranger is a living parent of whom nothing is known.
func (t *table) stranger(node int32) Owner {
	p := t.forest.procs[node]
	return Owner{Kind: OwnerUnknown, PID: p.PID, Name: baseName(p)}
}

// ownerless judges an instance whose parent is not in the table. Only Windows keeps the number of
// a dead parent; elsewhere the kernel gives orphans a new one at once, so that an absent parent
// means that it could not be seen (hidepid, another namespace).
func (t *table) ownerless(in *instance) Owner {
	p := t.forest.procs[in.rootNode]
	switch l := t.forest.lineage[in.rootNode]; {
	case t.snap.Host.OS == "windows" && (l == missing || l == recycled):
		return Owner{Kind: OwnerNobody}
	case p.PPID > 0:
		return Owner{Kind: OwnerUnknown, PID: p.PPID}
	}
	return Owner{Kind: OwnerUnknown}
}

// adopter tells that a process inherits the children of others when these die: PID 1, or a
// process that asked to be a subreaper (prctl(2), PR_SET_CHILD_SUBREAPER). No file tells the
// latter, so they are known by name.
func (r *Recognised) adopter(node int32) bool {
	p := r.forest.procs[node]
	name := baseName(p)
	switch name {
	case "launchd", "init", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan", "runsvdir", "conmon", "upstart":
		return true
	case "systemd":
		return true // the machine's, or one of `systemd --user`
	}
	switch {
	case strings.HasPrefix(name, "containerd-shim"):
		return true
	case strings.HasPrefix(p.Name, "Relay("), p.Name == "SessionLeader": // WSL's /init, which renames its threads
		return true
	}
	// PID 1 of a container is whatever program the container runs, and may be the client itself.
	return p.PID == 1 && !r.snap.Host.Container && r.recs[node] == nil
}

// startedBy tells that an init of a container was itself told to start this very program, so that
// being its child is no adoption: `tini -- mcp-server`.
func startedBy(init, child *scan.Process, os string) bool {
	told, ran := Resolve(init, os), Resolve(child, os)
	return len(told.Launchers) > 0 && told.Program != "" && sameProgram(told, ran)
}

// supervisor names the manager that a process is, "" for all others. What such a process has as
// children it keeps: it starts them again when they end.
func supervisor(p *scan.Process) string {
	switch name := baseName(p); {
	case strings.HasPrefix(p.Name, "PM2 v"), len(p.Args) > 0 && strings.HasPrefix(p.Args[0], "PM2 v"),
		len(p.Args) > 1 && p.Args[0] == "PM2" && strings.Contains(strings.Join(p.Args, " "), "God Daemon"):
		return "pm2"
	case name == "supervisord":
		return "supervisord"
	case name == "runsv":
		return "runit"
	case name == "s6-supervise":
		return "s6"
	case name == "services.exe", name == "services" && strings.Contains(strings.ToLower(p.Cmdline), `\system32\services.exe`):
		return "windows"
	case name == "supervisord.py", len(p.Args) > 1 && path.Base(p.Args[1]) == "supervisord":
		return "supervisord"
	}
	return ""
}

// terminals are programs in which a person types: emulators, multiplexers, remote log-ins.
var terminals = map[string]bool{
	"alacritty": true, "ghostty": true, "gnome-terminal-server": true, "gnome-terminal-": true, "iterm2": true, "kitty": true, "konsole": true,
	"login": true, "mintty": true, "screen": true, "sshd": true, "sshd-session": true, "st": true, "terminal": true, "terminator": true,
	"tilix": true, "tmux": true, "tmux: server": true, "urxvt": true, "warp": true, "wezterm": true, "wezterm-gui": true,
	"windowsterminal": true, "xfce4-terminal": true, "xterm": true, "zellij": true, "explorer": true, "foot": true,
}

var shells = map[string]bool{
	"sh": true, "bash": true, "zsh": true, "fish": true, "dash": true, "ksh": true, "tcsh": true, "csh": true, "ash": true, "busybox": true,
	"nu": true, "xonsh": true, "elvish": true, "cmd": true, "pwsh": true, "powershell": true,
}

// terminal tells that a person types into this process: a terminal program, a log-in shell
// ("-zsh"), or a shell that has a terminal and runs no script.
func terminal(p *scan.Process) bool {
	name := baseName(p)
	if terminals[strings.ToLower(name)] || strings.HasPrefix(p.Name, "tmux: ") || strings.HasPrefix(name, "sshd") {
		return true
	}
	if len(p.Args) > 0 && strings.HasPrefix(p.Args[0], "-") && shells[strings.TrimPrefix(name, "-")] {
		return true
	}
	return shells[name] && len(p.Args) == 1 && p.TTY != "-"
}

func terminalOrShell(p *scan.Process) bool {
	return terminal(p) || shells[strings.TrimPrefix(baseName(p), "-")]
}

// otherStarter tells that a process starts programs on behalf of others and is nobody's client.
func otherStarter(p *scan.Process) bool {
	switch strings.ToLower(baseName(p)) {
	case "cron", "crond", "atd", "anacron", "sudo", "su", "doas", "make", "xargs", "find", "parallel", "watch", "timeout", "strace", "gdb",
		"script", "expect", "dockerd", "containerd", "runc", "crun", "systemd-run", "flatpak", "snap", "bwrap", "kthreadd", "entr", "watchexec",
		"nodemon", "concurrently", "pm2", "forever", "svchost", "taskeng", "taskhostw":
		return true
	}
	return false
}

// baseName is the name of the program that a process runs, without its folder and without ".exe".
func baseName(p *scan.Process) string {
	first := p.Name
	switch {
	case len(p.Args) > 0 && p.Args[0] != "":
		first = p.Args[0]
		if strings.HasPrefix(first, "/") || !strings.Contains(first, " ") {
			break
		}
		if strings.HasPrefix(p.Name, "tmux") || strings.Contains(first, ": ") {
			first = p.Name // a rewritten title, such as "tmux: server" or "sshd: me@pts/0"
			if first == "" {
				first, _, _ = strings.Cut(p.Args[0], ":")
			}
		}
	case p.Cmdline != "":
		first = programWord(p.Cmdline)
	}
	first = strings.ReplaceAll(first, `\`, "/")
	if i := strings.LastIndexByte(first, '/'); i >= 0 && i+1 < len(first) {
		first = first[i+1:]
	}
	if low := strings.ToLower(first); strings.HasSuffix(low, ".exe") {
		first = first[:len(first)-len(".exe")]
	}
	return first
}

// programWord is the program's path in a Windows command line, whose quotes are often missing:
// `C:\Program Files\nodejs\node.exe server.js`.
func programWord(line string) string {
	if rest, ok := strings.CutPrefix(line, `"`); ok {
		word, _, _ := strings.Cut(rest, `"`)
		return word
	}
	const scanned = 512 // longer paths are not programs
	if i := strings.Index(strings.ToLower(line[:min(len(line), scanned)]), ".exe"); i >= 0 {
		return line[:i+len(".exe")]
	}
	word, _, _ := strings.Cut(line, " ")
	return word
}

// says returns an owner as a phrase: "client Claude Code (pid 71400)".
func (o Owner) says() string {
	name := o.Name
	if name == "" {
		name = "a process"
	}
	if o.PID == 0 {
		return name
	}
	return fmt.Sprintf("%s (pid %d)", name, o.PID)
}
