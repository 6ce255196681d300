package catalog

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFiles(t *testing.T) {
	names, err := filepath.Glob("*.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Sorted(slices.Values(textFiles))
	if !slices.Equal(names, want) {
		t.Errorf("the folder has %q, textFiles has %q", names, want)
	}
	for _, name := range textFiles {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		x := newIndex()
		if err := x.Parse(name, string(text)); err != nil {
			t.Error(err)
			continue
		}
		if len(x.Programs)+len(x.Launchers)+len(x.Lookalikes)+len(x.lists) == 0 {
			t.Errorf("%s is empty", name)
		}
		sections := [][]string{nil} // rows below one heading, or one client or gateway
		for line := range strings.Lines(string(text)) {
			line = strings.TrimRight(line, "\n")
			switch {
			case line == "" || line[0] == '#' || line[0] == ' ':
			case strings.HasPrefix(line, "["):
				sections = append(sections, nil)
			default:
				last := len(sections) - 1
				sections[last] = append(sections[last], strings.ToLower(line))
			}
		}
		for _, rows := range sections {
			if len(x.lists) > 0 {
				rows = strings.Split(strings.Join(rows, " "), ", ")
			}
			if !slices.IsSorted(rows) {
				t.Errorf("%s is not sorted: %q", name, rows)
			}
			if n := len(rows); len(slices.Compact(rows)) != n {
				t.Errorf("%s has duplicates", name)
			}
		}
	}
}

// A client without a program is never recognised.
func TestClientsHavePrograms(t *testing.T) {
	text, err := files.ReadFile("clients.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(text), "[clients]\n")
	lines := strings.Split(strings.TrimSpace(rows), "\n")
	for i, line := range lines {
		if line[0] != ' ' && (i+1 == len(lines) || lines[i+1][0] != ' ') {
			t.Errorf("%s has no program", line)
		}
	}
}

// A name has one meaning: what is a look-alike whatever its arguments cannot be something else for
// some of them.
func TestDisjoint(t *testing.T) {
	x, err := build()
	if err != nil {
		t.Fatal(err)
	}
	for name := range x.Lookalikes {
		if name != strings.ToLower(name) {
			t.Errorf("look-alike %q is not in lower case", name)
		}
	}
	seen := map[string]bool{}
	for _, p := range slices.Concat(append(slices.Collect(maps.Values(x.Programs)), x.Prefixes)...) {
		if x.Lookalikes[p.Program] {
			t.Errorf("%s is in %s and in lookalikes", p.Program, p.Family)
		}
		key := fmt.Sprint(p.Family, " ", p.Below, "//", p.Program, " ", p.With, p.Without)
		if seen[key] {
			t.Errorf("%s has two rows in %s", p.Program, p.Family)
		}
		seen[key] = true
	}
	for _, l := range slices.Concat(slices.Collect(maps.Values(x.Launchers))...) {
		if x.Lookalikes[l.Words[0]] {
			t.Errorf("%s is in launchers and in lookalikes", l.Words[0])
		}
		key := strings.Join(l.Words, " ")
		if seen[key] {
			t.Errorf("launcher %s has two rows", key)
		}
		seen[key] = true
	}
}

func TestParse(t *testing.T) {
	x := newIndex()
	err := x.Parse("mine.txt", `# My own.
[servers]
notes   notes-mcp  serve stdio, --mcp  --help   # a comment
inhouse*
team//app, band	-	(app)
[launchers]
keyring run  keyring run  command+1  -s --service
[lookalikes]
mcp-paint
[clients]
My Agent  agent  --config, -c  once
    myagent  -  mcp
[words games]
chess, go
`)
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Programs) != 4 || len(x.Prefixes) != 1 || len(x.Launchers) != 1 || !x.Lookalikes["mcp-paint"] {
		t.Fatalf("%+v", x)
	}
	notes := x.Programs["notes"][0]
	if notes.Family != Servers || notes.Name != "notes-mcp" || len(notes.With) != 2 || len(notes.With[0]) != 2 || len(notes.Without) != 1 {
		t.Errorf("%+v", notes)
	}
	if inhouse := x.Prefixes[0]; inhouse.Program != "inhouse" || inhouse.Family != Servers {
		t.Errorf("%+v", inhouse)
	}
	if app := x.Programs["app"][0]; app.Below != "team" || !app.App || app.Name != "" {
		t.Errorf("%+v", app)
	}
	if band := x.Programs["band"][0]; band.Below != "" || !band.App {
		t.Errorf("%+v", band)
	}
	mine := x.Programs["myagent"][0]
	if mine.Name != "My Agent" || len(mine.Without) != 1 || len(mine.Client.ConfigFlags) != 2 || !mine.Client.NonInteractive(Args{"once"}) {
		t.Errorf("%+v", mine)
	}
	if games := x.lists["games"]; len(games) != 2 || !games["go"] {
		t.Errorf("%v", games)
	}
	if l := x.Launchers["keyring"][0]; l.Skip != 1 || l.Starts != StartsCommand || !l.Options["--service"] || len(l.Words) != 2 {
		t.Errorf("%+v", l)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"x":                                "mine.txt:1: a row before the first [heading]",
		"[severs]":                         `mine.txt:1: unknown heading "[severs]"`,
		"[servers":                         `mine.txt:1: unknown heading "[servers"`,
		"[servers]\n\na  b  c  d  e":       "mine.txt:3: want at most 4 columns, have 5",
		"[servers]\nNotes":                 `mine.txt:2: program "Notes" is not in lower case`,
		"[servers]\na*b":                   `mine.txt:2: program "a*b": a * is for the end of a name only`,
		"[servers]\n*":                     `mine.txt:2: program "*": a * is for the end of a name only`,
		"[servers]\na  -  b,,c":            `mine.txt:2: an empty condition in "b,,c"`,
		"[servers]\na  -  --mcp stdio":     `mine.txt:2: condition "--mcp stdio": a flag stands alone`,
		"[launchers]\na  a":                "mine.txt:2: want 3 or 4 columns, have 2",
		"[launchers]\na  a  thing":         `mine.txt:2: unknown way to start "thing"`,
		"[launchers]\na  a  command+2":     `mine.txt:2: want +1 or +--, have "command+2"`,
		"[launchers]\na  a  command  -x y": `mine.txt:2: option "y" begins with neither - nor +`,
		"[lookalikes]\na  b":               "mine.txt:2: want 1 column, have 2",
		"[clients]\nMine  program":         `mine.txt:2: unknown kind of client "program"`,
		"[clients]\n  mine":                "mine.txt:2: a program before the first name",
	} {
		err := newIndex().Parse("mine.txt", text)
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := build(); err != nil {
			b.Fatal(err)
		}
	}
}
