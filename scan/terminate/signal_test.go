package terminate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOnlyThisPackageSignals reads the sources of the module, for all systems, and finds every reference
// to a way to signal a process.
func TestOnlyThisPackageSignals(t *testing.T) {
	const root = "../.."
	found := map[string]bool{}
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel == "scan/terminate" || rel != "." && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		files++
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, s := range signals(f) {
			found[rel+": "+s] = true
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d sources: %v", files, err)
	}
	for place := range found {
		t.Errorf("%s: only scan/terminate may signal", place)
	}
}

// signals returns what in a file looks like a way to signal a process: calls of the system and the methods
// of an [os.Process], whatever their package or variable is called.
func signals(f *ast.File) (found []string) {
	ways := []string{"Kill", "Signal", "Tgkill", "PidfdSendSignal", "FindProcess", "TerminateProcess", "TerminateJobObject", "GenerateConsoleCtrlEvent"}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains(ways, sel.Sel.Name) {
			return true
		}
		of := ""
		switch x := sel.X.(type) {
		case *ast.Ident:
			of = x.Name
		case *ast.SelectorExpr:
			of = x.Sel.Name
		}
		if sel.Sel.Name == "Signal" && slices.Contains([]string{"os", "unix", "syscall"}, of) {
			return true // the type
		}
		found = append(found, of+"."+sel.Sel.Name)
		return true
	})
	return found
}

// The search finds what it is for, under any name.
func TestSignals(t *testing.T) {
	for source, want := range map[string]string{
		`import "golang.org/x/sys/unix"; var _ = unix.Kill`:                     "[unix.Kill]",
		`import u "golang.org/x/sys/unix"; var _ = u.PidfdSendSignal`:           "[u.PidfdSendSignal]",
		`import "syscall"; func f() { syscall.Kill(1, 9) }`:                     "[syscall.Kill]",
		`import "golang.org/x/sys/windows"; var _ = windows.TerminateProcess`:   "[windows.TerminateProcess]",
		`import "os/exec"; func f(c *exec.Cmd) { c.Process.Kill() }`:            "[Process.Kill]",
		`import "os/exec"; func f(c *exec.Cmd) { _ = c.Process.Signal(nil) }`:   "[Process.Signal]",
		`import "os/exec"; func f(c *exec.Cmd) { p := c.Process; p.Kill() }`:    "[p.Kill]",
		`import "os"; var _, _ = os.FindProcess(1)`:                             "[os.FindProcess]",
		`import "golang.org/x/sys/unix"; const kill unix.Signal = unix.SIGKILL`: "[]",
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "", "package p; "+source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(signals(f)); got != want {
			t.Errorf("%s: %s, want %s", source, got, want)
		}
	}
}
