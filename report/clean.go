// Package report writes what was found: as text for people, as JSON for programs, and as a
// snapshot for later. All three are readers of a plain value, and know nothing of processes,
// terminals or flags.
//
// Every string that came from a process is untrusted, since any user may put escape codes,
// newlines or a megabyte into a command line of their own, and it may hold a secret. So nothing is
// written that has not passed the gate in this file.
package report

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"mcpdoctor/rules"
)

// longest is how many bytes of one string are shown: more than any real command line that a
// person would read, and little enough for a thousand of them.
const longest = 4 << 10

// clean returns a deep copy of a report in which every string is safe to show. It goes through
// all fields there are, so that a new one cannot be forgotten.
func clean(r *rules.Report) *rules.Report {
	return copyOf(reflect.ValueOf(r), text).Interface().(*rules.Report)
}

// copyOf copies a value with all that it holds, and passes every string through a gate.
func copyOf(v reflect.Value, gate func(string) string) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		out.SetString(gate(v.String()))
	case reflect.Pointer:
		if v.IsNil() {
			return out
		}
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(copyOf(v.Elem(), gate))
	case reflect.Slice:
		if v.IsNil() {
			return out
		}
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(copyOf(v.Index(i), gate))
		}
	case reflect.Map:
		if v.IsNil() {
			return out
		}
		out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		for it := v.MapRange(); it.Next(); {
			out.SetMapIndex(copyOf(it.Key(), gate), copyOf(it.Value(), gate))
		}
	case reflect.Struct:
		out.Set(v) // times keep their unexported fields
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(copyOf(v.Field(i), gate))
			}
		}
	default:
		out.Set(v)
	}
	return out
}

// text makes one string safe: secrets out, then control characters, then the rest of a very long
// one. Cutting comes last, so that no half of a secret is left at the end; but what is cut off
// anyway need not be searched.
func text(s string) string {
	if len(s) > 2*longest {
		s = s[:2*longest]
	}
	return shorten(visible(Redact(s)), longest)
}

// visible writes what is not printable as an escape that can be read: control characters (with
// which a terminal could be commanded, also those of the C1 range), bytes that are not UTF-8,
// characters that turn the direction of a line or have no width, and line breaks of all kinds.
func visible(s string) string {
	if !needsEscape(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case hidden(r) && r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case hidden(r) && r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		case hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

func needsEscape(s string) bool {
	for i, r := range s {
		if r < 0x20 || r >= 0x7f && (hidden(r) || r == utf8.RuneError && s[i] != 0xef) {
			return true
		}
	}
	return false
}

func hidden(r rune) bool {
	return r != ' ' && !unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029
}

// shorten cuts a string to so many bytes, at a whole character, and says that it did.
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
