//go:build unix

package lockfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What others may have put there is neither followed nor waited for.
func TestAppend(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("precious\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(string) error{
		"a symbolic link":         func(path string) error { return os.Symlink(other, path) },
		"a link to nothing":       func(path string) error { return os.Symlink(filepath.Join(dir, "nothing"), path) },
		"a hard link":             func(path string) error { return os.Link(other, path) },
		"a FIFO without a reader": func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a directory":             func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		if f, err := Append(path); err == nil {
			f.Close()
			t.Errorf("%s is opened", name)
		} else if !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v does not name the file", name, err)
		}
		os.Remove(path) //nolint:errcheck // in a folder of the test's
	}
	path := filepath.Join(dir, "log")
	for range 2 {
		f, err := Append(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("line\n"); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "line\nline\n" {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "precious\n" {
		t.Errorf("%q, %v", text, err)
	}
}
