package scan

import "strings"

// splitCmdline splits the content of /proc/PID/cmdline into the argument vector, which it appends
// to args; see proc_pid_cmdline(5). Empty arguments are kept, but those at the end are not: a
// program that wrote a title over its arguments (setproctitle(3), Node's process.title) leaves any
// number of NULs behind it, or spaces, and they cannot be told apart. For the same reason a title
// is one argument, spaces and all; to make sense of it is up to package rules.
func splitCmdline(s string, args []string) []string {
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
