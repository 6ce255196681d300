package pasted

import (
	"path"
	"strings"

	"mcpdoctor/scan"
)

// psUnquote removes what surrounds a line in a bug report: trailing space, a quotation mark, and the whole
// line if it is a fence. The indentation stays: columns depend on it.
func psUnquote(line string) string {
	line = strings.TrimRight(line, " \t\r\n")
	if quoted, ok := strings.CutPrefix(line, ">"); ok {
		line = strings.TrimPrefix(quoted, " ")
	}
	if t := strings.TrimSpace(line); t == "" || strings.HasPrefix(t, "```") || strings.HasPrefix(t, "~~~") {
		return ""
	}
	return line
}

// A psForest follows the tree that ps --forest draws before the commands:
//
//	systemd
//	sshd
//	 \_ sshd: dev
//	 |   \_ bash
//	     \_ node
//
// Each level is four columns wide. The children of the first process stand at the edge, and so do processes
// whose parent is not shown: their parents are unknown.
type psForest struct {
	path []int // the processes from the edge down to the last line
}

// psBranch is what is drawn before a command.
const psBranch = `\_ `

// plant removes the drawing from the command of the next line. A line without a PPID gets the parent that is
// drawn, if the text is still aligned: edge is where the header of the command begins.
func (f *psForest) plant(p *psLine, edge int) {
	bars := strings.TrimLeft(p.Cmdline, " |")
	command, drawn := strings.CutPrefix(bars, psBranch)
	if !drawn {
		f.path = append(f.path[:0], p.PID)
		return
	}
	branch := p.commandAt + len(p.Cmdline) - len(bars) // where the drawing bends
	p.Cmdline = strings.TrimLeft(command, " ")

	level := (branch-edge-1)/4 + 1
	if branch <= edge || (branch-edge-1)%4 != 0 || level > len(f.path) {
		f.path = nil // not aligned: the lines below are not either
		return
	}
	if p.PPID == scan.UnknownPPID {
		p.PPID = f.path[level-1]
	}
	f.path = append(f.path[:level], p.PID)
}

// tidy interprets the command column. A name in brackets is what ps shows without a command line: a kernel
// thread, a zombie, a program that cleared it. BusyBox adds the name of a process in braces if it differs
// from its program.
func (p *psLine) tidy(whole bool) {
	command, defunct := strings.CutSuffix(p.Cmdline, "<defunct>")
	command = strings.TrimSpace(command)
	if defunct {
		p.State = "Z"
	}
	if name, rest, ok := strings.Cut(strings.TrimPrefix(command, "{"), "} "); ok && command[0] == '{' {
		p.Name, command = name, rest
	}
	inner := command
	if n := len(command); n > 2 && (command[0] == '[' && command[n-1] == ']' || p.State == "Z" && command[0] == '(' && command[n-1] == ')') {
		inner = command[1 : n-1]
	}
	switch {
	case !whole:
		p.Name, p.Cmdline = inner[strings.LastIndexByte(inner, '/')+1:], "" // macOS shows the path of the program
	case inner != command || p.State == "Z":
		p.Name, p.Cmdline = inner, ""
	default:
		p.Cmdline = command
	}
	if p.TTY == "?" || p.TTY == "??" {
		p.TTY = "-"
	}
}

// A psSystem recognises the operating system by what only one shows in ps.
type psSystem struct {
	linux, darwin bool
}

// see looks at a line before it is tidied.
func (s *psSystem) see(p *psLine) {
	program, _, _ := strings.Cut(p.Cmdline, " ")
	switch {
	case program == "[kthreadd]", p.TTY == "?", p.PID == 1 && path.Base(program) == "systemd":
		s.linux = true
	case p.PID == 1 && program == "/sbin/launchd", p.TTY == "??",
		strings.HasPrefix(p.Cmdline, "/Applications/"), strings.HasPrefix(p.Cmdline, "/System/"):
		s.darwin = true
	}
}

// name returns the system, or nothing if it is unknown or ambiguous.
func (s *psSystem) name() string {
	switch {
	case s.linux && !s.darwin:
		return "linux"
	case s.darwin && !s.linux:
		return "darwin"
	}
	return ""
}
