package scan

import (
	"bytes"
	"strings"
)

// parseCgroup finds the control group in the content of /proc/PID/cgroup, lines of
// "hierarchy:controllers:path"; see cgroups(7). A process is in one group of each hierarchy. The
// unified one ("0::") says most, on older machines systemd's own; there it is "/" while another
// controller still names a container. The path is seen from the root of our cgroup namespace; it is
// empty when there is none.
func parseCgroup(b []byte) string {
	unified, systemd, other := "", "", ""
	for line := range bytes.Lines(b) {
		hierarchy, rest, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), ":")
		if !ok {
			continue
		}
		controllers, path, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		switch {
		case hierarchy == "0" && controllers == "":
			unified = path
		case controllers == "name=systemd":
			systemd = path
		case len(other) <= 1:
			other = path
		}
	}
	best := ""
	for _, path := range []string{other, systemd, unified} {
		if path != "" && (path != "/" || best == "") {
			best = path
		}
	}
	return best
}
