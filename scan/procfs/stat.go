package procfs

import (
	"bytes"
	"errors"
)

// Stat holds fields of /proc/PID/stat, in the kernel's units; see proc_pid_stat(5).
type Stat struct {
	Comm    []byte // the name without its parentheses; part of the parsed buffer
	State   byte   // R S D Z T t I X ...
	PPID    int
	PGID    int
	Session int
	TTY     int    // the terminal's device number, 0 for none
	flags   uint32 // PF_* of the kernel's include/linux/sched.h
	Threads int
	CPU     int64 // utime + stime, in clock ticks
	Start   int64 // clock ticks since boot
	RSS     int64 // resident pages
}

// TicksPerSecond is USER_HZ, the unit of the times in /proc: 100 on every architecture that Go supports, whatever HZ
// the kernel was built with.
const TicksPerSecond = 100

// pfKthread is PF_KTHREAD of the kernel's include/linux/sched.h.
const pfKthread = 0x00200000

// IsKernelThread reports whether the process is one of the kernel's own threads.
func (st *Stat) IsKernelThread() bool { return st.flags&pfKthread != 0 }

var errStat = errors.New("not in the form of /proc/PID/stat")

// ParseStat parses the content of /proc/PID/stat. The name is in parentheses and may contain spaces, parentheses
// and newlines: fields are counted from the last closing parenthesis.
func ParseStat(b []byte) (Stat, error) {
	var st Stat
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return st, errStat
	}
	st.Comm = b[open+1 : end]

	rest := bytes.TrimLeft(b[end+1:], " ")
	if len(rest) < 2 || rest[1] != ' ' {
		return st, errStat
	}
	st.State = rest[0]
	rest = rest[2:]

	// The fields are numbered as in the manual: the name is 2, the state 3, resident pages 24.
	var fields [25]int64
	for i := 4; i < len(fields); i++ {
		var word []byte
		word, rest, _ = bytes.Cut(rest, []byte(" "))
		n, ok := parseInt(bytes.TrimRight(word, "\n"))
		// Field 23, the address space, may be larger than an int64 and is not used.
		if !ok && (i != 23 || len(word) == 0) {
			return st, errStat
		}
		fields[i] = n
	}
	st.PPID, st.PGID, st.Session = int(fields[4]), int(fields[5]), int(fields[6])
	st.TTY = int(fields[7])
	st.flags = uint32(fields[9])
	st.CPU = fields[14] + fields[15]
	st.Threads = int(fields[20])
	st.Start = fields[22]
	st.RSS = fields[24]
	return st, nil
}

// parseInt is strconv.ParseInt for bytes. It saves a string for each of sixty thousand fields.
func parseInt(b []byte) (int64, bool) {
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 18 { // 18 digits cannot overflow
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if neg {
		n = -n
	}
	return n, true
}
