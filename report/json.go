package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"unicode/utf8"

	"mcpdoctor/rules"
	"mcpdoctor/scan"
)

// JSON writes a report as one JSON value, to the contract that [rules.Report] is.
func JSON(w io.Writer, r *rules.Report) error { return writeJSON(w, clean(r)) }

// RulesJSON writes the rules as a JSON array, in the order of judging.
func RulesJSON(w io.Writer, all []*rules.Rule) error { return writeJSON(w, all) }

func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Snapshot writes a snapshot without its secrets. Unlike a report it keeps the strings as they
// were, since it is to be judged again; what a terminal could obey is escaped as JSON has it.
func Snapshot(w io.Writer, s *scan.Snapshot) error {
	out := copyOf(reflect.ValueOf(s), Redact).Interface().(*scan.Snapshot)
	for i := range out.Processes {
		// What is a secret may only be told by the argument before it.
		out.Processes[i].Args = RedactArgs(s.Processes[i].Args)
	}
	return out.Write(asciiControls{w})
}

// asciiControls writes JSON with each character that a terminal could obey, or that hides, as a \u
// escape. Inside JSON such characters can only stand in strings, where the escape means the same.
type asciiControls struct{ w io.Writer }

func (a asciiControls) Write(p []byte) (int, error) {
	var b []byte
	for i := 0; i < len(p); {
		if p[i] < utf8.RuneSelf && p[i] != 0x7f {
			if b != nil {
				b = append(b, p[i])
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(p[i:])
		plain := !hidden(r)
		switch {
		case plain && b != nil:
			b = append(b, p[i:i+n]...)
		case plain:
		default:
			if b == nil {
				b = append(make([]byte, 0, len(p)+64), p[:i]...)
			}
			if r > 0xffff {
				r -= 0x10000
				b = fmt.Appendf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			} else {
				b = fmt.Appendf(b, `\u%04x`, r)
			}
		}
		i += n
	}
	if b == nil {
		return a.w.Write(p)
	}
	if _, err := a.w.Write(b); err != nil {
		return 0, err
	}
	return len(p), nil
}
