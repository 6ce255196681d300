package scan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxInput is the size of the largest text that Read takes. A hundred thousand processes with long
// command lines need a tenth of it.
const MaxInput = 256 << 20

// Read reads a snapshot from text: the JSON that Write writes, or the same value laid out in any
// other way; a test case, which is an object that holds such a value as "snapshot"; or what ps(1)
// prints, as people paste it into bug reports, with its header line. The text may begin with a byte
// order mark and may be UTF-16, which is what PowerShell makes of a redirection.
//
// The text of ps has no date, so that such a snapshot is taken now.
//
// The processes are put in order. Each must have a PID of its own: one that is there twice is an
// error in JSON, where it means that the file was tampered with or joined; in the text of ps, where
// it means that threads were listed or two outputs pasted, the first counts and a problem says so.
// A "ppid" that is not there is [UnknownPPID].
//
// An error is one sentence that names the place and, where there is one, the cure.
func Read(r io.Reader, now time.Time) (*Snapshot, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxInput+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxInput {
		return nil, fmt.Errorf("larger than %d MiB, which no process table is", MaxInput>>20)
	}
	data = bytes.TrimSpace(toUTF8(data))
	switch {
	case len(data) == 0:
		return nil, errors.New("empty: neither a snapshot nor the output of ps; did the command that should write it fail?")
	case bytes.HasPrefix(data, []byte{0x1f, 0x8b}):
		return nil, errors.New("compressed data (gzip): decompress it first")
	case bytes.IndexByte(data, 0) >= 0:
		return nil, errors.New("binary data: neither a snapshot nor the output of ps")
	case data[0] == '{':
		return readJSON(data)
	case data[0] == '[' && json.Valid(data):
		return nil, errors.New("a JSON array: a snapshot is an object; write one with: mcpdoctor snapshot")
	}
	return readPS(string(data), now)
}

// toUTF8 takes the byte order mark away and turns UTF-16 into UTF-8.
func toUTF8(data []byte) []byte {
	var at func(i int) uint16
	switch {
	case bytes.HasPrefix(data, []byte{0xef, 0xbb, 0xbf}):
		return data[3:]
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}):
		at = func(i int) uint16 { return uint16(data[i]) | uint16(data[i+1])<<8 }
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		at = func(i int) uint16 { return uint16(data[i+1]) | uint16(data[i])<<8 }
	default:
		return data
	}
	units := make([]uint16, 0, len(data)/2)
	for i := 2; i+1 < len(data); i += 2 {
		units = append(units, at(i))
	}
	out := make([]byte, 0, len(units))
	for _, r := range utf16.Decode(units) {
		out = utf8.AppendRune(out, r)
	}
	return out
}

// readJSON reads a snapshot, or a case that holds one.
func readJSON(text []byte) (*Snapshot, error) {
	var head struct {
		Schema   *int            `json:"schema"`
		Kind     *string         `json:"kind"`
		Snapshot json.RawMessage `json:"snapshot"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, explainJSON(text, 0, err)
	}
	value, offset := text, 0
	if head.Kind == nil && len(head.Snapshot) > 0 {
		value = head.Snapshot
		offset = max(0, bytes.Index(text, value))
		if err := json.Unmarshal(value, &head); err != nil {
			return nil, explainJSON(text, offset, err)
		}
	}
	switch {
	case head.Kind == nil:
		return nil, fmt.Errorf("some other JSON: a snapshot says \"kind\":%q; write one with: mcpdoctor snapshot", Kind)
	case *head.Kind == "mcpdoctor.report":
		return nil, errors.New("a report, which does not hold what was seen: write a snapshot with: mcpdoctor snapshot")
	case *head.Kind != Kind:
		return nil, fmt.Errorf("kind %q is not %q: write a snapshot with: mcpdoctor snapshot", *head.Kind, Kind)
	case head.Schema == nil:
		return nil, fmt.Errorf("no schema; this mcpdoctor reads schema %d", Schema)
	case *head.Schema != Schema:
		return nil, fmt.Errorf("schema %d; this mcpdoctor reads schema %d", *head.Schema, Schema)
	}

	// What must be there is decoded into pointers that hide the plain fields: a PPID that is
	// missing is not 0.
	type row struct {
		PID  *int `json:"pid"`
		PPID *int `json:"ppid"`
		Process
	}
	var in struct {
		Snapshot
		Processes []row `json:"processes"`
	}
	if err := json.Unmarshal(value, &in); err != nil {
		return nil, explainJSON(text, offset, err)
	}
	if in.Taken.IsZero() {
		return nil, errors.New("no \"taken\": without the moment of the snapshot no process has an age")
	}
	if in.Processes == nil {
		return nil, errors.New("no \"processes\"")
	}
	s := &in.Snapshot
	s.Processes = make([]Process, 0, len(in.Processes))
	seen := make(map[int]int, len(in.Processes))
	for i, r := range in.Processes {
		if r.PID == nil || *r.PID < 0 {
			return nil, fmt.Errorf("processes[%d] has no pid", i)
		}
		p := r.Process
		p.PID, p.PPID = *r.PID, UnknownPPID
		if r.PPID != nil && *r.PPID >= 0 {
			p.PPID = *r.PPID
		}
		if first, twice := seen[p.PID]; twice {
			return nil, fmt.Errorf("processes[%d] has the pid of processes[%d], %d: a pid names one process", i, first, p.PID)
		}
		seen[p.PID] = i
		s.Processes = append(s.Processes, p)
	}
	s.sort()
	return s, nil
}

// sort puts the processes in order.
func (s *Snapshot) sort() {
	slices.SortFunc(s.Processes, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
}

// explainJSON says where and why the text is not a snapshot. The error's own offset, when it has
// one, counts from base.
func explainJSON(text []byte, base int, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax) && base+int(syntax.Offset) >= len(text):
		return fmt.Errorf("truncated: the JSON ends in the middle of a value, at %s; write the snapshot again", place(text, len(text)))
	case errors.As(err, &syntax):
		return fmt.Errorf("broken JSON at %s: %w", place(text, base+int(syntax.Offset)), err)
	case errors.As(err, &kind):
		return fmt.Errorf("at %s: %q is a %s, which does not belong there", place(text, base+int(kind.Offset)), kind.Field, kind.Value)
	}
	return err
}

// place names the position of a byte as editors do.
func place(text []byte, offset int) string {
	before := text[:max(0, min(offset-1, len(text)))]
	line := bytes.Count(before, []byte{'\n'}) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d", line, column)
}
