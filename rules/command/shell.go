package command

import (
	"errors"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"mcpdoctor/rules/catalog"
)

// A line of shell is resolved to one of its commands: the last one that keeps running.

// maxLine is the length up to which lines are parsed. It bounds the time that a line of 16 KiB of "(" takes.
const maxLine = 16 << 10

// shell peels a shell off: what is after its -c, or the script that it runs.
func (l *Line) shell(row *catalog.Launcher, rest started, c *Command) peeling {
	if len(rest.Words) == 0 {
		return kept
	}
	if rest.Line {
		words := l.shellCommand(l.shellText(row, rest), row.Name == "sh")
		if len(words) == 0 {
			return kept
		}
		c.Launchers = append(c.Launchers, row.Name)
		l.rest(words)
		return peeled
	}
	c.Launchers = append(c.Launchers, row.Name)
	if name := Stem(rest.Words[0]); catalog.Load().Launchers[name] != nil { // a version manager's shim: bash ~/.asdf/shims/npx
		l.rest(append([]string{name}, rest.Words[1:]...))
		return peeled
	}
	l.script("", rest.Words, c)
	return named
}

// shellText returns the line that a shell was given.
func (l *Line) shellText(row *catalog.Launcher, rest started) string {
	switch {
	case l.starts != nil && row.Name == "cmd":
		text := l.text[l.starts[len(l.Words)-len(rest.Words)]:]
		if rest.strip || outerQuotes(text) {
			text = strings.TrimSuffix(strings.TrimRight(strings.TrimPrefix(text, `"`), " "), `"`)
		}
		return text
	case len(rest.Words) == 1:
		return rest.Words[0]
	}
	// Everything after -c is joined: a line that was cut into words is seen more often than one
	// that has arguments of its own.
	return l.join(rest.Words)
}

// outerQuotes tells that cmd takes off the first and the last quote of a line: when the line begins
// with two, or when the only two hold more than a path (cmd /?).
func outerQuotes(text string) bool {
	return strings.HasPrefix(text, `""`) ||
		strings.HasPrefix(text, `"`) && strings.Count(text, `"`) == 2 && strings.ContainsAny(text, "&<>()@^|")
}

// join makes one line of words. Windows has lost the quotes around those with spaces; elsewhere
// the words are pieces of a line that has its own.
func (l *Line) join(words []string) string {
	if l.OS != "windows" {
		return strings.Join(words, " ")
	}
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if strings.IndexByte(w, ' ') >= 0 && strings.IndexByte(w, '"') < 0 {
			b.WriteString(`"` + w + `"`)
		} else {
			b.WriteString(w)
		}
	}
	return b.String()
}

// shellCommand returns the words of the command that a line of shell is about: the last one that does not exit
// at once, and the first of a pipeline.
func (l *Line) shellCommand(text string, posix bool) []string {
	if len(text) > maxLine {
		return nil
	}
	var c commands
	if !posix && (l.OS == "windows" || l.OS == "" && windowsPath(text)) {
		c.readWindows(text)
		if len(c.last) == 1 && strings.IndexByte(c.last[0], ' ') > 0 && !windowsPath(c.last[0]) {
			c.last = strings.Fields(c.last[0]) // cmd /c "npx -y x": cmd removes the quotes
		}
	} else {
		c.readPOSIX(text)
	}
	return mend(c.last)
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
	var (
		words        []string
		word         []byte
		begun        bool // a word, which may be empty: ""
		quoted       bool
		redirected   bool // the next word is a file
		piped        bool
		beforePiping int
	)
	endWord := func() {
		if begun && !redirected {
			words = append(words, string(word))
		}
		redirected = redirected && !begun
		word, begun = nil, false
	}
	endCommand := func(pipe bool) {
		endWord()
		if !piped {
			beforePiping = c.found
		}
		if c.found == beforePiping {
			c.add(words)
		}
		words, redirected, piped = nil, false, pipe
	}
	for i := 0; i < len(text); i++ {
		next := byte(0)
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch char := text[i]; {
		case char == '^' && (next == '"' || !quoted):
			if next != '"' && next != 0 {
				i++
				word, begun = append(word, next), true
			}
		case char == '"':
			quoted, begun = !quoted, true
		case quoted && char == '\\' && next == '"':
			i++
			word = append(word, '"')
		case quoted:
			word = append(word, char)
		case char == ' ' || char == '\t' || char == '\r':
			endWord()
		case char == '&' && next == '>': // &>file
		case char == '&' || char == '|':
			if next == char {
				i++
			}
			endCommand(char == '|' && next != '|')
		case char == '\n' || char == '(' || char == ')':
			endCommand(false)
		case char == '<' || char == '>':
			if s := string(word); s == "1" || s == "2" {
				word, begun = nil, false
			}
			endWord()
			for redirected = true; i+1 < len(text) && strings.IndexByte("<>&|", text[i+1]) >= 0; i++ {
			}
		default:
			word, begun = append(word, char), true
		}
	}
	endCommand(false)
}
