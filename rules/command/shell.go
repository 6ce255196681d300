package command

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"mcpdoctor/rules/catalog"
)

// A line of shell is resolved to one of its commands: the last one that keeps running.

// maxLine is the length up to which lines are parsed. It bounds the time that a line of 16 KiB of "(" takes.
const maxLine = 16 << 10

// launchShell removes a shell: the line that it was given, or the script that it runs, is next.
func (l *Line) launchShell(row *catalog.Launcher, rest launched, c *Command) launching {
	if len(rest.words) == 0 {
		return noLauncher
	}
	words := rest.words
	if rest.line {
		os := l.os
		if row.Name == "sh" {
			os = "linux" // whatever the system
		}
		if words = shellCommand(l.shellText(row, rest.words), os); len(words) == 0 {
			return noLauncher
		}
	}
	c.Launchers = append(c.Launchers, row.Name)
	if !rest.line {
		name := Stem(words[0])
		if catalog.Load().Launchers[name] == nil {
			l.script("", words, c)
			return found
		}
		words = append([]string{name}, words[1:]...) // the shim of a version manager: bash ~/.asdf/shims/npx
	}
	l.replace(words)
	return launches
}

// shellText returns the line that a shell was given as its last words.
func (l *Line) shellText(row *catalog.Launcher, words []string) string {
	before := len(l.Words) - len(words)
	switch {
	case row.Name == "cmd" && l.starts != nil:
		text := l.text[l.starts[before]:]
		if hasOuterQuotes(text) || slices.ContainsFunc(l.Words[:before], func(w string) bool { return strings.EqualFold(w, "/s") }) {
			text = strings.TrimSuffix(strings.TrimRight(strings.TrimPrefix(text, `"`), " "), `"`)
		}
		return text
	case len(words) == 1:
		return words[0]
	}
	// What follows -c is joined: a line that was split is more frequent than one with arguments of its own. On
	// Windows the words have lost the quotes around their spaces.
	if l.os == "windows" {
		words = slices.Clone(words)
		for i, w := range words {
			if strings.IndexByte(w, ' ') >= 0 && strings.IndexByte(w, '"') < 0 {
				words[i] = `"` + w + `"`
			}
		}
	}
	return strings.Join(words, " ")
}

// hasOuterQuotes reports whether cmd removes the first and the last quote of a line: it begins with two, or its
// only two enclose more than a path (see cmd /?).
func hasOuterQuotes(text string) bool {
	return strings.HasPrefix(text, `""`) ||
		strings.HasPrefix(text, `"`) && strings.Count(text, `"`) == 2 && strings.ContainsAny(text, "&<>()@^|")
}

// shellCommand returns the words of the command that a line of shell is about: the last one that does not exit
// at once, and the first of a pipeline.
func shellCommand(text, os string) []string {
	if len(text) > maxLine {
		return nil
	}
	var c commands
	if os == "windows" || os == "" && isWindowsPath(text) {
		c.readWindows(text)
		if len(c.last) == 1 && strings.IndexByte(c.last[0], ' ') > 0 && !isWindowsPath(c.last[0]) {
			c.last = strings.Fields(c.last[0]) // cmd /c "npx -y x": cmd removes the quotes
		}
	} else {
		c.readPOSIX(text)
	}
	return joinPaths(c.last)
}

// commands collects the commands of a line.
type commands struct {
	last  []string
	found int
}

// prefixes stand before a command and are not part of it.
var prefixes = catalog.Words("builtin call command exec start {")

// brief are commands that exit at once or only wait.
var brief = catalog.Words(": cd echo exit export false printf read set sleep trap true ulimit umask unset wait source . pause chcp @echo")

func (c *commands) add(words []string) {
	for len(words) > 0 && (prefixes[words[0]] || isAssignment(words[0])) {
		words = words[1:]
	}
	if len(words) > 0 && !brief[words[0]] {
		c.last = words
		c.found++
	}
}

// readPOSIX adds the commands of a line of a POSIX shell, in the order in which they stand there.
func (c *commands) readPOSIX(text string) {
	text = strings.ToValidUTF8(text, "\ufffd")
	file, err := parseShell(text)
	var broken syntax.ParseError
	if errors.As(err, &broken) { // process titles lose their quotes, and reports cut lines
		file, _ = parseShell(text[:min(int(broken.Pos.Offset()), len(text))])
	}
	var visit func(syntax.Node) bool
	visit = func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.CallExpr:
			words := make([]string, len(n.Args))
			for i, w := range n.Args {
				words[i] = wordText(text, w.Parts, false)
			}
			c.add(words)
			return false
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				before := c.found
				if syntax.Walk(n.X, visit); c.found == before {
					syntax.Walk(n.Y, visit)
				}
				return false
			}
		case *syntax.Word, *syntax.Redirect, *syntax.Assign:
			return false // commands in $(...) only supply text
		}
		return true
	}
	syntax.Walk(file, visit)
}

// parsers are reused: a new one costs more than parsing a line does.
var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

func parseShell(text string) (*syntax.File, error) {
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	return p.Parse(strings.NewReader(text), "")
}

// wordText removes the quotes from a word. Nothing is expanded.
func wordText(text string, parts []syntax.WordPart, quoted bool) string {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value, quoted))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(wordText(text, p.Parts, true))
		default:
			b.WriteString(text[p.Pos().Offset():p.End().Offset()])
		}
	}
	return b.String()
}

// unescape removes the backslashes that quote the character after them.
func unescape(s string, quoted bool) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (!quoted || strings.IndexByte("$`\"\\\n", s[i+1]) >= 0) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// readWindows adds the commands of a line of cmd.exe or PowerShell: there are no single quotes, ^ escapes, and
// backslashes are part of paths.
func (c *commands) readWindows(text string) {
	r := windowsReader{commands: c}
	for i := 0; i < len(text); i++ {
		i += r.read(text[i:])
	}
	r.endCommand(false)
}

// windowsReader reads one line byte by byte.
type windowsReader struct {
	*commands
	words        []string
	word         []byte
	begun        bool // a word, which may be empty: ""
	quoted       bool
	redirected   bool // the next word is a file
	piped        bool
	beforePiping int
}

func (r *windowsReader) endWord() {
	if r.begun && !r.redirected {
		r.words = append(r.words, string(r.word))
	}
	r.redirected = r.redirected && !r.begun
	r.word, r.begun = nil, false
}

func (r *windowsReader) endCommand(pipe bool) {
	r.endWord()
	if !r.piped {
		r.beforePiping = r.found
	}
	if r.found == r.beforePiping {
		r.add(r.words)
	}
	r.words, r.redirected, r.piped = nil, false, pipe
}

// read takes the first byte of rest, and returns how many more it has taken.
func (r *windowsReader) read(rest string) (more int) {
	char, next := rest[0], byte(0)
	if len(rest) > 1 {
		next = rest[1]
	}
	switch {
	case char == '^' && (next == '"' || !r.quoted):
		if next == '"' || next == 0 {
			return 0
		}
		r.word, r.begun = append(r.word, next), true
		return 1
	case char == '"':
		r.quoted, r.begun = !r.quoted, true
	case r.quoted && char == '\\' && next == '"':
		r.word = append(r.word, next)
		return 1
	case r.quoted:
		r.word = append(r.word, char)
	case strings.IndexByte("&|\n()<> \t\r", char) >= 0:
		return r.separate(rest, char, next)
	default:
		r.word, r.begun = append(r.word, char), true
	}
	return 0
}

// separate takes what ends a word or a command.
func (r *windowsReader) separate(rest string, char, next byte) (more int) {
	switch char {
	case ' ', '\t', '\r':
		r.endWord()
	case '\n', '(', ')':
		r.endCommand(false)
	case '&', '|':
		if char == '&' && next == '>' { // &>file
			return 0
		}
		r.endCommand(char == '|' && next != '|')
		if next == char {
			return 1
		}
	case '<', '>':
		if s := string(r.word); s == "1" || s == "2" {
			r.word, r.begun = nil, false
		}
		r.endWord()
		r.redirected = true
		return len(rest) - 1 - len(strings.TrimLeft(rest[1:], "<>&|"))
	}
	return 0
}
