// Package report writes what was found: as text for people, as JSON for programs, and as a snapshot to be
// judged again. All three are readers of a plain value, and know nothing of processes, terminals or flags.
//
// Every string that came from a process is untrusted: any user may put escape codes, newlines or a megabyte
// into a command line of their own, and it may hold a secret. Nothing is written that has not passed a gate.
package report

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"mcpdoctor/rules"
)

// longest is how many bytes of one string are shown: more than any real command line that a person would
// read, and few enough for a thousand of them.
const longest = 4 << 10

// gate makes strings safe to show.
type gate struct {
	redactor
	raw bool // only secrets are removed
}

// configGate hides more; snapshotGate only redacts, since a snapshot is judged again.
var (
	configGate   = gate{redactor: redactor{strict: true}}
	snapshotGate = gate{raw: true}
)

// clean returns a deep copy of a value in which every string is safe to show.
func clean[T any](v T) T { return pass(gate{}, v) }

// Line makes a sentence safe to show in a line of its own, such as the text of an error.
func Line(s string) string { return clean(s) }

func pass[T any](g gate, v T) T { return g.copy(reflect.ValueOf(v)).Interface().(T) }

// copy returns a deep copy. It visits every field, so that a new one cannot be forgotten.
func (g gate) copy(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		out.SetString(g.text(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(g.copy(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		}
		for i := range v.Len() {
			out.Index(i).Set(g.copy(v.Index(i)))
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		}
		for key, value := range v.Seq2() {
			out.SetMapIndex(g.copy(key), g.copy(value))
		}
	case reflect.Struct:
		g.copyFields(v, out)
	default:
		out.Set(v)
	}
	return out
}

var snippet = reflect.TypeFor[rules.Snippet]()

// copyFields copies a struct. Args, Argv and a list in Command are argument vectors. Args follow the program in
// Command, where there is one; Argv is what Command shows as one line.
func (g gate) copyFields(v, out reflect.Value) {
	out.Set(v) // times keep their unexported fields
	if v.Type() == snippet {
		return // our own text, with line breaks
	}
	command := v.FieldByName("Command")
	var line string
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		words, _ := v.Field(i).Interface().([]string)
		switch {
		case words != nil && field.Name == "Argv":
			line = g.show(strings.Join(g.vector(words), " "))
		case words != nil && field.Name == "Args" && command.IsValid():
			out.Field(i).Set(reflect.ValueOf(g.shown(append([]string{command.String()}, words...))[1:]))
		case words != nil && (field.Name == "Args" || field.Name == "Command"):
			out.Field(i).Set(reflect.ValueOf(g.shown(words)))
		case v.Field(i).Kind() == reflect.Slice && v.Field(i).IsNil() && !strings.Contains(field.Tag.Get("json"), "omit"):
			out.Field(i).Set(reflect.MakeSlice(field.Type, 0, 0)) // JSON has [] and never null
		default:
			out.Field(i).Set(g.copy(v.Field(i)))
		}
	}
	if line != "" {
		out.FieldByName("Command").SetString(line)
	}
}

// text makes one string safe.
func (g gate) text(s string) string {
	return g.show(g.line(g.head(s)))
}

// vector returns an argument vector without secrets.
func (g gate) vector(words []string) []string {
	heads := make([]string, len(words))
	for i, w := range words {
		heads[i] = g.head(w)
	}
	return g.args(heads)
}

// shown returns an argument vector in which every word is safe to show.
func (g gate) shown(words []string) []string {
	out := g.vector(words)
	for i, w := range out {
		out[i] = g.show(w)
	}
	return out
}

// head returns as much of a string as may be shown, so that no more is searched for secrets.
func (g gate) head(s string) string {
	if g.raw {
		return s
	}
	return s[:min(len(s), 2*longest)]
}

// show escapes a string without secrets, and cuts a long one. Cutting comes last, so that no half of a secret
// is left.
func (g gate) show(s string) string {
	if g.raw {
		return s
	}
	return shorten(visible(g.head(s)), longest)
}

// visible replaces what is not printable by an escape: control characters (with which a terminal could be
// commanded, those of the C1 range too), bytes that are not UTF-8, characters that turn the direction of a
// line or have no width, and line breaks of all kinds.
func visible(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1, hidden(r) && r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case hidden(r) && r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		case hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func hidden(r rune) bool {
	return !unicode.IsGraphic(r)
}

// shorten cuts a string to so many bytes, at a whole character, and says so.
func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + fmt.Sprintf(" ... (%d bytes more)", len(s)-cut)
}
