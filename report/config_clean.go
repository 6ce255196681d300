package report

import (
	"reflect"
	"slices"
	"strings"

	"mcpdoctor/rules/command"
	"mcpdoctor/rules/configured"
	"mcpdoctor/scan"
)

// cleanConfig returns a deep copy in which every string is safe to show. Configuration files hold
// secrets that command lines do not, so that more is hidden than in a report: the values of all
// variables, and in URLs whatever may be a key.
func cleanConfig(c *configured.Report) *configured.Report {
	out := *c
	out.Servers = slices.Clone(c.Servers)
	for i := range out.Servers {
		out.Servers[i].Args = configArgs(out.Servers[i].Command, out.Servers[i].Args)
	}
	out.Advice = slices.Clone(c.Advice)
	for i := range out.Advice {
		items := slices.Clone(out.Advice[i].Items)
		for j := range items {
			if e := items[j].Entry; e != nil {
				items[j].Entry = &configured.Entry{Command: e.Command, Args: configArgs(e.Command, e.Args)}
			}
		}
		out.Advice[i].Items = items
	}
	return copyOf(reflect.ValueOf(&out), configText).Interface().(*configured.Report)
}

// configText makes one string of a configuration safe.
func configText(s string) string {
	if len(s) > 2*longest {
		s = s[:2*longest]
	}
	return text(hideOptions(hideVariables(safeURLs(s))))
}

// configArgs hides what only whole words tell: --token x, -e name=value, and NAME=a value with spaces.
// What one letter means is known of launchers, so that only those of the program may be of a secret.
func configArgs(cmd string, args []string) []string {
	out := RedactArgs(args)
	program := command.Parse(&scan.Process{Args: append([]string{cmd}, args...)}, "")
	launcher := len(args) - len(program.Args)
	if program.Program == "" {
		launcher = 0
	}
	for i, a := range args {
		name, value, assigned := strings.Cut(a, "=")
		secret := hidesValue(name) || i >= launcher && hidesShort(name)
		switch {
		case assigned && (i > 0 && (args[i-1] == "-e" || args[i-1] == "--env") || strings.Trim(name, variableBytes) == ""),
			assigned && secret && !(hidesShort(name) && plain(value)):
			out[i] = name + "=" + hideValue(value)
		case !assigned && strings.HasPrefix(a, "-") && secret && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") && !(hidesShort(name) && plain(args[i+1])):
			out[i+1] = hideValue(args[i+1])
		}
	}
	return out
}

// hideOptions hides the values of options in a line: x --tavily-key abc, x -k 'a b'.
func hideOptions(s string) string {
	var b strings.Builder
	for rest := s; rest != ""; {
		word, sep := cutWord(rest)
		rest = rest[len(word)+len(sep):]
		option := strings.TrimLeft(word, `'"(`)
		name, value, assigned := strings.Cut(option, "=")
		short := hidesShort(name)
		if !hidesValue(name) && !short || !assigned && option[0] != '-' {
			b.WriteString(word + sep)
			continue
		}
		if !assigned {
			b.WriteString(word + sep)
			value, sep = cutWord(rest)
			if value == "" || value[0] == '-' {
				continue
			}
			rest = rest[len(value)+len(sep):]
		} else {
			b.WriteString(word[:len(word)-len(value)])
		}
		switch bare := strings.Trim(value, `'"`); {
		case bare == "", short && plain(bare), hideValue(bare) == bare:
			b.WriteString(value + sep)
		default:
			end := value[len(strings.TrimRight(value, `'"`)):]
			if len(end) > 0 && end[0] == value[0] {
				end = end[1:] // its own quote, and not that of the line
			}
			b.WriteString(redacted + end + sep)
		}
	}
	return b.String()
}

// cutWord returns the word that a line begins with, which may have quotes with spaces in them, and
// the spaces behind it.
func cutWord(s string) (word, sep string) {
	end := 0
	for end < len(s) && s[end] != ' ' {
		if c := s[end]; (c == '\'' || c == '"') && (end == 0 || s[end-1] == '=') {
			// A line in a line has quotes of its own, and is no single word.
			if i := strings.IndexByte(s[end+1:], c); i >= 0 && s[end+1] != '-' && !strings.Contains(s[end+1:end+1+i], " -") {
				end += i + 1
			}
		}
		end++
	}
	begin := end
	for end < len(s) && s[end] == ' ' {
		end++
	}
	return s[:begin], s[begin:end]
}

// hidesValue tells that an option, or what stands before "=", says that its value is a secret. It is
// stricter than a report: nobody looks here to tell two processes from each other.
func hidesValue(name string) bool {
	bare := strings.TrimLeft(name, "-")
	if bare == "" || strings.ContainsAny(bare, " /:@") {
		return false
	}
	words := splitName(bare)
	if len(words) == 0 || words[0] == "no" {
		return len(words) == 0 && strings.HasPrefix(name, "-")
	}
	if secretName(bare) {
		return true
	}
	last := strings.TrimSuffix(words[len(words)-1], "s")
	switch last {
	case "pas", "auth", "session", "cookie", "pwd": // "pas" is pass
		return true
	}
	for _, end := range [...]string{"key", "token", "secret", "password", "passwd", "credential"} {
		if strings.HasSuffix(last, end) && !notSecret[strings.Join(words, "-")] {
			return true
		}
	}
	return false
}

// hidesShort tells that an option of one letter is often that of a key, password, token or user.
func hidesShort(name string) bool {
	switch name {
	case "-k", "-p", "-P", "-t", "-u":
		return true
	}
	return false
}

// plain tells that the value of such an option is none of these: a number, an address, a path.
func plain(value string) bool {
	return strings.Trim(value, "0123456789.:") == "" || strings.Contains(value, "://") ||
		strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "../") || strings.HasPrefix(value, "~/") ||
		len(value) > 2 && value[1] == ':' && (value[2] == '\\' || value[2] == '/')
}

// hideVariables hides the values in NAME=value where the name is that of an environment variable:
// docker run -e NAME=value, env NAME=value, sh -c 'NAME=value command'. References are kept.
func hideVariables(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		end := i
		for end < len(s) && variableByte(s[end]) {
			end++
		}
		if end == i {
			b.WriteByte(s[i])
			i++
			continue
		}
		b.WriteString(s[i:end])
		// -eNAME=value is an option and its value in one word.
		begins := i == 0 || strings.IndexByte(" '\"=;&", s[i-1]) >= 0 || s[i-1] == 'e' && i > 1 && s[i-2] == '-'
		if i = end; !begins || end+1 >= len(s) || s[end] != '=' {
			continue
		}
		b.WriteByte('=')
		i++
		value := i
		for i < len(s) && strings.IndexByte(" ;&", s[i]) < 0 {
			if s[i] == '\'' || s[i] == '"' { // what is between quotes belongs to it, spaces too
				i += 1 + strings.IndexByte(s[i+1:], s[i]) // stays when it is not closed
			}
			i++
		}
		b.WriteString(hideValue(s[value:i]))
	}
	return b.String()
}

// variableBytes are those of the names of environment variables.
const variableBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"

func variableByte(c byte) bool { return strings.IndexByte(variableBytes, c) >= 0 }

// safeURLs hides in every URL of a text what is before the host, all values of its query, and those
// parts of its path that look like keys, as services have them that need no other.
func safeURLs(s string) string {
	var b strings.Builder
	for {
		at := strings.Index(s, "://")
		if at < 0 {
			b.WriteString(s)
			return b.String()
		}
		begin, end := at, at
		for begin > 0 && (s[begin-1] >= 'a' && s[begin-1] <= 'z' || s[begin-1] >= 'A' && s[begin-1] <= 'Z' || s[begin-1] == '+') {
			begin--
		}
		for end < len(s) && strings.IndexByte(" \t\n'\"", s[end]) < 0 {
			end++
		}
		b.WriteString(s[:begin] + safeURL(s[begin:end]))
		s = s[end:]
	}
}

func safeURL(s string) string {
	scheme, rest, _ := strings.Cut(s, "://")
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, asked := strings.Cut(rest, "?")
	// A password may hold a slash or an "@" of its own.
	if i := strings.LastIndexByte(rest, '@'); i >= 0 && (strings.IndexByte(rest[:i], '/') < 0 || strings.IndexByte(rest[:i], ':') >= 0) {
		rest = redacted + rest[i:]
	}
	segments := strings.Split(rest, "/")
	for i := 1; i < len(segments); i++ {
		if mayBeKey(segments[i]) {
			segments[i] = redacted
		}
	}
	rest = strings.Join(segments, "/")
	if asked {
		var names []string
		for pair := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(pair, "=")
			switch {
			case mayBeKey(name):
				pair = redacted
			case value != "":
				pair = name + "=" + hideValue(value)
			}
			names = append(names, pair)
		}
		rest += "?" + strings.Join(names, "&")
	}
	return scheme + "://" + rest
}

// mayBeKey tells that a part of a URL may be a key: long, and with digits in it, as words are not.
func mayBeKey(s string) bool {
	return len(s) >= shortToken && digits(s) > 1 && !strings.ContainsAny(s, "$*")
}
