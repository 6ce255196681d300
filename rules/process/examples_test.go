package process

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpdoctor/rules/command"
	"mcpdoctor/scan"
)

// example is one line of testdata/commands.
type example struct {
	where, os, role, program string
	process                  scan.Process
}

// examples reads testdata/commands, whose format servers.txt describes.
func examples(tb testing.TB) []example {
	tb.Helper()
	files, err := filepath.Glob("../../testdata/commands/*.txt")
	if err != nil || len(files) == 0 {
		tb.Fatal("no examples: ", err)
	}
	var all []example
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		number := 0
		for s := bufio.NewScanner(strings.NewReader(string(text))); s.Scan(); {
			number++
			line := s.Text()
			if line == "" || line[0] == '#' {
				continue
			}
			columns := strings.SplitN(line, "  ", 4)
			if len(columns) != 4 {
				tb.Fatalf("%s:%d: want 4 columns", name, number)
			}
			e := example{where: fmt.Sprintf("%s:%d", filepath.Base(name), number), role: columns[1], program: columns[2]}
			var shown bool
			e.os, shown = strings.CutSuffix(columns[0], "-ps")
			switch {
			case shown || e.os == "windows":
				e.process.Cmdline = columns[3]
			case strings.HasPrefix(columns[3], "["):
				if err := json.Unmarshal([]byte(columns[3]), &e.process.Args); err != nil {
					tb.Fatalf("%s: %v", e.where, err)
				}
			default:
				e.process.Args = cutVector(columns[3])
			}
			all = append(all, e)
		}
	}
	return all
}

// cutVector cuts a line at its spaces. Quotes keep together what is between them, when they are at
// both ends of a word.
func cutVector(line string) (words []string) {
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		if quote := line[0]; quote == '\'' || quote == '"' {
			if end := strings.IndexByte(line[1:], quote); end >= 0 && (end+2 == len(line) || line[end+2] == ' ') {
				words, line = append(words, line[1:end+1]), line[end+2:]
				continue
			}
		}
		word, rest, _ := strings.Cut(line, " ")
		words, line = append(words, word), rest
	}
	return words
}

func TestExamples(t *testing.T) {
	counts := map[string]int{}
	for _, e := range examples(t) {
		r := Classify(&e.process, e.os)
		role := string(r.Role)
		if role == "" {
			role = "-"
		}
		counts[e.role]++
		if role != e.role || e.program != "-" && r.Command.Program != e.program {
			t.Errorf("%s: is %s %q, want %s %q\n%q %s\n%+v", e.where, role, r.Command.Program, e.role, e.program, e.process.Args, e.process.Cmdline, r)
		}
		if r.Role != "" && (r.Name == "" || r.By == "" || r.Confidence == "") {
			t.Errorf("%s: incomplete: %+v", e.where, r)
		}
		if (r.Target != "") != (r.Role == RoleLauncher) {
			t.Errorf("%s: a %s with target %q", e.where, r.Role, r.Target)
		}
	}
	t.Log(counts)
}

func FuzzResolve(f *testing.F) {
	for _, e := range examples(f) {
		f.Add(strings.Join(e.process.Args, "\x00") + e.process.Cmdline)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, os := range [...]string{"linux", "darwin", "windows", ""} {
			for _, p := range [...]scan.Process{{Cmdline: line}, {Args: strings.Split(line, "\x00")}, {Args: []string{"sh", "-c", line}}, {Args: []string{"cmd", "/c", line}}} {
				r := Classify(&p, os)
				r.Command.Identity()
				r.Targets(os)
				command.SameProgram(r.Command, command.ParseLine(line, os))
			}
		}
	})
}
