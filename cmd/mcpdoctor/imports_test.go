package main

import (
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Imports point down only: cmd -> report -> rules -> scan. Flags and their words are the only
// business of cobra, the width of the terminal that of x/term.
func TestImports(t *testing.T) {
	allowed := func(path string) bool {
		return !strings.Contains(strings.SplitN(path, "/", 2)[0], ".") || path == "github.com/spf13/cobra" || path == "golang.org/x/term"
	}
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
			parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), text, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if !allowed(path) {
					t.Errorf("%s/%s imports %s", dir, f.Name(), path)
				}
			}
		}
	}
}
