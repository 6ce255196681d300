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
	"slices"
	"time"

	"mcpdoctor/report"
	"mcpdoctor/rules"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan/pasted"
)

type finding struct {
	Rule string `json:"rule"`
	PIDs []int  `json:"pids"`
}

type expectation struct {
	Findings []finding `json:"findings"`
	Healthy  []int     `json:"healthy"`
	NotMCP   []int     `json:"not_mcp"`
	Reap     struct {
		Safe      []int `json:"safe"`
		OnRequest []int `json:"on_request"`
		Never     []int `json:"never"`
	} `json:"reap"`
}

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
		ID       string          `json:"id"`
		Source   string          `json:"source"`
		Story    string          `json:"story"`
		Snapshot json.RawMessage `json:"snapshot"`
		Expect   expectation     `json:"expect"`
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
	if _, err := f.Write(append(text, '\n')); err != nil {
		f.Close()
		return err
	}
	fmt.Println("wrote " + file + ": tell its story, correct its expectation, then run: make golden && go test ./rules/... ./report")
	return f.Close()
}

// expected is what the rules say now: each server that no finding names counts as healthy.
func expected(r *rules.Report) expectation {
	e := expectation{Findings: []finding{}, Healthy: []int{}, NotMCP: []int{}}
	e.Reap.Safe, e.Reap.OnRequest, e.Reap.Never = []int{}, []int{}, []int{}
	var subjects []int
	for _, f := range r.Findings {
		e.Findings = append(e.Findings, finding{f.Rule, f.PIDs})
		e.Reap.Safe = append(e.Reap.Safe, f.Reap.Safe...)
		e.Reap.OnRequest = append(e.Reap.OnRequest, f.Reap.OnRequest...)
		subjects = append(subjects, f.PIDs...)
	}
	for _, s := range r.Servers {
		for _, pid := range s.PIDs {
			if !slices.Contains(subjects, pid) {
				e.Healthy = append(e.Healthy, pid)
			}
			if !slices.Contains(e.Reap.Safe, pid) && !slices.Contains(e.Reap.OnRequest, pid) {
				e.Reap.Never = append(e.Reap.Never, pid)
			}
		}
	}
	return e
}
