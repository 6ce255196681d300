package scan

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

func TestVersions(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("node_modules/gate/package.json", `{"name":"gate","version":"3.4.3"}`)
	write("node_modules/gate/dist/package.json", `{"type":"module"}`)
	write("node_modules/gate/dist/index.js", "")
	write("node_modules/bad/package.json", `{"name":`)
	write("node_modules/bad/index.js", "")
	write("package.json", `{"name":"app","version":"9.9.9"}`)
	write("server.js", "")
	if err := os.MkdirAll(filepath.Join(dir, "node_modules/.bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../gate/dist/index.js", filepath.Join(dir, "node_modules/.bin/gate")); err != nil {
		t.Fatal(err)
	}
	me := os.Getpid()
	for program, want := range map[string]string{
		filepath.Join(dir, "node_modules/.bin/gate"):          "3.4.3",
		filepath.Join(dir, "node_modules/gate/dist/index.js"): "3.4.3",
		"node_modules/.bin/gate":                              "3.4.3",
		"./server.js":                                         "9.9.9",
		filepath.Join(dir, "node_modules/bad/index.js"):       "", // not that of the app around it
		"/nowhere/at/all.js":                                  "",
	} {
		s := &Snapshot{Processes: []Process{{PID: me, CWD: dir}}}
		Versions(context.Background(), s, map[int]string{me: program, me + 1: program}, ExamineOptions{})
		if got := s.Processes[0].Version; got != want {
			t.Errorf("%s: version %q, want %q", program, got, want)
		}
	}
}
