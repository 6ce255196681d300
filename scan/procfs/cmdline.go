package procfs

import "strings"

// SplitCmdline splits the content of /proc/PID/cmdline into the argument vector and appends it to args;
// see proc_pid_cmdline(5). Empty arguments are kept, except at the end: a program that wrote a title over
// its arguments (setproctitle(3), Node's process.title) leaves NULs or spaces behind it, which look the
// same. Such a title is one argument, spaces included.
func SplitCmdline(s string, args []string) []string {
	s = strings.TrimRight(s, "\x00")
	if s == "" {
		return args
	}
	first := len(args)
	for {
		arg, rest, more := strings.Cut(s, "\x00")
		args = append(args, arg)
		if !more {
			break
		}
		s = rest
	}
	if len(args) == first+1 {
		args[first] = strings.TrimRight(args[first], " ")
		if args[first] == "" {
			args = args[:first]
		}
	}
	return args
}
