package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
)

// edit changes one function. Places are found in the syntax tree, so that code may be reformatted or moved to
// another file of its package.
type edit struct {
	function string // "name", or "Receiver.name" of a method
	old      string // an expression that the function contains once, however it is formatted
	new      string // what replaces it

	// block replaces what follows old instead: the body of an if statement or of a case. "default" is the
	// default case of the function's switch, "" the last statement of the function.
	block bool
}

// swap replaces an expression.
func swap(function, old, new string) edit { return edit{function: function, old: old, new: new} }

// never makes a condition false. It goes on to use what the condition uses, so that the code compiles.
func never(function, condition string) edit {
	return swap(function, condition, "(false && ("+condition+"))")
}

// then replaces what is done under a condition.
func then(function, condition, body string) edit {
	return edit{function: function, old: condition, new: body, block: true}
}

// source is the text of a package's files. Changes are made to the text, at the positions of the tree's nodes.
type source struct {
	fset    *token.FileSet
	files   map[string]*ast.File // by path
	changes map[string][]change
}

type change struct {
	from, to int // offsets
	text     string
}

// load parses the files of a package that are compiled on this system.
func load(dir string) (*source, error) {
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	s := &source{fset: token.NewFileSet(), files: map[string]*ast.File{}, changes: map[string][]change{}}
	for _, name := range pkg.GoFiles {
		path := filepath.Join(dir, name)
		if s.files[path], err = parser.ParseFile(s.fset, path, nil, 0); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// apply notes the change that an edit makes.
func (s *source) apply(e edit) error {
	for path, file := range s.files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || functionName(f) != e.function {
				continue
			}
			from, to, err := e.find(f)
			if err != nil {
				return fmt.Errorf("%s, func %s: %w", path, e.function, err)
			}
			s.changes[path] = append(s.changes[path], change{s.fset.Position(from).Offset, s.fset.Position(to).Offset, e.new})
			return nil
		}
	}
	return fmt.Errorf("no func %s", e.function)
}

// functionName is the name of a function as [edit] has it.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	return types.ExprString(receiver) + "." + f.Name.Name
}

// find returns the place in a function that an edit replaces.
func (e edit) find(f *ast.FuncDecl) (from, to token.Pos, err error) {
	if e.block && e.old == "" {
		last := f.Body.List[len(f.Body.List)-1]
		return last.Pos(), last.End(), nil
	}
	found := 0
	note := func(start, end token.Pos) {
		found++
		from, to = start, end
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case ast.Expr:
			if !e.block && e.matches(n) {
				note(n.Pos(), n.End())
			}
		case *ast.IfStmt:
			if e.block && e.matches(n.Cond) {
				note(n.Body.Lbrace+1, n.Body.Rbrace)
			}
		case *ast.CaseClause:
			if e.block && (slices.ContainsFunc(n.List, e.matches) || n.List == nil && e.old == "default") {
				note(n.Colon+1, n.End())
			}
		}
		return true
	})
	if found != 1 {
		return 0, 0, fmt.Errorf("%q is in it %d times, want once: update checks.go", e.old, found)
	}
	return from, to, nil
}

// matches reports whether an expression is the one that an edit names.
func (e edit) matches(x ast.Expr) bool {
	want, err := parser.ParseExpr(e.old)
	return err == nil && types.ExprString(x) == types.ExprString(want)
}

// changed returns the text of each file with its changes.
func (s *source) changed() (map[string]string, error) {
	out := map[string]string{}
	for path, changes := range s.changes {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(b.from, a.from) }) // from the end
		for _, c := range changes {
			text = slices.Concat(text[:c.from], []byte(c.text), text[c.to:])
		}
		out[path] = string(text)
	}
	return out, nil
}
