// Case makes a case of a bug report: it reads a snapshot of mcpdoctor, or the text of ps, from stdin and writes
// a file for testdata/snapshots, in which the expectation is what the rules say today. Correct that by
// hand to what is right before you commit it.
//
//	go run ./testdata/scripts/case NAME < report.txt
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"mcpdoctor/report"
	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan/pasted"
	"mcpdoctor/testdata/tables"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "case:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 || args[0] != filepath.Base(args[0]) {
		return fmt.Errorf("name the case: go run ./testdata/scripts/case NAME < report.txt")
	}
	snap, err := pasted.Read(os.Stdin, time.Now())
	if err != nil {
		return err
	}
	var redacted bytes.Buffer
	if err := report.Snapshot(&redacted, snap); err != nil {
		return err
	}
	text, err := json.MarshalIndent(struct {
		ID       string             `json:"id"`
		Source   string             `json:"source"`
		Story    string             `json:"story"`
		Snapshot json.RawMessage    `json:"snapshot"`
		Expect   tables.Expectation `json:"expect"`
	}{
		ID: args[0], Source: "the address of the report",
		Story:    "What happened, in two or three sentences: which client or gateway, what was done, what is still running.",
		Snapshot: redacted.Bytes(), Expect: expected(rules.Judge(process.Recognise(snap), rules.Options{})),
	}, "", " ")
	if err != nil {
		return err
	}
	file := filepath.Join("testdata", "snapshots", args[0]+".json")
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(compact(text), '\n')); err != nil {
		f.Close()
		return err
	}
	fmt.Println("wrote " + file + ": tell its story, correct its expectation, then run: make golden && go test ./rules/... ./report")
	return f.Close()
}

// expected is what the rules say now. Whatever is recognised and not offered must never be terminated, and a
// server that no finding names counts as healthy.
func expected(r *rules.Report) tables.Expectation {
	e := tables.Expectation{Findings: []tables.ExpectedFinding{}, Healthy: []int{}, NotMCP: []int{}}
	e.Reap.Safe, e.Reap.OnRequest, e.Reap.Never = []int{}, []int{}, []int{}
	var subjects []int
	for _, f := range r.Findings {
		e.Findings = append(e.Findings, tables.ExpectedFinding{Rule: f.Rule, PIDs: f.PIDs})
		e.Reap.Safe = append(e.Reap.Safe, f.Reap.Safe...)
		e.Reap.OnRequest = append(e.Reap.OnRequest, f.Reap.OnRequest...)
		subjects = append(subjects, f.PIDs...)
	}
	recognised := []int{1}
	for _, s := range r.Servers {
		recognised = append(recognised, s.PIDs...)
	}
	for _, o := range slices.Concat(r.Clients, r.Gateways) {
		recognised = append(recognised, o.PID)
	}
	for _, pid := range recognised {
		if !slices.Contains(subjects, pid) && pid != 1 {
			e.Healthy = append(e.Healthy, pid)
		}
		if !slices.Contains(e.Reap.Safe, pid) && !slices.Contains(e.Reap.OnRequest, pid) {
			e.Reap.Never = append(e.Reap.Never, pid)
		}
	}
	return e
}

// compact writes lists of PIDs, and each process, on one line.
func compact(text []byte) []byte {
	text = regexp.MustCompile(`\[\s+([\d,\s]+?)\s+\]`).ReplaceAllFunc(text, func(list []byte) []byte {
		return []byte("[" + strings.Join(strings.Fields(strings.Trim(string(list), "[] \n")), " ") + "]")
	})
	process := regexp.MustCompile(`(?s)\n   \{\n.*?\n   \}`)
	return process.ReplaceAllFunc(text, func(object []byte) []byte {
		var one bytes.Buffer
		if json.Compact(&one, object) != nil {
			return object
		}
		return append([]byte("\n   "), one.Bytes()...)
	})
}
