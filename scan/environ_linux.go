package scan

import "strings"

const (
	// environSize holds the environment of almost every process in one read.
	environSize = 16 << 10

	// maxEnviron is where a longer environment is cut. The kernel allows megabytes.
	maxEnviron = 256 << 10
)

// parseEnviron keeps the chosen variables of the content of /proc/PID/environ; see [EnvNames]. It
// is the environment that the process started with. A process can write over it, so that anything
// may stand there.
func parseEnviron(b []byte) map[string]string {
	entries := string(b)
	if len(b) >= maxEnviron { // the last entry is cut
		entries = entries[:strings.LastIndexByte(entries, 0)+1]
	}
	return chooseEnv(strings.SplitSeq(entries, "\x00"))
}
