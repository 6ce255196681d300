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

// TestImports guards the doors of this package and its rooms: what each may import besides the standard
// library. Clock, environment and output belong to the command.
func TestImports(t *testing.T) {
	rooms := map[string][]string{
		".":         {"mcpdoctor/scan/procfs", "github.com/shirou/gopsutil/v4/", "golang.org/x/sys/"},
		"pasted":    {"mcpdoctor/scan"},
		"procfs":    {"golang.org/x/sys/"},
		"terminate": {"mcpdoctor/scan", "mcpdoctor/scan/procfs", "golang.org/x/sys/"},
		"lockfile":  {"golang.org/x/sys/"},
	}
	onlyInCmd := []string{"time.Now", "time.Since", "os.Getenv", "os.LookupEnv", "os.Exit", "os.Stdout", "os.Stderr", "runtime.GOOS", "fmt.Print", "fmt.Println", "fmt.Printf"}

	fset := token.NewFileSet()
	for room, allowed := range rooms {
		files, err := filepath.Glob(filepath.Join(room, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no sources in %s: %v", room, err)
		}
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
				if !standard && !slices.ContainsFunc(allowed, func(a string) bool { return path == a || strings.HasSuffix(a, "/") && strings.HasPrefix(path, a) }) {
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
}
