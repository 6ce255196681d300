package report

import (
	"reflect"
	"slices"
	"strings"

	"mcpdoctor/rules"
)

// cleanConfig returns a deep copy in which every string is safe to show. Configuration files hold
// secrets that command lines do not, so that more is hidden than in a report: the values of all
// variables, and in URLs whatever may be a key.
func cleanConfig(c *rules.Configuration) *rules.Configuration {
	out := *c
	out.Servers = slices.Clone(c.Servers)
	for i := range out.Servers {
		out.Servers[i].Args = configArgs(out.Servers[i].Args)
	}
	out.Advice = slices.Clone(c.Advice)
	for i := range out.Advice {
		items := slices.Clone(out.Advice[i].Items)
		for j := range items {
			if e := items[j].Entry; e != nil {
				items[j].Entry = &rules.Entry{Command: e.Command, Args: configArgs(e.Args)}
			}
		}
		out.Advice[i].Items = items
	}
	return copyOf(reflect.ValueOf(&out), configText).Interface().(*rules.Configuration)
}

// configText makes one string of a configuration safe.
func configText(s string) string {
	if len(s) > 2*longest {
		s = s[:2*longest]
	}
	return text(hideVariables(safeURLs(s)))
}

// configArgs hides what only whole words tell: --token x, -e name=value, and NAME=a value with spaces.
func configArgs(args []string) []string {
	out := RedactArgs(args)
	for i, a := range out {
		name, value, ok := strings.Cut(a, "=")
		if ok && (i > 0 && (out[i-1] == "-e" || out[i-1] == "--env") || strings.Trim(name, variableBytes) == "") {
			out[i] = name + "=" + hideValue(value)
		}
	}
	return out
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
