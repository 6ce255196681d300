package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan"
)

var update = flag.Bool("update", false, "write the golden files anew")

// judged returns the report on a case.
func judged(t *testing.T, name string) *rules.Report {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var c struct{ Snapshot scan.Snapshot }
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	r := rules.Judge(process.Recognise(&c.Snapshot), rules.Options{})
	r.Tool = rules.Tool{Name: "mcpdoctor", Version: "test"}
	return r
}

// Every case, as a person sees it on a terminal of 100 columns. Read the difference before you
// accept it with -update.
func TestGoldenText(t *testing.T) {
	cases, err := filepath.Glob("../testdata/snapshots/*.json")
	if err != nil || len(cases) == 0 {
		t.Fatal("there are no cases", err)
	}
	for _, file := range cases {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := Text(&b, judged(t, file), Options{Width: 100}); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", b.Bytes())
		})
	}
}

func TestGoldenOthers(t *testing.T) {
	r := judged(t, "../testdata/snapshots/supergateway-stateless-container.json")
	for name, write := range map[string]func(*bytes.Buffer) error{
		"report.json": func(b *bytes.Buffer) error { return JSON(b, r) },
		"pipe.txt":    func(b *bytes.Buffer) error { return Text(b, r, Options{}) },
		"verbose.txt": func(b *bytes.Buffer) error { return Text(b, r, Options{Width: 100, Verbose: true}) },
		"colour.txt":  func(b *bytes.Buffer) error { return Text(b, r, Options{Width: 80, Color: true}) },
		"narrow.txt":  func(b *bytes.Buffer) error { return Text(b, r, Options{Width: 40}) },
		"explain.txt": func(b *bytes.Buffer) error { return Explain(b, rules.Lookup("orphan"), Options{Width: 80}) },
		"rules.txt":   func(b *bytes.Buffer) error { return RuleList(b, rules.Rules(), Options{}) },
		"rules.json":  func(b *bytes.Buffer) error { return RulesJSON(b, rules.Rules()) },
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			golden(t, name, b.Bytes())
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("../testdata/golden", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test ./report -run Golden -update writes it)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what it was; got:\n%s\nwant:\n%s", name, got, want)
	}
}

// The README shows the rules as they are.
func TestGoldenReadme(t *testing.T) {
	const file = "../README.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := ruleTable(rules.Rules())
	header, _, _ := strings.Cut(want, "\n")
	before, rest, found := strings.Cut(string(text), header)
	if !found {
		t.Fatalf("the README has no table that begins with %q", header)
	}
	end := strings.Index(rest, "\n\n") + 1
	table, after := header+rest[:end], rest[end:]
	if table == want {
		return
	}
	if !*update {
		t.Errorf("the README's table of rules should be (make golden writes it):\n%s", want)
	} else if err := os.WriteFile(file, []byte(before+want+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// ruleTable writes the rules as a table of Markdown, for the README.
func ruleTable(all []*rules.Rule) string {
	var b strings.Builder
	b.WriteString("| rule | says | level | what may be terminated |\n| --- | --- | --- | --- |\n")
	for _, r := range all {
		b.WriteString("| `" + r.ID + "` | " + r.Title + " | " + string(r.Severity) + " | " + r.Reap + " |\n")
	}
	return b.String()
}
