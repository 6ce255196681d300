package procfs

import "strconv"

// TTYName returns the name of the terminal with that device number ([Stat.TTY]): "-" for none, "pts/3", "tty1",
// "ttyS0", or "major:minor" for other hardware. The numbers are those of the kernel's
// Documentation/admin-guide/devices.txt.
func TTYName(device int) string {
	if device == 0 {
		return "-"
	}
	// The encoding is that of proc_pid_stat(5): minor in bits 31-20 and 7-0, major in 15-8.
	major := device >> 8 & 0xff
	minor := device&0xff | device>>12&0xfff00
	switch {
	case major >= 136 && major <= 143: // UNIX98 pseudo-terminals, 2^20 minors a major
		return "pts/" + strconv.Itoa((major-136)<<20+minor)
	case major == 4 && minor < 64:
		return "tty" + strconv.Itoa(minor)
	case major == 4:
		return "ttyS" + strconv.Itoa(minor-64)
	case major == 5 && minor == 1:
		return "console"
	}
	return strconv.Itoa(major) + ":" + strconv.Itoa(minor)
}
