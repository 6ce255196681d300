package config

import (
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Each format of configuration has one library, and this package is its door.
func TestImports(t *testing.T) {
	door := map[string]bool{"github.com/tailscale/hujson": true, "github.com/BurntSushi/toml": true, "go.yaml.in/yaml/v3": true, "golang.org/x/sys/unix": true, "golang.org/x/sys/windows": true}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if root, _, _ := strings.Cut(path, "/"); (strings.Contains(root, ".") || root == "mcpdoctor") && !door[path] {
				t.Errorf("%s imports %s", f.Name(), path)
			}
		}
	}
}
