package configured

import (
	"mcpdoctor/rules/command"
	"path"
	"slices"
	"strings"
)

// The words of configuration files, in which some parts are known only to the client that reads them.

// fields cuts words at their spaces: titles have lost where a word with spaces ended.
func fields(words []string) []string {
	if !slices.ContainsFunc(words, func(w string) bool { return w == "" || strings.ContainsAny(w, " \t\n") }) {
		return words
	}
	var out []string
	for _, w := range words {
		out = append(out, strings.Fields(w)...)
	}
	return out
}

// pattern is a word of which parts are not known: what is before, between and after them. It has one
// part when all is known.
type pattern []string

func (p pattern) fits(word string, windows bool) bool {
	if windows { // neither case nor the slash tells two words apart
		word = strings.ToLower(strings.ReplaceAll(word, `\`, "/"))
	}
	if len(p) == 1 {
		return word == p[0]
	}
	rest, ok := strings.CutPrefix(word, p[0])
	if !ok || !strings.HasSuffix(rest, p[len(p)-1]) {
		return false
	}
	rest = rest[:len(rest)-len(p[len(p)-1])]
	for _, part := range p[1 : len(p)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return true
}

// writer reads words as their writers mean them.
type writer struct {
	home, project, file string
	windows             bool
}

// known puts in what is known: the home, the project, the folder of an extension.
func (w writer) known(word string) string {
	if rest, ok := strings.CutPrefix(word, "~"); ok && w.home != "" && (rest == "" || rest[0] == '/' || rest[0] == '\\') {
		word = w.home + rest
	}
	if strings.IndexByte(word, '$') < 0 {
		return word
	}
	for _, v := range []struct{ value, names string }{
		{w.home, "HOME userHome env:HOME USERPROFILE env:USERPROFILE"},
		{w.project, "workspaceFolder CLAUDE_PROJECT_DIR workspaceRoot"},
		{path.Dir(command.CleanPath(w.file)), "CLAUDE_PLUGIN_ROOT extensionPath"},
		{"/", "/ pathSeparator"},
	} {
		if v.value == "" || v.value == "." {
			continue
		}
		for name := range strings.FieldsSeq(v.names) {
			word = strings.ReplaceAll(word, "${"+name+"}", v.value)
		}
	}
	if rest, ok := strings.CutPrefix(word, "$HOME/"); ok && w.home != "" {
		word = w.home + "/" + rest
	}
	return word
}

func (w writer) patterns(words []string) []pattern {
	var out []pattern
	for _, word := range fields(words) {
		out = append(out, w.pattern(word))
	}
	return out
}

// pattern cuts a word at what is not known: ${VAR}, $VAR, $(command), {env:VAR} and, on Windows,
// %VAR%.
func (w writer) pattern(word string) pattern {
	if w.windows {
		word = strings.ToLower(strings.ReplaceAll(word, `\`, "/"))
	}
	var p pattern
	begin := 0
	for i := 0; i < len(word); {
		n := variable(word[i:], w.windows)
		if n == 0 {
			i++
			continue
		}
		p = append(p, word[begin:i])
		i += n
		begin = i
	}
	return append(p, word[begin:])
}

// variable returns the length of the variable that a text begins with; 0 when it begins with none.
func variable(s string, windows bool) int {
	closed := func(open, end string) int {
		if strings.HasPrefix(s, open) {
			return strings.Index(s, end) + 1
		}
		return 0
	}
	switch s[0] {
	case '$':
		if n := max(closed("${", "}"), closed("$(", ")")); n > 0 {
			return n
		}
		n := 1
		for n < len(s) && (s[n] == '_' || s[n] >= 'A' && s[n] <= 'Z' || n > 1 && s[n] >= '0' && s[n] <= '9') {
			n++
		}
		if n > 1 {
			return n
		}
	case '{':
		return closed("{env:", "}")
	case '%':
		if i := strings.IndexByte(s[1:], '%'); windows && i > 0 {
			return i + 2
		}
	}
	return 0
}
