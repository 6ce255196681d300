package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	paths := []string{file}
	if found, err := exec.LookPath(called); err == nil {
		named, err := filepath.Abs(found)
		if err == nil && leadsTo(named, info) {
			paths = []string{named, file}
		}
	}
	for _, path := range paths {
		if !passing(path, temporary) {
			return path, nil
		}
	}
	return "", &problem{
		what: "this mcpdoctor is in a temporary directory: " + file,
		hint: "install it (from its source: go install ./cmd/mcpdoctor), and call it from there",
	}
}

func leadsTo(path string, file os.FileInfo) bool {
	info, err := os.Stat(path)
	return err == nil && os.SameFile(info, file)
}

// goCache is a directory of Go's build cache, from which go run starts programs since Go 1.24. Unused files are
// removed from it after some days.
var goCache = regexp.MustCompile(`^[0-9a-f]{64}-d$`)

// passing reports whether a path leads through a directory whose files are removed one day.
func passing(path string, temporary []string) bool {
	both := []string{path}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		both = append(both, target)
	}
	for _, p := range both {
		if goCache.MatchString(filepath.Base(filepath.Dir(p))) {
			return true
		}
		for _, dir := range temporary {
			if strings.HasPrefix(p, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator)) {
				return true
			}
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
