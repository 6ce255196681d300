package procfs

import "bytes"

// ParseCgroup returns the control group in the content of /proc/PID/cgroup, lines of
// "hierarchy:controllers:path"; see cgroups(7). Of several it is that of the unified hierarchy ("0::"), on older
// machines systemd's, or, where these are "/", that of any controller, which may name a container. It is empty
// when there is none. The path is relative to our cgroup namespace.
func ParseCgroup(b []byte) string {
	var unified, systemd, other []byte
	for line := range bytes.Lines(b) {
		hierarchy, rest, _ := bytes.Cut(line, []byte(":"))
		controllers, path, ok := bytes.Cut(rest, []byte(":"))
		if !ok {
			continue
		}
		path = bytes.TrimSuffix(path, []byte("\n"))
		switch {
		case string(hierarchy) == "0" && len(controllers) == 0:
			unified = path
		case string(controllers) == "name=systemd":
			systemd = path
		case len(other) <= 1:
			other = path
		}
	}
	for _, path := range [][]byte{unified, systemd, other} {
		if len(path) > 1 {
			return string(path)
		}
	}
	if unified != nil || systemd != nil || other != nil {
		return "/"
	}
	return ""
}
