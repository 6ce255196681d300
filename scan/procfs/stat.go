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

// TicksPerSecond is USER_HZ, the unit of the times in /proc: 100 on every architecture that Go runs on,
// whatever HZ the kernel was built with.
const TicksPerSecond = 100

// pfKthread is PF_KTHREAD of the kernel's include/linux/sched.h.
const pfKthread = 0x00200000

// IsKernelThread reports whether the process is one of the kernel's own threads.
func (st *Stat) IsKernelThread() bool { return st.flags&pfKthread != 0 }

var errStat = errors.New("not in the form of /proc/PID/stat")

// ParseStat parses the content of /proc/PID/stat. The name stands in parentheses and may itself hold
// spaces, parentheses and newlines: fields are counted from the last closing one.
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
	for field := 4; field <= 24; field++ {
		word := rest
		if i := bytes.IndexByte(rest, ' '); i >= 0 {
			word, rest = rest[:i], rest[i+1:]
		} else {
			rest = nil
		}
		n, ok := parseInt(bytes.TrimRight(word, "\n"))
		if !ok {
			// Field 23, the address space, may be larger than an int64 and is not used.
			if field == 23 && len(word) > 0 {
				continue
			}
			return st, errStat
		}
		switch field {
		case 4:
			st.PPID = int(n)
		case 5:
			st.PGID = int(n)
		case 6:
			st.Session = int(n)
		case 7:
			st.TTY = int(n)
		case 9:
			st.flags = uint32(n)
		case 14, 15:
			st.CPU += n
		case 20:
			st.Threads = int(n)
		case 22:
			st.Start = n
		case 24:
			st.RSS = n
		}
	}
	return st, nil
}

// parseInt is strconv.ParseInt for bytes, which saves one string for each of sixty thousand fields.
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
