package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"mcpdoctor/rules"
	"mcpdoctor/rules/reap"
	"mcpdoctor/scan"
)

// JSON writes a report as one JSON value, to the contract that [rules.Report] is.
func JSON(w io.Writer, r *rules.Report) error { return writeJSON(w, clean(r)) }

// RulesJSON writes the rules as a JSON array, in the order of judging.
func RulesJSON(w io.Writer, all []*rules.Rule) error { return writeJSON(w, all) }

// PlanJSON writes a plan, or what became of it, to the contract that [reap.Plan] is.
func PlanJSON(w io.Writer, plan *reap.Plan) error { return writeJSON(w, clean(plan)) }

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

// Snapshot writes a snapshot without its secrets. Otherwise it keeps the strings as they are, escaped as JSON
// has it.
func Snapshot(w io.Writer, s *scan.Snapshot) error {
	return pass(snapshotGate, s).Write(asciiControls{w})
}

// asciiControls writes JSON with each character that a terminal could obey, or that hides, as a \u escape. In
// JSON such characters can only stand in strings, where the escape means the same.
type asciiControls struct{ w io.Writer }

func (a asciiControls) Write(p []byte) (int, error) {
	b := make([]byte, 0, len(p))
	for rest := p; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if r >= 0x7f && hidden(r) {
			for _, unit := range utf16.AppendRune(nil, r) {
				b = fmt.Appendf(b, `\u%04x`, unit)
			}
		} else {
			b = append(b, rest[:n]...)
		}
		rest = rest[n:]
	}
	if _, err := a.w.Write(b); err != nil {
		return 0, err
	}
	return len(p), nil
}
