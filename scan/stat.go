package scan

import (
	"bytes"
	"errors"
)

// procStat is what is used of /proc/PID/stat, in the kernel's own units; see proc_pid_stat(5).
type procStat struct {
	comm    []byte // the name without its parentheses; part of the parsed buffer
	state   byte   // R S D Z T t I X ...
	ppid    int
	pgrp    int
	session int
	ttyNr   int    // the terminal's device number, 0 for none
	flags   uint32 // PF_* of the kernel's include/linux/sched.h
	threads int
	cpu     int64 // utime + stime, in clock ticks
	start   int64 // clock ticks since boot
	rss     int64 // resident pages
}

// ticksPerSecond is USER_HZ, the unit of the times in /proc. The kernel can be built with other
// values of HZ, but it shows 100 to programs on every architecture that Go runs on.
const ticksPerSecond = 100

// kernelThread is PF_KTHREAD.
const kernelThread = 0x00200000

var errStat = errors.New("not in the form of /proc/PID/stat")

// parseStat parses the content of /proc/PID/stat. The name stands in parentheses and may hold
// spaces, parentheses and newlines itself, so that the fields are counted from the last one.
func parseStat(b []byte) (procStat, error) {
	var st procStat
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return st, errStat
	}
	st.comm = b[open+1 : end]

	rest := bytes.TrimLeft(b[end+1:], " ")
	if len(rest) < 2 || rest[1] != ' ' {
		return st, errStat
	}
	st.state = rest[0]
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
			st.ppid = int(n)
		case 5:
			st.pgrp = int(n)
		case 6:
			st.session = int(n)
		case 7:
			st.ttyNr = int(n)
		case 9:
			st.flags = uint32(n)
		case 14, 15:
			st.cpu += n
		case 20:
			st.threads = int(n)
		case 22:
			st.start = n
		case 24:
			st.rss = n
		}
	}
	return st, nil
}

// parseInt is strconv.ParseInt for bytes, without making a string of each of sixty thousand fields.
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
