package procfs

import "bytes"

// ParseSwap returns VmSwap of /proc/PID/status in bytes: swapped-out private memory, without shared
// memory; see proc_pid_status(5). Kernel threads have no such line.
func ParseSwap(status []byte) (int64, bool) {
	return kilobytes(status, "VmSwap:")
}

// ParsePSS returns Pss of /proc/PID/smaps_rollup in bytes: a page shared by n processes counts 1/n, so that values
// of several processes can be added.
func ParsePSS(rollup []byte) (int64, bool) {
	return kilobytes(rollup, "Pss:")
}

// kilobytes finds the line "key    123 kB" and returns its value in bytes.
func kilobytes(b []byte, key string) (int64, bool) {
	for line := range bytes.Lines(b) {
		if value, ok := bytes.CutPrefix(line, []byte(key)); ok {
			n, ok := parseInt(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB"))))
			return n * 1024, ok && n >= 0
		}
	}
	return 0, false
}
