package process

import (
	"fmt"
	"path"
	"strings"

	"mcpdoctor/rules/command"
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
func (t *Table) owner(in *Instance) Owner {
	if in.Service != nil {
		return Owner{Kind: OwnerService, PID: in.Service.MainPID, Name: in.Service.Manager + " " + in.Service.Name}
	}
	up := t.Forest.Parent[in.RootNode]
	if up == None {
		return t.ownerless(in)
	}
	for at := up; at != None; at = t.Forest.Parent[at] {
		p := t.Forest.Processes[at]
		if t.IsAdopter(at) {
			switch {
			case at != up: // somebody we do not know lives in between, and may be the client
				return t.stranger(up)
			case startedBy(p, t.Forest.Processes[in.RootNode], t.Snapshot.Host.OS):
				return Owner{Kind: OwnerUnknown, PID: p.PID, Name: BaseName(p)}
			}
			return Owner{Kind: OwnerNobody, PID: p.PID, Name: BaseName(p)}
		}
		if over := t.InstanceOf[at]; over != nil && over != in {
			switch over.Role {
			case RoleClient:
				return Owner{Kind: OwnerClient, PID: p.PID, Name: over.Name}
			case RoleGateway, RoleServer: // a server that starts servers is a gateway to them
				return Owner{Kind: OwnerGateway, PID: p.PID, Name: over.Name}
			}
		}
		if job := t.services[at]; job != nil { // a script that a manager keeps, and that started this
			return Owner{Kind: OwnerService, PID: p.PID, Name: job.Manager + " " + job.Name}
		}
		if manager := supervisor(p); manager != "" {
			if p.PID == 1 && at == up && t.Snapshot.Host.Services != nil {
				// As PID 1 it adopts too. Its jobs are known, and this is none of them.
				return Owner{Kind: OwnerNobody, PID: p.PID, Name: manager}
			}
			return Owner{Kind: OwnerService, PID: p.PID, Name: manager}
		}
		if Terminal(p) {
			return Owner{Kind: OwnerTerminal, PID: p.PID, Name: BaseName(p)}
		}
	}
	return t.stranger(up)
}

// stranger is a living parent of whom nothing is known.
func (t *Table) stranger(node int32) Owner {
	p := t.Forest.Processes[node]
	return Owner{Kind: OwnerUnknown, PID: p.PID, Name: BaseName(p)}
}

// ownerless judges an instance whose parent is not in the table. Only Windows keeps the number of
// a dead parent; elsewhere the kernel gives orphans a new one at once, so that an absent parent
// means that it could not be seen (hidepid, another namespace).
func (t *Table) ownerless(in *Instance) Owner {
	p := t.Forest.Processes[in.RootNode]
	switch l := t.Forest.ParentStates[in.RootNode]; {
	case t.Snapshot.Host.OS == "windows" && (l == ParentMissing || l == ParentReused):
		return Owner{Kind: OwnerNobody}
	case p.PPID > 0:
		return Owner{Kind: OwnerUnknown, PID: p.PPID}
	}
	return Owner{Kind: OwnerUnknown}
}

// adopter tells that a process inherits the children of others when these die: PID 1, or a
// process that asked to be a subreaper (prctl(2), PR_SET_CHILD_SUBREAPER). No file tells the
// latter, so they are known by name.
func (r *Recognised) IsAdopter(node int32) bool {
	p := r.Forest.Processes[node]
	name := BaseName(p)
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
	return p.PID == 1 && !r.Snapshot.Host.Container && r.Recognitions[node] == nil
}

// startedBy tells that an init of a container was itself told to start this very program, so that
// being its child is no adoption: `tini -- mcp-server`.
func startedBy(init, child *scan.Process, os string) bool {
	told, ran := command.Parse(init, os), command.Parse(child, os)
	return len(told.Launchers) > 0 && told.Program != "" && command.SameProgram(told, ran)
}

// supervisor names the manager that a process is, "" for all others. What such a process has as
// children it keeps: it starts them again when they end.
func supervisor(p *scan.Process) string {
	switch name := BaseName(p); {
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
func Terminal(p *scan.Process) bool {
	name := BaseName(p)
	if terminals[strings.ToLower(name)] || strings.HasPrefix(p.Name, "tmux: ") || strings.HasPrefix(name, "sshd") {
		return true
	}
	if len(p.Args) > 0 && strings.HasPrefix(p.Args[0], "-") && shells[strings.TrimPrefix(name, "-")] {
		return true
	}
	return shells[name] && len(p.Args) == 1 && p.TTY != "-"
}

func TerminalOrShell(p *scan.Process) bool {
	return Terminal(p) || shells[strings.TrimPrefix(BaseName(p), "-")]
}

// otherStarter tells that a process starts programs on behalf of others and is nobody's client.
func OtherStarter(p *scan.Process) bool {
	switch strings.ToLower(BaseName(p)) {
	case "cron", "crond", "atd", "anacron", "sudo", "su", "doas", "make", "xargs", "find", "parallel", "watch", "timeout", "strace", "gdb",
		"script", "expect", "dockerd", "containerd", "runc", "crun", "systemd-run", "flatpak", "snap", "bwrap", "kthreadd", "entr", "watchexec",
		"nodemon", "concurrently", "pm2", "forever", "svchost", "taskeng", "taskhostw":
		return true
	}
	return false
}

// baseName is the name of the program that a process runs, without its folder and without ".exe".
func BaseName(p *scan.Process) string {
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
func (o Owner) String() string {
	name := o.Name
	if name == "" {
		name = "a process"
	}
	if o.PID == 0 {
		return name
	}
	return fmt.Sprintf("%s (pid %d)", name, o.PID)
}
