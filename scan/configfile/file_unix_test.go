//go:build unix

package configfile_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"mcpdoctor/scan/config"
	"mcpdoctor/scan/configfile"
)

// TestNoFile puts in the place of a file what would block, or never end.
func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(syscall.Mkfifo(path("pipe.json"), 0o666))
	must(os.Symlink(path("pipe.json"), path("link to pipe.json")))
	must(os.Symlink(path("circle.json"), path("circle.json")))
	must(os.Symlink("/dev/zero", path("zero.json")))
	must(os.Symlink("/proc/self/fd/0", path("stdin.json")))
	must(os.Symlink(path("nothing"), path("dangling.json")))
	write(t, path("file.json"), `{"mcpServers":{"a":{"command":"x"}}}`)
	must(os.Symlink(path("file.json"), path("link.json")))
	must(os.Mkdir(path("closed"), 0o000))
	for name, want := range map[string]string{
		"pipe.json":         "broken: not a regular file",
		"link to pipe.json": "broken: not a regular file",
		"circle.json":       "broken: too many levels of symbolic links",
		"zero.json":         "broken: not a regular file",
		"dangling.json":     "absent",
		"file.json/x.json":  "absent",
		"link.json":         "read",
	} {
		if got := said(place(t, path(name))); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if p := place(t, path("stdin.json")); p.State == config.Present && p.Servers > 0 {
		t.Errorf("stdin: %s", said(p))
	}
	if os.Geteuid() != 0 {
		if got := said(place(t, path("closed/x.json"))); got != "refused: permission denied" {
			t.Errorf("closed folder: %s", got)
		}
	}
}

// TestForeign refuses the file of another user: it could name any process as a server to terminate. Files of the
// home's owner are read, for sudo.
func TestForeign(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: only root can give a file to another user, so nothing was tried with foreign files")
	}
	const other = 65534
	home, project := t.TempDir(), t.TempDir()
	write(t, filepath.Join(home, ".cursor/mcp.json"), `{"mcpServers":{"a":{"command":"x"}}}`)
	write(t, filepath.Join(project, ".mcp.json"), `{"mcpServers":{"b":{"command":"x"}}}`)
	for _, path := range []string{filepath.Join(home, ".cursor/mcp.json"), filepath.Join(project, ".mcp.json")} {
		if err := os.Chown(path, other, other); err != nil {
			t.Fatal(err)
		}
	}
	o := configfile.Options{System: "linux", Home: home, Folders: []config.Folder{{Path: project}}}
	if found := configfile.Read(t.Context(), o); len(found.Servers) != 0 || len(found.Problems()) != 0 {
		t.Errorf("servers %v, problems %v", found.Servers, found.Problems())
	}
	if err := os.Chown(home, other, other); err != nil {
		t.Fatal(err)
	}
	if got := names(configfile.Read(t.Context(), o)); got != "a b" {
		t.Errorf("servers %q, want those of the home's owner", got)
	}
}
