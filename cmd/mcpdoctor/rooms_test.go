package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "mcpdoctor/"

// room is one package: a line of the drawing in CONTRIBUTING.md.
type room struct {
	name    string
	imports []string // rooms
	outside []string // modules that are not ours
	deps    []string // all that it links
}

// TestRooms holds the packages against the drawing in CONTRIBUTING.md, on every system that is promised:
// the arrows are those of the drawing, each points to a line further down, and what the rules need for
// judging links no HTTP client, no reader of configuration files and no MCP SDK.
func TestRooms(t *testing.T) {
	drawn, rooms := drawing(t), listRooms(t)
	below := map[string]int{}
	for i, r := range drawn {
		below[r.name] = i
	}
	for i, r := range drawn {
		for _, to := range r.imports {
			if at, ok := below[to]; !ok || at <= i {
				t.Errorf("%s -> %s does not point down", r.name, to)
			}
		}
	}
	var got strings.Builder
	order := slices.SortedFunc(func(yield func(*room) bool) {
		for _, r := range rooms {
			if !yield(r) {
				return
			}
		}
	}, func(a, b *room) int {
		if d := below[a.name] - below[b.name]; d != 0 {
			return d
		}
		return strings.Compare(a.name, b.name)
	})
	for _, r := range order {
		got.WriteString(r.line())
	}
	file := filepath.Join("..", "..", "CONTRIBUTING.md")
	before, block, after := cutDrawing(t, file)
	if *update {
		if err := os.WriteFile(file, []byte(before+got.String()+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if block != got.String() {
		t.Errorf("the drawing in CONTRIBUTING.md is\n%s\nbut go list says\n%s", block, got.String())
	}
	doors := map[string][]string{}
	for _, r := range order {
		for _, m := range r.outside {
			doors[m] = append(doors[m], r.name)
		}
	}
	for m, at := range doors {
		if len(at) > 1 && m != "golang.org/x/sys" { // the systems' calls are behind several doors of scan
			t.Errorf("%s has more than one door: %s", m, strings.Join(at, ", "))
		}
	}
	forbidden := []string{"net/http", "github.com/modelcontextprotocol/go-sdk", "golang.org/x/oauth2", "github.com/BurntSushi/toml", "github.com/tailscale/hujson", "go.yaml.in/yaml/v3"}
	for _, r := range rooms {
		if r.name != "rules" && !strings.HasPrefix(r.name, "rules/") {
			continue
		}
		for _, dep := range r.deps {
			if slices.ContainsFunc(forbidden, func(f string) bool { return dep == f || strings.HasPrefix(dep, f+"/") }) {
				t.Errorf("%s links %s", r.name, dep)
			}
		}
	}
}

func (r *room) line() string {
	return strings.TrimRight(fmt.Sprintf("%-18s %-58s %s", r.name, strings.Join(r.imports, " "), strings.Join(r.outside, " ")), " ") + "\n"
}

// cutDrawing returns the text around the first code block of a file that begins with "cmd/mcpdoctor".
func cutDrawing(t *testing.T, file string) (before, block, after string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), "```rooms\n")
	block, after, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatalf("%s has no block ```rooms", file)
	}
	return before + "```rooms\n", block, "```" + after
}

func drawing(t *testing.T) []room {
	_, block, _ := cutDrawing(t, filepath.Join("..", "..", "CONTRIBUTING.md"))
	var out []room
	for line := range strings.Lines(block) {
		var r room
		for i, word := range strings.Fields(line) {
			switch {
			case i == 0:
				r.name = word
			case !strings.Contains(strings.SplitN(word, "/", 2)[0], "."):
				r.imports = append(r.imports, word)
			}
		}
		out = append(out, r)
	}
	return out
}

// listRooms asks the go command, for every system: a door may be used on one of them only.
func listRooms(t *testing.T) map[string]*room {
	rooms := map[string]*room{}
	for _, system := range []string{"linux", "darwin", "windows", "freebsd"} {
		list := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...")
		list.Dir, list.Env, list.Stderr = filepath.Join("..", ".."), append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"), os.Stderr
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		for d := json.NewDecoder(strings.NewReader(string(out))); ; {
			var p struct {
				ImportPath    string
				Imports, Deps []string
			}
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(p.ImportPath, module)
			r := rooms[name]
			if r == nil {
				r = &room{name: name}
				rooms[name] = r
			}
			for _, i := range p.Imports {
				if ours, ok := strings.CutPrefix(i, module); ok {
					r.imports = append(r.imports, ours)
				} else if strings.Contains(strings.SplitN(i, "/", 2)[0], ".") {
					r.outside = append(r.outside, moduleOf(i))
				}
			}
			r.deps = append(r.deps, p.Deps...)
		}
	}
	for _, r := range rooms {
		for _, list := range []*[]string{&r.imports, &r.outside, &r.deps} {
			slices.Sort(*list)
			*list = slices.Compact(*list)
		}
	}
	return rooms
}

// moduleOf shortens an import path to its module: host, owner and name.
func moduleOf(path string) string {
	segments := strings.Split(path, "/")
	return strings.Join(segments[:min(len(segments), 3)], "/")
}

// sources calls visit for each file of the program that is no test.
func sources(t *testing.T, tops []string, visit func(*token.FileSet, *ast.File)) {
	t.Helper()
	for _, top := range tops {
		err := filepath.WalkDir(filepath.Join("..", "..", top), func(name string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			f, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
			if err == nil {
				visit(files, f)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestFunctionsAreSmall holds that no function has more than thirty branches: its cyclomatic complexity.
func TestFunctionsAreSmall(t *testing.T) {
	const most = 30
	sources(t, []string{"cmd", "report", "rules", "scan"}, func(files *token.FileSet, f *ast.File) {
		for _, d := range f.Decls {
			branches := 1
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
					branches++
				case *ast.CaseClause:
					if n.List != nil {
						branches++
					}
				case *ast.CommClause:
					if n.Comm != nil {
						branches++
					}
				case *ast.BinaryExpr:
					if n.Op == token.LAND || n.Op == token.LOR {
						branches++
					}
				}
				return true
			})
			if fn, ok := d.(*ast.FuncDecl); ok && branches > most {
				t.Errorf("%s: %s has %d branches", files.Position(fn.Pos()), fn.Name.Name, branches)
			}
		}
	})
}

// TestOnlyTheCommandKnows holds that flags, environment, clock, terminal and exit codes are the
// command's: below it a function is told what it needs, so that the same input gives the same output.
func TestOnlyTheCommandKnows(t *testing.T) {
	theirs := map[string][]string{
		"time": {"Now", "Since"}, "os": {"Getenv", "LookupEnv", "Environ", "Exit", "Stdin", "Stdout", "Stderr", "Args"},
		"runtime": {"GOOS"}, "fmt": {"Print", "Println", "Printf"}, "log": {"Print", "Println", "Printf", "Fatal"},
	}
	sources(t, []string{"report", "rules", "scan"}, func(files *token.FileSet, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if pkg, ok := sel.X.(*ast.Ident); ok && slices.Contains(theirs[pkg.Name], sel.Sel.Name) {
					t.Errorf("%s: %s.%s belongs to the command", files.Position(n.Pos()), pkg.Name, sel.Sel.Name)
				}
			}
			return true
		})
	})
}
