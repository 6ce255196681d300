package probe

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

// TestImports keeps the official SDK in this room, and everything of mcpdoctor above it out. Clock and
// environment are what the command says they are.
func TestImports(t *testing.T) {
	allowed := []string{"mcpdoctor/scan", "mcpdoctor/scan/terminate", "github.com/modelcontextprotocol/go-sdk/", "golang.org/x/sys/"}
	onlyInCmd := []string{"time.Now", "time.Since", "os.Getenv", "os.LookupEnv", "os.Environ", "os.Exit", "os.Stdin", "os.Stdout", "os.Stderr",
		"runtime.GOOS", "fmt.Print", "fmt.Println", "fmt.Printf"}

	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	fset := token.NewFileSet()
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
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
			if !standard && !slices.ContainsFunc(allowed, func(a string) bool { return path == a || strings.HasSuffix(a, "/") && strings.HasPrefix(path, a) }) {
				t.Errorf("%s imports %s", fset.Position(spec.Pos()), path)
			}
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
