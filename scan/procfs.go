package scan

import (
	"bytes"
	"strings"
	"time"
)

// The files about the host below a procfs mount. Like the parsers of the files about one process
// they take bytes, so that every system's tests run them.

// memory is what is used of /proc/meminfo, in bytes; see proc_meminfo(5).
type memory struct {
	total, available, swapTotal, swapFree int64
}

// parseMeminfo parses /proc/meminfo. Lines that are missing leave zeros.
func parseMeminfo(b []byte) memory {
	var m memory
	for line := range bytes.Lines(b) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		var into *int64
		switch string(key) {
		case "MemTotal":
			into = &m.total
		case "MemAvailable":
			into = &m.available
		case "SwapTotal":
			into = &m.swapTotal
		case "SwapFree":
			into = &m.swapFree
		default:
			continue
		}
		if n, ok := parseInt(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB")))); ok {
			*into = n * 1024
		}
	}
	return m
}

// parseBootTime finds the line "btime" of /proc/stat, the moment the machine started; see
// proc_stat(5). It is zero when there is none.
func parseBootTime(b []byte) time.Time {
	for line := range bytes.Lines(b) {
		if value, ok := bytes.CutPrefix(line, []byte("btime ")); ok {
			if n, ok := parseInt(bytes.TrimSpace(value)); ok {
				return time.Unix(n, 0).UTC()
			}
		}
	}
	return time.Time{}
}

// parseHidepid finds how the procfs mounted at mountPoint hides the processes of other users, in
// the text of /proc/self/mountinfo; see proc_pid_mountinfo(5) and, for the option, proc(5). It is
// empty when nothing is hidden.
func parseHidepid(mountinfo []byte, mountPoint string) string {
	hidden := ""
	for line := range strings.Lines(string(mountinfo)) {
		// 23 28 0:21 / /proc rw,nosuid shared:12 - proc proc rw,hidepid=invisible
		mount, super, ok := strings.Cut(strings.TrimSpace(line), " - ")
		if !ok {
			continue
		}
		where, what := strings.Fields(mount), strings.Fields(super)
		if len(where) < 5 || where[4] != mountPoint || len(what) < 3 || what[0] != "proc" {
			continue
		}
		hidden = "" // a later mount at the same place covers an earlier one
		for option := range strings.SplitSeq(what[2], ",") {
			if v, ok := strings.CutPrefix(option, "hidepid="); ok && v != "0" && v != "off" {
				hidden = v
			}
		}
	}
	return hidden
}
