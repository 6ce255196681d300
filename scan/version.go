package scan

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// Versions fills in Version of processes: programs has the path of the script, as in the command line, by PID. It is
// the version in the nearest package.json above the script, with links (node_modules/.bin/NAME) resolved. A path
// that cannot be read, or is in no package, leaves it empty. The files may be on a file system that does not
// answer; reading ends at the deadline of o.
func Versions(ctx context.Context, s *Snapshot, programs map[int]string, o ExamineOptions) {
	ctx, cancel := context.WithTimeout(ctx, o.deadline())
	defer cancel()
	type found struct {
		p       *Process
		version string
	}
	results := make(chan found, len(programs))
	started := 0
	for pid, program := range programs {
		p := s.find(pid)
		if p == nil || !filepath.IsAbs(program) && p.CWD == "" {
			continue
		}
		if !filepath.IsAbs(program) {
			program = filepath.Join(p.CWD, program)
		}
		started++
		go func() { results <- found{p, versionAt(rootOf(o, pid), program)} }()
	}
	for range started {
		select {
		case f := <-results:
			f.p.Version = f.version
		case <-ctx.Done():
			return
		}
	}
}

// maxPackage is larger than any package.json that a person writes.
const maxPackage = 256 << 10

// versionAt returns the version of the package that contains a script. root is the root directory of its process,
// which may be in a container.
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

// readVersion reads a package.json. It returns false when there is none, or one without a name, which only sets the
// type of the modules next to it ({"type": "module"}).
func readVersion(name string) (string, bool) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPackage {
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
