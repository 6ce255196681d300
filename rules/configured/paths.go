package configured

import (
	"path"
	"strings"

	"mcpdoctor/rules/command"
)

// absolute joins a relative path to a folder, if that is known.
func absolute(p, folder string) string {
	if p == "" || folder == "" || command.IsAbsolute(p) || p[0] == '$' {
		return p
	}
	return path.Join(command.CleanPath(folder), command.CleanPath(p))
}

// within reports whether an absolute path is a folder or lies in it.
func within(p, folder string) bool {
	if !command.IsAbsolute(p) || !command.IsAbsolute(folder) {
		return false
	}
	rest, ok := strings.CutPrefix(clean(p), clean(folder))
	return ok && (rest == "" || rest[0] == '/' || clean(folder) == "/")
}

func sameFolder(a, b string) bool { return within(a, b) && within(b, a) }

// clean also spells a path of Windows the one way in which Windows compares it.
func clean(p string) string {
	p = path.Clean(command.CleanPath(p))
	if p[0] != '/' {
		p = strings.ToLower(p)
	}
	return p
}
