package configured_test

import (
	"fmt"
	"testing"

	"mcpdoctor/rules/configured"
	"mcpdoctor/rules/process"
	"mcpdoctor/scan/config"
	"mcpdoctor/testdata/tables"
)

// BenchmarkConfigure compares forty entries with a table of almost only MCP processes.
func BenchmarkConfigure(b *testing.B) {
	var found config.Found
	for i := range 40 {
		command := []string{"npx", "uvx", "node", "python"}[i%4]
		found.Servers = append(found.Servers, config.Server{
			Client: "Cursor", Name: fmt.Sprint(i), Transport: config.Stdio, Command: command, Args: []string{"-y", fmt.Sprintf("notes%d-mcp", i), "--stdio"},
		})
	}
	for _, processes := range []int{3_000, 100_000} {
		seen := process.Recognise(tables.Generate(1, processes))
		b.Run(fmt.Sprint(processes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				configured.Attribute(seen, found, nil)
			}
		})
	}
}
