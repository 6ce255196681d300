package main

import (
	"fmt"
	"path"
	"strings"
)

// How each scheduler wants the path of a program. The files that they get are in schedules.

func forCron(j *job) error {
	j.Program = cronWord(j.Program)
	return nil
}

// cronWord quotes a word of a command twice: for cron, and for the shell that cron runs. A percent sign ends
// the command unless a backslash precedes it. Some crons remove that backslash and some leave it to the
// shell, so it stands outside of the shell's quotes, where both are the same. Some crons also make one
// backslash of two, so no two are adjacent.
func cronWord(word string) string {
	if !strings.ContainsFunc(word, special) {
		return word
	}
	inQuotes := strings.NewReplacer(`%`, `'\%'`, `'`, `'"'"'`, `\`, `''\''`)
	return "'" + inQuotes.Replace(word) + "'"
}

// special reports whether a character may have a meaning for a shell, cron or systemd.
func special(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/._-+@:,", r)
}

// forSystemd quotes the path of a program for ExecStart= (systemd.service(5), command lines).
// Specifiers (%) are replaced in it; variables ($) are not, in the first word, where $$ stays $$. There
// systemd refuses quotes and backslashes, however they are escaped (string_is_safe in load-fragment.c).
func forSystemd(j *job) error {
	if strings.ContainsAny(j.Program, `"'\`) {
		return &problem{
			what: "systemd cannot start a program with a quote or backslash in its path: " + j.Program,
			hint: "link to it from another path, and call it by that path",
		}
	}
	if strings.ContainsFunc(j.Program, special) {
		j.Program = `"` + strings.ReplaceAll(j.Program, "%", "%%") + `"`
	}
	return nil
}

// forLaunchd also names a file for reap's output, which launchd discards otherwise. It expands no ~.
func forLaunchd(j *job) error {
	if !strings.HasPrefix(j.home, "/") || !graphic(j.home) {
		return &problem{what: fmt.Sprintf("launchd needs a file for reap's output, and the home directory is %q", j.home), hint: "set HOME"}
	}
	xml := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	j.Program, j.Log = xml.Replace(j.Program), xml.Replace(path.Join(j.home, "Library/Logs/mcpdoctor.reap.log"))
	return nil
}
