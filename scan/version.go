package scan

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// Versions fills in Version of the processes whose programs are given: PID to the path of a script
// as its command line has it. It is that of the nearest package.json above the script, once links
// (node_modules/.bin/NAME) are followed.
//
// A path that cannot be read, or that lies in no package, leaves the field empty. Reading goes on
// until the deadline of o at most: the path may be on a file system that does not answer.
func Versions(ctx context.Context, s *Snapshot, programs map[int]string, o ExamineOptions) {
	ctx, cancel := context.WithTimeout(ctx, o.deadline())
	defer cancel()
	type found struct {
		pid     int
		version string
	}
	results := make(chan found, len(programs))
	for pid, program := range programs {
		p := s.find(pid)
		if p == nil {
			results <- found{pid: pid}
			continue
		}
		if !filepath.IsAbs(program) {
			if p.CWD == "" {
				results <- found{pid: pid}
				continue
			}
			program = filepath.Join(p.CWD, program)
		}
		go func() { results <- found{pid, versionAt(rootOf(o, pid), program)} }()
	}
	for range programs {
		select {
		case f := <-results:
			if p := s.find(f.pid); p != nil {
				p.Version = f.version
			}
		case <-ctx.Done():
			return
		}
	}
}

// packageLimit is more than any package.json that is written by a person.
const packageLimit = 256 << 10

// versionAt finds the version of the package that a script belongs to, below the root that its
// process sees (a container's files are not the host's).
func versionAt(root, script string) string {
	real, err := filepath.EvalSymlinks(root + script)
	if err != nil {
		return ""
	}
	for dir := filepath.Dir(real); len(dir) > len(root); dir = filepath.Dir(dir) {
		if v, ok := readVersion(filepath.Join(dir, "package.json")); ok {
			return v
		}
		if parent := filepath.Dir(dir); parent == dir || filepath.Base(dir) == "node_modules" {
			break
		}
	}
	return ""
}

// readVersion reads a package.json; false when there is none, or one that only tells the kind of
// the modules beside it ({"type": "module"}).
func readVersion(name string) (string, bool) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > packageLimit {
		return "", false
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return "", false
	}
	var p struct{ Name, Version string }
	if json.Unmarshal(text, &p) != nil || p.Name == "" {
		return "", false
	}
	return strings.TrimSpace(p.Version), true
}
