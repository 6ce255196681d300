package facts

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

// TestImports keeps HTTP in package endpoint, the official SDK in package stdio, and both out of package
// facts. None has a clock or an environment of its own: the command says what they are.
func TestImports(t *testing.T) {
	const http, sdk, sys = "net/http", "github.com/modelcontextprotocol/go-sdk", "golang.org/x/sys"
	allowed := map[string][]string{
		".":           {"mcpdoctor/scan"},
		"../endpoint": {"mcpdoctor/scan", "mcpdoctor/scan/facts", http},
		"../stdio":    {"mcpdoctor/scan", "mcpdoctor/scan/facts", sdk, sys},
	}
	onlyInCmd := []string{"time.Now", "time.Since", "os.Getenv", "os.LookupEnv", "os.Environ", "os.Exit", "os.Stdin", "os.Stdout", "os.Stderr",
		"runtime.GOOS", "fmt.Print", "fmt.Println", "fmt.Printf"}

	for dir, allowed := range allowed {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("no sources in %s: %v", dir, err)
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
				free := !strings.Contains(first, ".") && first != "mcpdoctor" && path != http
				if !free && !slices.ContainsFunc(allowed, func(a string) bool { return path == a || (a == sdk || a == sys) && strings.HasPrefix(path, a+"/") }) {
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
}
