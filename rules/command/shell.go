package command

import (
	"strings"

	"mcpdoctor/rules/catalog"
)

// Shells: the one simple command of a line that the shell waits for.

// maxLine is how much of a line of shell is parsed. Nobody starts a server beyond it.
const maxLine = 64 << 10

// shell peels a shell off: what is after its -c, or the script that it runs.
func (l *Line) shell(row *catalog.Launcher, rest started, c *Command) peeling {
	if len(rest.Words) == 0 {
		return kept
	}
	if rest.Line {
		words := l.shellCommand(l.shellText(rest))
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
func (l *Line) shellText(rest started) string {
	switch {
	case l.starts != nil:
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

// passing are commands that end at once or only wait: a line that ends with them was written for
// what is before them.
var passing = map[string]bool{
	":": true, "cd": true, "done": true, "echo": true, "esac": true, "exit": true, "export": true, "false": true, "fi": true,
	"printf": true, "read": true, "set": true, "sleep": true, "trap": true, "true": true, "ulimit": true, "umask": true, "unset": true,
	"wait": true, "}": true, "source": true, ".": true, "pause": true, "chcp": true, "@echo": true,
}

// keywords stand before a command and are not part of it.
var keywords = map[string]bool{
	"!": true, "(": true, "builtin": true, "call": true, "command": true, "do": true, "elif": true, "else": true, "exec": true, "if": true,
	"then": true, "time": true, "until": true, "while": true, "{": true, "start": true,
}

// shellCommand returns the command that a line of shell is about: the last one that does not end
// at once; of a pipeline, its first.
func (l *Line) shellCommand(text string) []string {
	if len(text) > maxLine {
		return nil
	}
	var last []string
	s := ShellScanner{Text: text, windows: l.OS == "windows" || l.OS == "" && windowsPath(text)}
	piped := false
	for {
		words, end := s.Command()
		for len(words) > 0 && (keywords[words[0]] || Assignment(words[0])) {
			words = words[1:]
		}
		if len(words) > 0 && !passing[words[0]] && !(piped && last != nil) {
			last = words
		}
		piped = end == '|'
		if end == 0 {
			break
		}
	}
	if s.windows && len(last) == 1 && strings.IndexByte(last[0], ' ') > 0 && !windowsPath(last[0]) {
		last = strings.Fields(last[0]) // cmd /c "npx -y x", whose quotes cmd itself takes off
	}
	return mend(last)
}

// shellScanner cuts a line of shell into simple commands. It knows quotes, separators and
// redirections, and leaves everything else as it is: nothing is expanded.
type ShellScanner struct {
	Text    string
	at      int
	windows bool // cmd.exe: no single quotes, ^ escapes, backslashes are part of paths
}

// command reads up to the next separator and returns its words and the separator: 0 at the end,
// '|' for a pipe, ';' for all others.
func (s *ShellScanner) Command() (words []string, end byte) {
	for s.at < len(s.Text) {
		switch c := s.Text[s.at]; c {
		case ' ', '\t', '\r':
			s.at++
		case '\n', '(', ')':
			s.at++
			return words, ';'
		case ';':
			if s.windows {
				words = s.word(words)
				continue
			}
			s.at++
			return words, ';'
		case '&', '|':
			s.at++
			if s.at < len(s.Text) && s.Text[s.at] == c {
				s.at++
				return words, ';'
			}
			if c == '&' && s.at < len(s.Text) && s.Text[s.at] == '>' { // &>file
				continue
			}
			if c == '|' {
				return words, '|'
			}
			return words, ';'
		case '<', '>':
			s.redirection()
		case '#':
			if s.windows {
				words = s.word(words)
				continue
			}
			for s.at < len(s.Text) && s.Text[s.at] != '\n' {
				s.at++
			}
		default:
			words = s.word(words)
		}
	}
	return words, 0
}

// redirection skips `> file`, `>> file`, `2>&1` and the like.
func (s *ShellScanner) redirection() {
	for s.at < len(s.Text) && strings.IndexByte("<>&|", s.Text[s.at]) >= 0 {
		s.at++
	}
	for s.at < len(s.Text) && (s.Text[s.at] == ' ' || s.Text[s.at] == '\t') {
		s.at++
	}
	s.word(nil)
}

// word reads one word and appends it, unless it is the number of a redirected descriptor.
func (s *ShellScanner) word(words []string) []string {
	start := s.at
	var b []byte // filled only when the word is not as it is written
	copied := false
	flush := func() {
		if !copied {
			b, copied = append(b, s.Text[start:s.at]...), true
		}
	}
	depth := 0
	for s.at < len(s.Text) {
		c := s.Text[s.at]
		switch {
		case c == '"' || c == '\'' && !s.windows:
			flush()
			b = s.quoted(b, c)
			continue
		case c == '\\' && !s.windows || c == '^' && s.windows:
			flush()
			s.at++
			if s.at < len(s.Text) && (!s.windows || s.Text[s.at] != '"') { // ^" is a quote to the program
				b = append(b, s.Text[s.at])
				s.at++
			}
			continue
		case c == '(' && s.at > start && s.Text[s.at-1] == '$', c == '(' && depth > 0:
			depth++
		case c == ')' && depth > 0:
			depth--
		case depth > 0:
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '&' || c == '|' || c == '(' || c == ')' || c == '<' || c == '>',
			c == ';' && !s.windows:
			return s.end(words, start, b, copied)
		}
		if copied {
			b = append(b, c)
		}
		s.at++
	}
	return s.end(words, start, b, copied)
}

func (s *ShellScanner) end(words []string, start int, b []byte, copied bool) []string {
	word := s.Text[start:s.at]
	if copied {
		return append(words, string(b))
	}
	if s.at < len(s.Text) && (s.Text[s.at] == '<' || s.Text[s.at] == '>') && (word == "1" || word == "2") {
		return words
	}
	if word == "" {
		return words
	}
	return append(words, word)
}

// quoted appends what is between two quotes.
func (s *ShellScanner) quoted(b []byte, quote byte) []byte {
	for s.at++; s.at < len(s.Text); s.at++ {
		c := s.Text[s.at]
		if c == quote {
			s.at++
			return b
		}
		if c == '^' && s.windows && s.at+1 < len(s.Text) && s.Text[s.at+1] == quote {
			continue
		}
		if c == '\\' && quote == '"' && s.at+1 < len(s.Text) && (!s.windows || s.Text[s.at+1] == '"') {
			s.at++
			c = s.Text[s.at]
		}
		b = append(b, c)
	}
	return b
}
