package main

import (
	"fmt"
	"strings"
)

// cronTable writes the line for crontab(5), below comments that say what it does.
//
// The minutes are a list, since POSIX has no steps (*/15), and not the quarters of the hour, when everything
// else starts. The output is kept: reap is silent when there is nothing to do, and cron mails the rest.
func cronTable(j job) (string, error) {
	const text = `# mcpdoctor: terminates leaked MCP servers that are at least %[2]s old, every 15 minutes; cron mails what it did
# mcpdoctor: install with (crontab -l 2>/dev/null; mcpdoctor schedule --older-than %[2]s cron) | crontab -
# mcpdoctor: remove with crontab -l | grep -v -e '^# mcpdoctor:' -e ' reap --settle 20s --older-than %[2]s$' | crontab -
7,22,37,52 * * * * %[1]s reap --settle 20s --older-than %[2]s
`
	return fmt.Sprintf(text, cronWord(j.program), j.olderThan), nil
}

// cronWord quotes a word of a command twice: for cron, and for the shell that cron runs. A percent sign ends
// the command unless a backslash precedes it. Some crons remove that backslash and some leave it to the
// shell, so it stands outside of the shell's quotes, where both are the same. Some crons also make one
// backslash of two, so no two are adjacent.
func cronWord(word string) string {
	if !strings.ContainsFunc(word, special) {
		return word
	}
	var b strings.Builder
	quoted := false
	quote := func(on bool) {
		if quoted != on {
			b.WriteByte('\'')
			quoted = on
		}
	}
	for _, r := range word {
		switch r {
		case '%':
			quote(false)
			b.WriteString(`\%`)
		case '\'':
			quote(false)
			b.WriteString(`"'"`)
		case '\\':
			quote(false)
			b.WriteString(`'\'`)
		default:
			quote(true)
			b.WriteRune(r)
		}
	}
	quote(false)
	return b.String()
}

// special reports whether a character may have a meaning for a shell, cron or systemd.
func special(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("/._-+@:,", r)
}
