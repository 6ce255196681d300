package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ownPath is the path by which this program can be started later, also after an upgrade. A path that will not
// last is an error: a job whose program has vanished fails unseen.
func ownPath() (string, error) {
	file, err := os.Executable()
	if err != nil {
		return "", &problem{what: "cannot find mcpdoctor's own path: " + err.Error(), hint: "call it by its full path"}
	}
	return lastingPath(os.Args[0], file, temporaryFolders())
}

// lastingPath chooses between the name that a program was called by and its file. The name comes first if it
// leads to the file: a package manager's (Homebrew, Nix, stow) is a link that stays when an upgrade moves the
// file, whose own path has the version in it.
func lastingPath(called, file string, temporary []string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", &problem{what: "mcpdoctor is no longer where it was started: " + err.Error(), hint: "install it again, and call it from there"}
	}
	named, err := exec.LookPath(called)
	if err == nil {
		named, err = filepath.Abs(named)
	}
	if err != nil {
		named = file
	}
	for _, path := range []string{named, file} {
		if at, err := os.Stat(path); err == nil && os.SameFile(at, info) && !passing(path, temporary) {
			return path, nil
		}
	}
	return "", &problem{
		what: "this mcpdoctor is in a temporary directory: " + file,
		hint: "install it (from its source: go install ./cmd/mcpdoctor), and call it from there",
	}
}

// goCache is a directory of Go's build cache, from which go run starts programs since Go 1.24. Unused files are
// removed from it after some days.
var goCache = regexp.MustCompile(`^[0-9a-f]{64}-d$`)

// passing reports whether a path leads through a directory whose files are removed one day.
func passing(path string, temporary []string) bool {
	target, _ := filepath.EvalSymlinks(path)
	for _, p := range []string{path, target} {
		below := func(dir string) bool {
			return strings.HasPrefix(p, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
		}
		if goCache.MatchString(filepath.Base(filepath.Dir(p))) || slices.ContainsFunc(temporary, below) {
			return true
		}
	}
	return false
}

// temporaryFolders are directories whose files are removed at boot or with age. On macOS they are links.
func temporaryFolders() []string {
	dirs := []string{os.TempDir(), "/tmp", "/var/tmp", "/dev/shm"}
	for _, dir := range dirs {
		if target, err := filepath.EvalSymlinks(dir); err == nil {
			dirs = append(dirs, target)
		}
	}
	return dirs
}
