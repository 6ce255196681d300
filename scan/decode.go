package scan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Decode reads a snapshot from JSON in any layout, or from a test case, an object with the snapshot as "snapshot".
//
// It orders the processes and rejects a PID that occurs twice. A missing "ppid" is [UnknownPPID]. An error is one
// sentence with the place and, if there is one, the remedy.
func Decode(text []byte) (*Snapshot, error) {
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
		return nil, fmt.Errorf("not a snapshot: it has no \"kind\":%q; create one with: mcpdoctor snapshot", Kind)
	case *head.Kind == "mcpdoctor.report":
		return nil, errors.New("a report, not a snapshot; create one with: mcpdoctor snapshot")
	case *head.Kind != Kind:
		return nil, fmt.Errorf("kind %q is not %q; create a snapshot with: mcpdoctor snapshot", *head.Kind, Kind)
	case head.Schema == nil:
		return nil, fmt.Errorf("no schema; this mcpdoctor reads schema %d", Schema)
	case *head.Schema != Schema:
		return nil, fmt.Errorf("schema %d; this mcpdoctor reads schema %d", *head.Schema, Schema)
	}

	// These pointers hide the plain fields, to distinguish a missing PPID from 0.
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
		return nil, errors.New("no \"taken\": the ages of processes are unknown without the time of the snapshot")
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
			return nil, fmt.Errorf("processes[%d] has the pid of processes[%d], %d; PIDs must be unique", i, first, p.PID)
		}
		seen[p.PID] = i
		s.Processes = append(s.Processes, p)
	}
	s.sort()
	return s, nil
}

// sort orders the processes by PID.
func (s *Snapshot) sort() {
	slices.SortFunc(s.Processes, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
}

// explainJSON says where and why the text is not a snapshot. An offset in the error counts from base.
func explainJSON(text []byte, base int, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax) && base+int(syntax.Offset) >= len(text):
		return fmt.Errorf("truncated: the JSON ends inside a value at %s; create the snapshot again", place(text, len(text)))
	case errors.As(err, &syntax):
		return fmt.Errorf("broken JSON at %s: %w", place(text, base+int(syntax.Offset)), err)
	case errors.As(err, &kind):
		return fmt.Errorf("at %s: %q must not be a %s", place(text, base+int(kind.Offset)), kind.Field, kind.Value)
	}
	return err
}

// place formats the position of a byte as editors do.
func place(text []byte, offset int) string {
	before := text[:max(0, min(offset-1, len(text)))]
	line := bytes.Count(before, []byte{'\n'}) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d", line, column)
}
