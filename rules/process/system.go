package process

import (
	"path"
	"strings"

	"mcpdoctor/rules/catalog"
	"mcpdoctor/scan"
)

// The processes around MCP: adopters, supervisors, terminals, shells, and others that start programs. Most of their names
// are lists of the catalog.

var (
	adopters  = catalog.List("adopters")
	terminals = catalog.List("terminals")
	shells    = catalog.List("shells")
	starters  = catalog.List("starters")
)

// IsAdopter reports whether a process inherits the children of others that exit: PID 1, or a process that asked to be a
// subreaper (prctl(2), PR_SET_CHILD_SUBREAPER). No file shows the latter, so they are known by name.
func (r *Recognised) IsAdopter(node int32) bool {
	p := r.Process(node)
	name := BaseName(p)
	return adopters(name) || strings.HasPrefix(name, "containerd-shim") ||
		strings.HasPrefix(p.Name, "Relay(") || p.Name == "SessionLeader" || // WSL's /init, which renames its threads
		// PID 1 of a container is whatever program the container runs, and may be the client itself.
		p.PID == 1 && !r.Snapshot.Host.Container && r.Recognitions[node] == nil
}

// supervisor returns the service manager that a process is, "" for none. It starts its children again when they exit.
func supervisor(p *scan.Process) string {
	switch name := BaseName(p); {
	case strings.HasPrefix(p.Name, "PM2 v"), len(p.Args) > 0 && strings.HasPrefix(p.Args[0], "PM2 v"),
		len(p.Args) > 1 && p.Args[0] == "PM2" && strings.Contains(strings.Join(p.Args, " "), "God Daemon"):
		return "pm2"
	case name == "supervisord", name == "supervisord.py", len(p.Args) > 1 && path.Base(p.Args[1]) == "supervisord":
		return "supervisord"
	case name == "runsv":
		return "runit"
	case name == "s6-supervise":
		return "s6"
	case name == "services" && strings.Contains(strings.ToLower(p.Cmdline), `\system32\services.exe`):
		return "windows"
	}
	return ""
}

// Terminal reports whether a person types into a process: a terminal program, a log-in shell ("-zsh"), or a shell that
// has a terminal and runs no script.
func Terminal(p *scan.Process) bool {
	name := BaseName(p)
	switch {
	case terminals(strings.ToLower(name)), strings.HasPrefix(p.Name, "tmux: "), strings.HasPrefix(name, "sshd"):
		return true
	case len(p.Args) > 0 && strings.HasPrefix(p.Args[0], "-") && shells(strings.TrimPrefix(name, "-")):
		return true
	}
	return shells(name) && len(p.Args) == 1 && p.TTY != "-"
}

// TerminalOrShell reports whether a process is a terminal or any shell.
func TerminalOrShell(p *scan.Process) bool {
	return Terminal(p) || shells(strings.TrimPrefix(BaseName(p), "-"))
}

// OtherStarter reports whether a process starts programs on behalf of others and is a client of none.
func OtherStarter(p *scan.Process) bool {
	return starters(strings.ToLower(BaseName(p)))
}

// BaseName is the name of the program that a process runs, without its folder and without ".exe".
func BaseName(p *scan.Process) string {
	first := p.Name
	switch {
	case len(p.Args) > 0 && p.Args[0] != "":
		first = p.Args[0]
		isTitle := strings.Contains(first, ": ") || strings.HasPrefix(p.Name, "tmux") && strings.Contains(first, " ")
		if isTitle && first[0] != '/' { // "tmux: server", "sshd: me@pts/0"
			if first = p.Name; first == "" {
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
	if strings.HasSuffix(strings.ToLower(first), ".exe") {
		first = first[:len(first)-len(".exe")]
	}
	return first
}

// programWord is the path of the program in a Windows command line, whose quotes are often missing:
// `C:\Program Files\nodejs\node.exe server.js`.
func programWord(line string) string {
	if rest, ok := strings.CutPrefix(line, `"`); ok {
		word, _, _ := strings.Cut(rest, `"`)
		return word
	}
	const searched = 512 // longer paths are not programs
	if i := strings.Index(strings.ToLower(line[:min(len(line), searched)]), ".exe"); i >= 0 {
		return line[:i+len(".exe")]
	}
	word, _, _ := strings.Cut(line, " ")
	return word
}

// CommandLine is the command line of a process in one string.
func CommandLine(p *scan.Process) string {
	switch {
	case len(p.Args) > 0:
		return strings.Join(p.Args, " ")
	case p.Cmdline != "":
		return p.Cmdline
	}
	return "[" + p.Name + "]"
}
