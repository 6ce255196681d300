package report

import (
	"regexp"
	"strings"

	"mcpdoctor/rules/command"
	"mcpdoctor/scan"
)

// redacted stands where a secret was.
const redacted = "***"

// Redact takes the secrets out of prose, and of a command line whose argument vector is not known: the
// values of options, variables, headers and JSON members with a secret name, passwords in URLs, and words
// that look like a token.
func Redact(s string) string { return redactor{}.line(s) }

// redactor takes secrets out of strings and argument vectors.
type redactor struct {
	// strict is for configurations, which hold secrets that command lines do not. It also hides every
	// variable, every value of a URL's query, and the values of more options.
	strict bool
}

// args returns an argument vector, program first, without its secrets. An argument that is a secret is hidden
// as a whole, whatever spaces and quotes it has.
func (r redactor) args(vector []string) []string {
	out := make([]string, len(vector))
	program := len(vector)
	if r.strict {
		program = programArgs(vector)
	}
	inKey := false // in PEM, whose lines may be arguments of their own
	for i, a := range vector {
		inKey = inKey || strings.HasPrefix(a, "-----BEGIN")
		option, before := "", ""
		if i > 0 {
			option = vector[i-1]
		}
		if i > 1 {
			before = vector[i-2]
		}
		name, value, assigned := strings.Cut(a, "=")
		switch {
		case inKey:
			out[i] = redacted
			inKey = !strings.Contains(a, "-----END")
		case isScheme(a) && r.announces(option):
			out[i] = a // Authorization: Bearer x
		case r.announces(option) && !strings.HasPrefix(a, "-"), isScheme(option) && r.announces(before):
			out[i] = hideValue(a)
		case isShort(before, option, a, i > program):
			out[i] = redacted
		case loginOptions[option] && isLogin(a):
			user, _, _ := strings.Cut(a, ":")
			out[i] = user + ":" + redacted
		case assigned && (r.isAssigned(option, name) || i >= program && isShort(option, name, value, true)):
			out[i] = name + "=" + hideValue(value)
		default:
			out[i] = r.line(a)
		}
	}
	return out
}

// programArgs is where the arguments of the program begin that a command starts. Before it, what one letter
// means is known: `docker run -t`.
func programArgs(vector []string) int {
	c := command.Parse(&scan.Process{Args: vector}, "")
	if c.Program == "" {
		return 1
	}
	return len(vector) - len(c.Args)
}

// announces reports whether the argument after a is a secret: --token, Authorization:.
func (r redactor) announces(a string) bool {
	name, header := strings.CutSuffix(a, ":")
	return (header || strings.HasPrefix(a, "-")) && !strings.ContainsAny(name, "= :") && r.isSecret(name)
}

// isAssigned reports whether the value of NAME=value, behind an option, is hidden.
func (r redactor) isAssigned(option, name string) bool {
	if r.strict && (option == "-e" || option == "--env" || isVariable(name)) {
		return true
	}
	return !strings.ContainsAny(name, " /:") && r.isSecret(name)
}

// isVariable reports whether a name looks like that of an environment variable.
func isVariable(name string) bool {
	return strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == ""
}

func isScheme(a string) bool { return schemes[strings.ToLower(a)] }

func isLogin(s string) bool { return strings.Contains(s, ":") && !strings.Contains(s, "://") }

// hideValue hides a secret, but keeps a reference to one.
func hideValue(v string) string {
	if v == "" || isReference(v) {
		return v
	}
	return redacted
}

// line returns a text without its secrets. It goes from word to word; each may be the name of a secret or a
// token itself.
func (r redactor) line(s string) string {
	if len(s) < shortToken && !strings.ContainsAny(s, "=:@-") {
		return s
	}
	var b strings.Builder
	for at := 0; at < len(s); {
		end := at
		for end < len(s) && isWordByte(s[end]) {
			end++
		}
		word, stop := s[at:end], end
		if isToken(word) {
			word = redacted
		}
		switch begin, secretEnd := r.secretAfter(s, at, end); {
		case strings.HasPrefix(s[end:], "://") && (at < end || r.strict):
			stop += len(until(s[end:], " \"'\n\t"))
			b.WriteString(r.url(s[at:stop]))
		case begin < secretEnd:
			stop = secretEnd
			b.WriteString(word + s[end:begin] + hideValue(s[begin:stop]))
		case strings.HasPrefix(s[at:], "-----BEGIN "): // a private key in PEM
			key, _, _ := strings.Cut(s[at:], "-----END ")
			stop = at + len(key)
			b.WriteString(redacted)
		case at < end:
			b.WriteString(word)
		default:
			stop = at + 1
			b.WriteByte(s[at])
		}
		at = stop
	}
	return b.String()
}

var (
	assignment = regexp.MustCompile(`^["'\\]*(=|: *)["'\\]*`) // with the quotes and backslashes of JSON
	spaces     = regexp.MustCompile(`^["',\\]*[ \t]+["']?`)
	scheme     = regexp.MustCompile(`^(?i:bearer|basic|token|digest|apikey) +`)
	shellValue = regexp.MustCompile(`^(?:'[^']*'|"[^"]*"|[^ ;&])*`)
)

// secretAfter returns where the secret begins and ends that the word s[at:end] announces. Both are 0 when it
// announces none.
func (r redactor) secretAfter(s string, at, end int) (begin, stop int) {
	word, rest := s[at:end], s[end:]
	first := at == 0 || strings.IndexByte(" '\"=;&", s[at-1]) >= 0
	if word == "" || rest == "" || !strings.ContainsRune(" =:,\"'\\\t", rune(rest[0])) {
		return 0, 0
	}
	if r.strict && first && rest[0] == '=' && isVariable(strings.TrimPrefix(word, "-e")) {
		return end + 1, end + 1 + len(shellValue.FindString(rest[1:]))
	}
	if first && len(word) > 1 { // C:\Users\x\node_modules\@scope has one letter
		if n := passwordLen(rest); n > 0 {
			return end + 1, end + 1 + n
		}
	}
	joined, option := joint(word, rest)
	begin = end + len(joined)
	if joined == "" || begin == len(s) || s[begin] == ' ' && s[begin-1] == joined[0] || option && s[begin] == '-' {
		return 0, 0
	}
	header, stops := strings.Contains(joined, ":"), r.stops(joined)
	stop = begin + valueLen(s[begin:], s[begin-1], stops)
	value := s[begin:stop]
	switch {
	case option && loginOptions[word] && isLogin(value):
		return begin + strings.IndexByte(value, ':') + 1, stop
	case (option || r.strict) && isShort(s[max(0, at-16):at], word, value, r.strict), redactor{strict: r.strict && !header}.isSecret(word):
		if name := scheme.FindString(s[begin:min(len(s), begin+64)]); name != "" && !strings.HasPrefix(s[begin+len(name):], "-") {
			before := s[begin-1]
			begin += len(name)
			stop = begin + valueLen(s[begin:], before, stops)
		}
		return begin, stop
	}
	return 0, 0
}

// joint returns what is between a word and its value, and whether the word is an option with spaces behind it.
func joint(word, rest string) (joined string, option bool) {
	near := rest[:min(len(rest), 64)]
	if joined = assignment.FindString(near); joined == "" && word[0] == '-' {
		return spaces.FindString(near), true
	}
	return joined, false
}

// stops are the bytes that end a value without quotes, by what joins it to its name.
func (r redactor) stops(joined string) string {
	switch {
	case r.strict:
		return " "
	case strings.ContainsAny(joined, ":="):
		return " \"'\n\t&;,\\"
	}
	return " \"'\n\t"
}

// passwordLen returns the length of the password in ":password@host", 0 when there is none.
func passwordLen(s string) int {
	if s[0] != ':' {
		return 0
	}
	password := until(s[1:min(len(s), longest)], " \"'\n\t") // no longer, since it is looked for at each word
	password = password[:max(0, strings.LastIndexByte(password, '@'))]
	if strings.ContainsAny(password, `/\`) {
		return 0
	}
	return len(password)
}

// valueLen returns the length of the value that s begins with, which ends at a quote if one is before it.
func valueLen(s string, before byte, stops string) int {
	if before != '"' && before != '\'' {
		return len(strings.TrimRight(until(s, stops), `"'`))
	}
	value, _, closed := strings.Cut(s, string(before))
	if closed {
		value = strings.TrimRight(value, `\`)
	}
	return len(value)
}

// url returns a URL without its password, the parts of its path that look like keys, and the values of its
// query that do or that have the name of a secret.
func (r redactor) url(s string) string {
	scheme, rest, _ := strings.Cut(s, "://")
	// A password may have a slash or an "@" of its own, which net/url does not accept.
	at := strings.LastIndexByte(rest, '@')
	if at < 0 || !strings.Contains(rest[:at], ":") {
		at = strings.LastIndexByte(until(rest, "/?#"), '@')
	}
	user := ""
	if at >= 0 {
		user = redacted + "@"
		if name, _, login := strings.Cut(rest[:at], ":"); login && !r.strict {
			user = name + ":" + user
		}
	}
	rest = rest[at+1:]
	host := until(rest, "/?#")
	return scheme + "://" + user + host + r.path(rest[len(host):])
}

var pathPart = regexp.MustCompile(`[^/?#&=]+`)

// path returns what follows the host of a URL without its secrets.
func (r redactor) path(s string) string {
	if r.strict {
		s = until(s, "#")
	}
	path, query, asked := strings.Cut(s, "?")
	path = pathPart.ReplaceAllStringFunc(path, r.hideKey)
	if !asked {
		return path
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		name, value, assigned := strings.Cut(pair, "=")
		if assigned && (r.strict || r.isSecret(name) || name == "code" || isMixed(until(value, "/#="), 8)) {
			pairs[i] = r.hideKey(name) + "=" + hideValue(value)
		} else {
			pairs[i] = pathPart.ReplaceAllStringFunc(pair, r.hideKey)
		}
	}
	return path + "?" + strings.Join(pairs, "&")
}

// hideKey hides a part of a URL if it looks like a key: some services need no other.
func (r redactor) hideKey(part string) string {
	if isToken(part) || isMixed(part, 20) || r.strict && len(part) >= shortToken && digits(part) > 1 && !strings.ContainsAny(part, "$*") {
		return redacted
	}
	return part
}

func until(s, stops string) string {
	if i := strings.IndexAny(s, stops); i >= 0 {
		return s[:i]
	}
	return s
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}
