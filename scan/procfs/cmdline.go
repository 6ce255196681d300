package procfs

import "strings"

// SplitCmdline splits the content of /proc/PID/cmdline into arguments and appends them to args; see
// proc_pid_cmdline(5). Empty arguments are kept except at the end, where a title written over the arguments
// (setproctitle(3), Node's process.title) leaves NULs or spaces. Such a title is one argument with spaces.
func SplitCmdline(s string, args []string) []string {
	s = strings.TrimRight(s, "\x00")
	if s == "" {
		return args
	}
	first := len(args)
	for arg := range strings.SplitSeq(s, "\x00") {
		args = append(args, arg)
	}
	if len(args) == first+1 {
		args[first] = strings.TrimRight(args[first], " ")
		if args[first] == "" {
			args = args[:first]
		}
	}
	return args
}
