package pasted

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf16"

	"mcpdoctor/scan"
)

// TestReadForms: JSON in every encoding in which it may come.
func TestReadForms(t *testing.T) {
	const text = `{"schema":1,"kind":"mcpdoctor.snapshot","taken":"2026-09-01T12:00:00Z","host":{"os":"linux"},"processes":[{"pid":1,"ppid":0,"start":5,"name":"ïnit","args":["a<&>","\n"]}]}`
	utf16Text := func(high, low int) string {
		out := []byte{}
		for _, u := range append([]uint16{0xfeff}, utf16.Encode([]rune(text))...) {
			b := [2]byte{}
			b[high], b[low] = byte(u>>8), byte(u)
			out = append(out, b[:]...)
		}
		return string(out)
	}
	want, err := scan.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]string{
		"as written":    text,
		"blank lines":   "\r\n\n " + text + "\n",
		"UTF-8 mark":    "\ufeff" + text,
		"UTF-16 little": utf16Text(1, 0),
		"UTF-16 big":    utf16Text(0, 1),
	} {
		s, err := Read(iotest.HalfReader(strings.NewReader(form)), time.Time{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got, want := asJSON(t, s), asJSON(t, want); got != want {
			t.Errorf("%s: got  %s\nwant %s", name, got, want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"empty":       {"", "empty: neither a snapshot nor the output of ps; did the command that should write it fail?"},
		"blank":       {"\ufeff \n\t", "empty"},
		"array":       {`[{"pid":1}]`, "a JSON array"},
		"gzip":        {"\x1f\x8b\x08\x00", "compressed data (gzip)"},
		"binary":      {"\x7fELF\x02\x00\x00", "binary data"},
		"prose":       {"The PID of my server is 7.\n", "neither a snapshot nor the output of ps with its header line; paste all that is printed by: " + psCommand},
		"no header":   {"dev 100 99 0 10:00 pts/0 00:00:01 node server.mjs\n", "header line"},
		"header only": {"  PID  PPID COMMAND\n", "no line below it is a process"},
		"broken":      {"\n{\"schema\": oops}", "broken JSON at line 1, column 12"},
	}
	for name, test := range tests {
		s, err := Read(strings.NewReader(test.text), noon)
		if err == nil {
			t.Errorf("%s: read as %s", name, asJSON(t, s))
			continue
		}
		if !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %q, want %q", name, err, test.want)
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one line: %q", name, err)
		}
	}

	if _, err := Read(iotest.ErrReader(errFull), noon); !errors.Is(err, errFull) {
		t.Errorf("a failing reader gives %v", err)
	}
	if _, err := Read(endless{}, noon); err == nil || !strings.Contains(err.Error(), "larger than 256 MiB") {
		t.Errorf("an endless reader gives %v", err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("../../testdata/pasted/*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no texts: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"schema":1,"kind":"mcpdoctor.snapshot","taken":"2026-09-01T12:00:00Z","host":{},"processes":[{"pid":1}]}`))
	f.Add([]byte("\xff\xfe{\x00}\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := Read(bytes.NewReader(text), noon); err == nil {
			checkTable(t, s)
		}
	})
}

var errFull = errors.New("no space left on device")

// asJSON compares values as their readers see them.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkTable checks the order of a snapshot, and that it survives being written.
func checkTable(t *testing.T, s *scan.Snapshot) {
	t.Helper()
	for i, p := range s.Processes {
		if p.PID < 0 || p.PPID < scan.UnknownPPID {
			t.Errorf("pid %d, ppid %d", p.PID, p.PPID)
		}
		if i > 0 && p.PID <= s.Processes[i-1].PID {
			t.Errorf("pid %d follows pid %d", p.PID, s.Processes[i-1].PID)
		}
	}
	rewrite := func(s *scan.Snapshot) (text string, again *scan.Snapshot) {
		var out strings.Builder
		if err := s.Write(&out); err != nil {
			t.Fatal(err)
		}
		again, err := scan.Decode([]byte(out.String()))
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, out.String())
		}
		return out.String(), again
	}
	// The second writing is compared with the third: in the first, bytes that are no UTF-8 are lost.
	_, s = rewrite(s)
	second, s := rewrite(s)
	if third, _ := rewrite(s); third != second {
		t.Errorf("written, read and written again it differs:\n%s\n%s", second, third)
	}
}
