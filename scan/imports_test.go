package scan

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestImports keeps this package at the bottom of the house: it imports the standard library,
// gopsutil and x/sys, nothing of mcpdoctor, and takes from the command what only the command knows.
func TestImports(t *testing.T) {
	allowed := []string{"github.com/shirou/gopsutil/v4/", "golang.org/x/sys/"}
	onlyInCmd := []string{"time.Now", "time.Since", "os.Getenv", "os.LookupEnv", "os.Exit", "os.Stdout", "os.Stderr", "runtime.GOOS", "fmt.Print", "fmt.Println", "fmt.Printf"}

	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	fset := token.NewFileSet()
	for _, file := range files {
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(path, "/")
			standard := !strings.Contains(first, ".") && first != "mcpdoctor"
			if !standard && !slices.ContainsFunc(allowed, func(a string) bool { return strings.HasPrefix(path, a) }) {
				t.Errorf("%s imports %s", fset.Position(spec.Pos()), path)
			}
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if pkg, ok := sel.X.(*ast.Ident); ok && slices.Contains(onlyInCmd, pkg.Name+"."+sel.Sel.Name) {
					t.Errorf("%s: %s.%s belongs to the command", fset.Position(n.Pos()), pkg.Name, sel.Sel.Name)
				}
			}
			return true
		})
	}
}
