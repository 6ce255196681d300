package scan

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// asJSON compares values as their readers see them.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkTable checks what every snapshot promises, and that it survives being written.
func checkTable(t *testing.T, s *Snapshot) {
	t.Helper()
	for i, p := range s.Processes {
		if p.PID < 0 || p.PPID < UnknownPPID {
			t.Errorf("pid %d, ppid %d", p.PID, p.PPID)
		}
		if i > 0 && p.PID <= s.Processes[i-1].PID {
			t.Errorf("pid %d follows pid %d", p.PID, s.Processes[i-1].PID)
		}
	}
	// The second writing is compared with the third: in the first, bytes that are no UTF-8 are lost.
	again := rewrite(t, rewrite(t, s))
	if got, want := written(t, again), written(t, rewrite(t, s)); got != want {
		t.Errorf("written, read and written again it differs:\n%s\n%s", want, got)
	}
}

// written is the snapshot as JSON.
func written(t *testing.T, s *Snapshot) string {
	t.Helper()
	var out strings.Builder
	if err := s.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// rewrite writes the snapshot and reads it back.
func rewrite(t *testing.T, s *Snapshot) *Snapshot {
	t.Helper()
	text := written(t, s)
	s, err := Decode([]byte(text))
	if err != nil {
		t.Fatalf("what was written cannot be read: %v\n%s", err, text)
	}
	return s
}

// noon is when the sample is taken.
var noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// sample has something in every field.
func sample() *Snapshot {
	return &Snapshot{
		Schema: Schema, Kind: Kind, Taken: noon,
		Host: Host{
			OS: "linux", Name: "box", Container: true, UID: ptr(1000), UptimeSeconds: 9, MemoryTotalBytes: 8,
			MemoryAvailableBytes: 7, SwapTotalBytes: 6, SwapFreeBytes: 5,
			Services: []Service{{Manager: "systemd", Name: "a.service", MainPID: 1}},
		},
		Processes: []Process{
			{PID: 1, PPID: 0, Start: 5, Name: "init"},
			{
				PID: 7, PPID: 1, Start: 99, Started: noon.Add(-time.Hour), Name: "node", Args: []string{"node", "", "a b<&>\n"},
				Exe: "/usr/bin/node", CWD: "/", User: "dev", UID: ptr(0), State: "S", TTY: "-", PGID: 7, SID: 7,
				RSSBytes: ptr[int64](0), SwapBytes: ptr[int64](1), PSSBytes: ptr[int64](2), CPUSeconds: ptr(0.25), CPUPercent: ptr(1.5),
				Cgroup: "/x", Stdin: &Stdin{Type: StdinPipe, Peer: PeerClosed, Holders: []int{}}, Listen: []string{},
				InboundConnections: ptr(0), Env: map[string]string{"b": "2", "a": "1"}, Unreadable: []string{"cwd"},
			},
			{PID: 8, PPID: UnknownPPID, Cmdline: "node x"},
		},
		Problems: []string{"a problem"},
	}
}

func TestWrite(t *testing.T) {
	const want = `{"schema":1,"kind":"mcpdoctor.snapshot","taken":"2026-09-01T12:00:00Z","host":{"os":"linux","name":"box","container":true,"uid":1000,"uptime_seconds":9,"memory_total_bytes":8,"memory_available_bytes":7,"swap_total_bytes":6,"swap_free_bytes":5,"services":[{"manager":"systemd","name":"a.service","main_pid":1}]},
"processes":[
{"pid":1,"ppid":0,"start":5,"name":"init"},
{"pid":7,"ppid":1,"start":99,"started":"2026-09-01T11:00:00Z","name":"node","args":["node","","a b<&>\n"],"exe":"/usr/bin/node","cwd":"/","user":"dev","uid":0,"state":"S","tty":"-","pgid":7,"sid":7,"rss_bytes":0,"swap_bytes":1,"pss_bytes":2,"cpu_seconds":0.25,"cpu_percent":1.5,"cgroup":"/x","stdin":{"type":"pipe","peer":"closed","holders":[]},"listen":[],"inbound_connections":0,"env":{"a":"1","b":"2"},"unreadable":["cwd"]},
{"pid":8,"ppid":-1,"start":0,"cmdline":"node x"}
],
"problems":["a problem"]}
`
	if got := written(t, sample()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	checkTable(t, sample())
	checkTable(t, &Snapshot{Schema: Schema, Kind: Kind, Taken: noon})

	if err := sample().Write(failing{}); !errors.Is(err, errFull) {
		t.Errorf("a full disk gives %v", err)
	}
}

// TestWriteHasAllFields fails when a field is added to Snapshot that Write does not know.
func TestWriteHasAllFields(t *testing.T) {
	fields := reflect.ValueOf(*sample())
	for i := range fields.NumField() {
		if fields.Field(i).IsZero() {
			t.Errorf("the sample has no %s", fields.Type().Field(i).Name)
		}
	}
	var whole, lines bytes.Buffer
	if err := json.Compact(&lines, []byte(written(t, sample()))); err != nil {
		t.Fatal(err)
	}
	json.HTMLEscape(&whole, lines.Bytes())
	if want := asJSON(t, sample()); whole.String() != want {
		t.Errorf("got  %s\nwant %s", whole.String(), want)
	}
}

var errFull = errors.New("no space left on device")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

func TestDecodeOrdersProcesses(t *testing.T) {
	s, err := Decode([]byte(`{"schema":1,"kind":"mcpdoctor.snapshot","taken":"2026-09-01T12:00:00Z","host":{"os":"linux"},
		"processes":[{"pid":9,"start":1},{"pid":3,"ppid":1,"start":1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if s.Processes[0].PID != 3 || s.Processes[1].PPID != UnknownPPID {
		t.Errorf("%s", asJSON(t, s.Processes))
	}
}

// TestDecodeCases: every case of the rules can be read.
func TestDecodeCases(t *testing.T) {
	for _, file := range caseFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Decode(text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		checkTable(t, s)
	}
}

func caseFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../testdata/snapshots/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	return files
}

// TestDecodeForms: one snapshot in every layout.
func TestDecodeForms(t *testing.T) {
	text := written(t, sample())
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, []byte(text), "", "\t"); err != nil {
		t.Fatal(err)
	}
	forms := map[string]string{
		"as written":  text,
		"pretty":      pretty.String(),
		"CRLF":        strings.ReplaceAll(pretty.String(), "\n", "\r\n"),
		"case":        `{"id": "x", "expect": {}, "snapshot": ` + pretty.String() + `}`,
		"more fields": strings.Replace(text, `"host"`, `"later":{"x":[1]},"host"`, 1),
	}
	want := asJSON(t, sample())
	for name, form := range forms {
		s, err := Decode([]byte(form))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := asJSON(t, s); got != want {
			t.Errorf("%s: got  %s\nwant %s", name, got, want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	head := `{"schema":1,"kind":"mcpdoctor.snapshot","taken":"2026-09-01T12:00:00Z","host":{"os":"linux"},`
	tests := map[string]struct{ text, want string }{
		"truncated": {head + "\n\"processes\":[\n{\"pid\":1,\"pp", "truncated: the JSON ends inside a value at line 3, column 12; create the snapshot again"},
		"broken":    {"{\n  \"schema\": 1,\n  oops}", "broken JSON at line 3, column 3"},
		"joined":    {head + "\"processes\":[]}\n" + head + "\"processes\":[]}", "broken JSON at line 2, column 1"},
		"kind":      {`{"schema":1,"kind":"trivy.report"}`, `kind "trivy.report" is not "mcpdoctor.snapshot"`},
		"no kind":   {`{"a":1}`, `not a snapshot`},
		"report":    {`{"schema":1,"kind":"mcpdoctor.report"}`, "a report, not a snapshot"},
		"schema":    {`{"schema":2,"kind":"mcpdoctor.snapshot"}`, "schema 2; this mcpdoctor reads schema 1"},
		"no schema": {`{"kind":"mcpdoctor.snapshot"}`, "no schema"},
		"no time":   {`{"schema":1,"kind":"mcpdoctor.snapshot","processes":[]}`, `no "taken"`},
		"bad time":  {`{"schema":1,"kind":"mcpdoctor.snapshot","taken":"yesterday","processes":[]}`, `"yesterday"`},
		"no table":  {head + `"problems":[]}`, `no "processes"`},
		"no pid":    {head + `"processes":[{"pid":1,"ppid":0},{"ppid":1}]}`, "processes[1] has no pid"},
		"bad type":  {head + "\n" + `"processes":[{"pid":"7","ppid":0}]}`, `at line 2, column 23: "processes.pid" must not be a string`},
		"twice":     {head + `"processes":[{"pid":1},{"pid":7},{"pid":7}]}`, "processes[2] has the pid of processes[1], 7"},
		"case":      {`{"id":"x","snapshot":{"schema":9,"kind":"mcpdoctor.snapshot"}}`, "schema 9"},
	}
	for name, test := range tests {
		s, err := Decode([]byte(test.text))
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
}

func FuzzDecode(f *testing.F) {
	for _, file := range caseFiles(f) {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := Decode(text); err == nil {
			checkTable(t, s)
		}
	})
}
