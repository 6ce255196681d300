package report

import (
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Imports point down only: cmd -> report -> rules -> scan. What writes needs lipgloss (with the
// colour profile it takes) and the stages below, and neither a clock nor an environment.
func TestImports(t *testing.T) {
	allowed := func(path string) bool {
		return !strings.Contains(strings.SplitN(path, "/", 2)[0], ".") && !strings.HasPrefix(path, "mcpdoctor/") ||
			path == "mcpdoctor/scan" || path == "mcpdoctor/scan/terminate" || path == "mcpdoctor/scan/config" || path == "mcpdoctor/rules" || path == "github.com/charmbracelet/lipgloss" ||
			path == "github.com/muesli/termenv"
	}
	forbidden := map[string]bool{"os": true, "runtime": true, "log": true, "os/exec": true, "net": true, "syscall": true}
	for _, dir := range []string{"."} {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
				continue
			}
			text, err := os.ReadFile(dir + "/" + f.Name())
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{"time.Now(", "time.Since(", "fmt.Print"} {
				if strings.Contains(string(text), word) {
					t.Errorf("%s/%s has %s: only cmd has a clock and prints", dir, f.Name(), word)
				}
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), text, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if !allowed(path) || forbidden[path] {
					t.Errorf("%s/%s imports %s", dir, f.Name(), path)
				}
			}
		}
	}
}
