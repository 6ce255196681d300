package scan

import "bytes"

// parseSwap finds VmSwap, the process's own memory that was swapped out, in the content of
// /proc/PID/status and returns it in bytes; see proc_pid_status(5). Shared memory in swap is not in
// it. The kernel's threads have no such line.
func parseSwap(status []byte) (int64, bool) {
	return kilobytes(status, "VmSwap:")
}

// kilobytes finds the line "key    123 kB" and returns its value in bytes.
func kilobytes(b []byte, key string) (int64, bool) {
	for line := range bytes.Lines(b) {
		value, ok := bytes.CutPrefix(line, []byte(key))
		if !ok {
			continue
		}
		n, ok := parseInt(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB"))))
		return n * 1024, ok && n >= 0
	}
	return 0, false
}
