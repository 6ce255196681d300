package main

import "runtime/debug"

// release is set at link time by `make release`; builds from a checkout know their commit.
var release string

// version is the release, else the module's version or commit, else "devel".
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "-changed"
		}
	}
	if commit == "" {
		return "devel"
	}
	return "devel-" + commit + changed
}
