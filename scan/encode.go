package scan

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"time"
)

// Write writes the snapshot as one JSON value with one process a line, so that it can be read,
// searched and compared line by line. The same snapshot gives the same bytes. Bytes that are not
// UTF-8, which a process can put into its command line, become U+FFFD.
//
// It writes what it is given; secrets are taken out before, by package report.
func (s *Snapshot) Write(w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10) // keeps the first error until Flush
	line := lineWriter{out: out}
	line.enc = json.NewEncoder(&line.buf)
	line.enc.SetEscapeHTML(false) // command lines are full of < > &

	head := struct {
		Schema int       `json:"schema"`
		Kind   string    `json:"kind"`
		Taken  time.Time `json:"taken"`
		Host   *Host     `json:"host"`
	}{s.Schema, s.Kind, s.Taken, &s.Host}
	if err := line.encode(&head); err != nil {
		return err
	}
	line.buf.Truncate(line.buf.Len() - 1) // the closing brace: the rest goes on inside
	line.flush(",\n\"processes\":[")
	for i := range s.Processes {
		out.WriteString(separator(i))
		if err := line.encode(&s.Processes[i]); err != nil {
			return err
		}
		line.flush("")
	}
	out.WriteString("\n]")
	if len(s.Problems) > 0 {
		if err := line.encode(s.Problems); err != nil {
			return err
		}
		out.WriteString(",\n\"problems\":")
		line.flush("")
	}
	out.WriteString("}\n")
	return out.Flush()
}

// separator stands before the value at index i of an array with one value a line.
func separator(i int) string {
	if i == 0 {
		return "\n"
	}
	return ",\n"
}

// A lineWriter encodes one value at a time into a buffer that it uses again.
type lineWriter struct {
	out *bufio.Writer
	buf bytes.Buffer
	enc *json.Encoder
}

// encode encodes v into the empty buffer, without the newline that the encoder adds.
func (l *lineWriter) encode(v any) error {
	l.buf.Reset()
	if err := l.enc.Encode(v); err != nil {
		return err
	}
	l.buf.Truncate(l.buf.Len() - 1)
	return nil
}

// flush writes the buffer and what comes after it.
func (l *lineWriter) flush(after string) {
	l.out.Write(l.buf.Bytes())
	l.out.WriteString(after)
}
