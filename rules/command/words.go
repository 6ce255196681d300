package command

import (
	"strings"

	"mcpdoctor/scan"
)

// Words: from what the system shows of a process to the vector that it was started with.

// lineOf returns a process's command line, ready to be resolved. Kernel threads and zombies have
// none.
func LineOf(p *scan.Process, os string) Line {
	l := Line{OS: os, folder: p.CWD}
	switch {
	case p.State == "Z":
	case len(p.Args) > 0 && os == "windows" && strings.HasPrefix(p.Args[0], `"`):
		l.windows(strings.Join(p.Args, " ")) // cut at spaces, quotes and all
	case len(p.Args) > 0:
		l.Words = vector(p)
	case p.Cmdline == "":
		if os == "windows" || os == "darwin" { // a name at least, when the line is refused
			l.Words = nonEmpty(p.Exe, p.Name)
		}
	case os == "windows" || os == "" && windowsPath(p.Cmdline):
		l.windows(p.Cmdline)
	case p.Cmdline[0] == '[' || strings.HasSuffix(p.Cmdline, "<defunct>"): // ps's way to say that there is none
	default:
		l.Words = mend(strings.Fields(p.Cmdline))
	}
	return l
}

// vector returns the arguments of a process, mended where they are known to break.
func vector(p *scan.Process) []string {
	words := p.Args
	for len(words) > 1 && words[len(words)-1] == "" {
		words = words[:len(words)-1] // what is left of the arguments that a title was written over
	}
	// A program that writes a title over its arguments leaves one string. A single argument that
	// is the path of the program itself may have spaces of its own.
	if len(words) == 1 && strings.IndexByte(words[0], ' ') > 0 && words[0] != p.Exe {
		words = strings.Fields(words[0])
	}
	return mend(words)
}

// mend joins paths that were cut at their spaces, as reports of macOS's ps have them. Only folders
// that are known to have a space in their names are joined, so that nothing else is.
func mend(words []string) []string {
	for i := 0; i+1 < len(words) && i < mendable; i++ {
		if n := cutPath(words[i:]); n > 1 {
			joined := strings.Join(words[i:i+n], " ")
			words = append(append(append(make([]string, 0, len(words)-n+1), words[:i]...), joined), words[i+n:]...)
			i-- // one path may have several spaces
		}
	}
	return words
}

// mendable is how many words are looked at: programs and scripts are among the first.
const mendable = 12

// cutPath returns how many of the words are one path that was cut; 1 when it was not.
func cutPath(words []string) int {
	first, next := words[0], words[1]
	switch {
	case strings.HasSuffix(first, "/Library/Application") && strings.HasPrefix(next, "Support/"),
		strings.HasSuffix(first, "/Claude") && strings.HasPrefix(next, "Extensions/"),
		HasSuffixFold(first, `:\Program`) && (HasPrefixFold(next, `Files\`) || HasPrefixFold(next, "Files")):
		return 2
	}
	if !strings.Contains(first, "/Applications/") {
		return 1
	}
	// A bundle: "/Applications/Visual Studio Code.app/...", up to the word that ends its folder.
	inside := strings.LastIndex(first, ".app/")
	if inside < 0 {
		for n := 2; n <= len(words) && n <= 5; n++ {
			if strings.HasPrefix(words[n-1], "-") || strings.HasPrefix(words[n-1], "/") {
				return 1
			}
			if strings.Contains(words[n-1], ".app/") {
				return n
			}
		}
		return 1
	}
	// Its program often has its name: "Cursor Helper (Plugin).app/Contents/MacOS/Cursor Helper (Plugin)".
	bundle := first[strings.LastIndexByte(first[:inside], '/')+1 : inside]
	program := first[strings.LastIndexByte(first, '/')+1:]
	if strings.HasPrefix(bundle, program+" ") {
		n := 1 + strings.Count(bundle[len(program):], " ")
		if n <= len(words) && strings.Join(words[1:n], " ") == bundle[len(program)+1:] {
			return n
		}
	}
	// A bundle inside a bundle whose name has a space: "Frameworks/Cursor", "Helper", "(Plugin).app/...".
	if strings.HasSuffix(first[:strings.LastIndexByte(first, '/')], "/Frameworks") {
		for n := 2; n <= len(words) && n <= 4; n++ {
			if strings.Contains(words[n-1], ".app/") {
				return n
			}
		}
	}
	return 1
}

// windows cuts a line as Windows programs do: quotes keep spaces together, backslashes are part of
// a path unless they stand before a quote.
func (l *Line) windows(text string) {
	l.text = text
	for i := 0; i < len(text); {
		if text[i] == ' ' || text[i] == '\t' {
			i++
			continue
		}
		l.starts = append(l.starts, i)
		if len(l.Words) == 0 {
			if n := bareProgram(text[i:]); n > 0 {
				l.Words = append(l.Words, text[i:i+n])
				i += n
				continue
			}
		}
		var word string
		word, i = windowsWord(text, i)
		l.Words = append(l.Words, word)
	}
	if mended := mend(l.Words); len(mended) != len(l.Words) {
		l.rest(mended)
	}
}

// windowsWord reads the word that begins at i, and returns where it ends.
func windowsWord(text string, i int) (string, int) {
	end := i
	for end < len(text) && text[end] != ' ' && text[end] != '\t' && text[end] != '"' {
		end++
	}
	if end == len(text) || text[end] != '"' {
		return text[i:end], end // the common case needs no copy
	}
	var b strings.Builder
	quoted := false
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && text[i+1] == '"':
			i++
			b.WriteByte('"')
		case c == '"':
			quoted = !quoted
		case (c == ' ' || c == '\t') && !quoted:
			return b.String(), i
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), i
}

// bareProgram returns the length of a program's path that has spaces but no quotes around it:
// C:\Program Files\x\y.exe -z. Zero when the line begins otherwise.
func bareProgram(text string) int {
	if !windowsPath(text) || text[0] == '"' {
		return 0
	}
	for i := 0; i+4 <= len(text) && i < maxPath; i++ {
		if text[i] != '.' {
			continue
		}
		switch strings.ToLower(text[i+1 : i+4]) {
		case "exe", "cmd", "bat", "com":
			if i+4 == len(text) || text[i+4] == ' ' || text[i+4] == '\t' {
				return i + 4
			}
		}
	}
	return 0
}

// maxPath is where Windows paths end, unless they ask for more.
const maxPath = 1024

// windowsPath tells that a text begins with a drive or a share.
func windowsPath(text string) bool {
	text = strings.TrimPrefix(text, `"`)
	return len(text) > 2 && text[1] == ':' && (text[2] == '\\' || text[2] == '/') || strings.HasPrefix(text, `\\`)
}

func nonEmpty(candidates ...string) []string {
	for _, c := range candidates {
		if c != "" {
			return []string{c}
		}
	}
	return nil
}

func HasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func HasSuffixFold(s, suffix string) bool {
	return len(s) >= len(suffix) && strings.EqualFold(s[len(s)-len(suffix):], suffix)
}

// isAssignment reports whether a word sets a variable for the command that follows: NAME=value.
func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	if !ok || name == "" {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9' || i == 0) {
			return false
		}
	}
	return true
}
