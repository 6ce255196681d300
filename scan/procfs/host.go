// Package procfs reads Linux's /proc and sock_diag(7), without policy. The parsers take bytes, so that they are
// tested on every system.
//
// It reads only what mcpdoctor uses, and without an allocation per file, since a table has thousands of them.
package procfs

import (
	"bytes"
	"strings"
	"time"
)

// Memory holds fields of /proc/meminfo, in bytes; see proc_meminfo(5).
type Memory struct {
	Total, Available, SwapTotal, SwapFree int64
}

// ParseMeminfo parses /proc/meminfo. Missing lines leave zeros.
func ParseMeminfo(b []byte) (m Memory) {
	m.Total, _ = kilobytes(b, "MemTotal:")
	m.Available, _ = kilobytes(b, "MemAvailable:")
	m.SwapTotal, _ = kilobytes(b, "SwapTotal:")
	m.SwapFree, _ = kilobytes(b, "SwapFree:")
	return m
}

// ParseBootTime returns when the machine started, the line "btime" of /proc/stat; see proc_stat(5). It is zero when
// there is no such line.
func ParseBootTime(b []byte) time.Time {
	for line := range bytes.Lines(b) {
		if value, ok := bytes.CutPrefix(line, []byte("btime ")); ok {
			if n, ok := parseInt(bytes.TrimSpace(value)); ok {
				return time.Unix(n, 0).UTC()
			}
		}
	}
	return time.Time{}
}

// ParseHidepid returns the option hidepid of the procfs mounted at mountPoint, from the content of
// /proc/self/mountinfo; see proc_pid_mountinfo(5) and proc(5). It is empty when no process is hidden.
func ParseHidepid(mountinfo []byte, mountPoint string) string {
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
