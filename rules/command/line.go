package command

import (
	"cmp"
	"regexp"
	"strings"
	"sync"

	"mcpdoctor/scan"
)

// Line is the argument vector of a process.
type Line struct {
	Words []string

	os     string
	folder string // where relative paths begin; empty if unknown

	// On Windows text is the whole line, and starts says where each word begins in it: what follows `cmd /c` has
	// quotes of its own, which the words have lost.
	text   string
	starts []int
}

// LineOf returns the line of a process. It is empty for kernel threads and zombies.
func LineOf(p *scan.Process, os string) Line {
	l := Line{os: os, folder: p.CWD}
	switch {
	case p.State == "Z":
	case len(p.Args) > 0 && os == "windows" && strings.HasPrefix(p.Args[0], `"`):
		l.splitWindows(strings.Join(p.Args, " ")) // it was split at spaces, whatever the quotes
	case len(p.Args) > 0:
		l.Words = repair(p)
	case p.Cmdline == "":
		if name := cmp.Or(p.Exe, p.Name); name != "" && (os == "windows" || os == "darwin") {
			l.Words = []string{name} // the system refused the line
		}
	case os == "windows" || os == "" && isWindowsPath(p.Cmdline):
		l.splitWindows(p.Cmdline)
	case p.Cmdline[0] == '[' || strings.HasSuffix(p.Cmdline, "<defunct>"): // what ps shows in place of a line
	default:
		l.Words = joinPaths(strings.Fields(p.Cmdline))
	}
	return l
}

// Name is the name of the line's first command, as [ProgramName] returns it; empty if there is none.
func (l Line) Name() string {
	if len(l.Words) == 0 {
		return ""
	}
	return ProgramName(l.Words[0])
}

// replace sets words that do not stand in the text.
func (l *Line) replace(words []string) { l.Words, l.text, l.starts = words, "", nil }

// skip removes words from the front.
func (l *Line) skip(n int) {
	l.Words = l.Words[n:]
	if l.starts != nil {
		l.starts = l.starts[n:]
	}
}

// repair returns the arguments of a process. A program that writes a title over them leaves one string with
// spaces, and empty arguments. A path to the program itself may have spaces of its own.
func repair(p *scan.Process) []string {
	words := p.Args
	for len(words) > 1 && words[len(words)-1] == "" {
		words = words[:len(words)-1]
	}
	if len(words) == 1 && strings.IndexByte(words[0], ' ') > 0 && words[0] != p.Exe {
		words = strings.Fields(words[0])
	}
	return joinPaths(words)
}

// unquotedProgram is the path of a program that has spaces but no quotes: C:\Program Files\x\y.exe -z.
var unquotedProgram = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[A-Za-z]:[\\/]|\\\\)[^"]*?\.(?i:exe|cmd|bat|com)(?:[ \t]|$)`)
})

// splitWindows splits a line as Windows programs do: quotes keep spaces together, and a backslash escapes nothing
// but a quote.
func (l *Line) splitWindows(text string) {
	l.text = text
	at := 0
	if program := unquotedProgram().FindString(text); program != "" {
		l.Words, l.starts, at = []string{strings.TrimRight(program, " \t")}, []int{0}, len(program)
	}
	for at < len(text) {
		if text[at] == ' ' || text[at] == '\t' {
			at++
			continue
		}
		word, end := windowsWord(text, at)
		l.Words, l.starts = append(l.Words, word), append(l.starts, at)
		at = end
	}
	if joined := joinPaths(l.Words); len(joined) != len(l.Words) {
		l.replace(joined)
	}
}

// windowsWord returns the word at a position, and where it ends.
func windowsWord(text string, at int) (word string, end int) {
	var b strings.Builder
	quoted := false
	for end = at; end < len(text); end++ {
		switch c := text[end]; {
		case c == '\\' && strings.HasPrefix(text[end+1:], `"`):
			end++
			b.WriteByte('"')
		case c == '"':
			quoted = !quoted
		case (c == ' ' || c == '\t') && !quoted:
			return b.String(), end
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), end
}

// isWindowsPath reports whether a text begins with a drive or a share.
func isWindowsPath(text string) bool {
	text = strings.TrimPrefix(text, `"`)
	return len(text) > 2 && text[1] == ':' && (text[2] == '\\' || text[2] == '/') || strings.HasPrefix(text, `\\`)
}

// isAssignment reports whether a word sets a variable for the command that follows: NAME=value.
func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	for i := range len(name) {
		c := name[i]
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9' || i == 0) {
			return false
		}
	}
	return ok && name != ""
}
