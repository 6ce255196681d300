package scan

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"time"
)

// Write writes the snapshot as one JSON value with one process per line, so that it can be searched and compared
// line by line. The same snapshot gives the same bytes. Bytes that are not UTF-8, which a process can put into
// its command line, become U+FFFD. Secrets are not removed: that is done before, by package report.
func (s *Snapshot) Write(w io.Writer) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // command lines are full of < > &
	encode := func(v any) ([]byte, error) {
		buf.Reset()
		err := enc.Encode(v)
		return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
	}
	out := bufio.NewWriterSize(w, 64<<10) // keeps the first error until Flush

	head, err := encode(struct {
		Schema int       `json:"schema"`
		Kind   string    `json:"kind"`
		Taken  time.Time `json:"taken"`
		Host   *Host     `json:"host"`
	}{s.Schema, s.Kind, s.Taken, &s.Host})
	if err != nil {
		return err
	}
	out.Write(bytes.TrimSuffix(head, []byte("}")))
	out.WriteString(",\n\"processes\":[")
	separator := "\n"
	for i := range s.Processes {
		row, err := encode(&s.Processes[i])
		if err != nil {
			return err
		}
		out.WriteString(separator)
		out.Write(row)
		separator = ",\n"
	}
	out.WriteString("\n]")
	if len(s.Problems) > 0 {
		problems, err := encode(s.Problems)
		if err != nil {
			return err
		}
		out.WriteString(",\n\"problems\":")
		out.Write(problems)
	}
	out.WriteString("}\n")
	return out.Flush()
}
