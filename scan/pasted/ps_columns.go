package pasted

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"mcpdoctor/scan"
)

// psNames maps the headers that ps prints, on any system, to one name for each column that is used.
// Any other column is one word and skipped.
var psNames = map[string]string{
	"PID": "PID", "PPID": "PPID",
	"UID": "UID", "EUID": "UID",
	"USER": "USER", "EUSER": "USER", "RUSER": "USER", "UNAME": "USER",
	"PGID": "PGID", "PGRP": "PGID",
	"SID": "SID", "SESS": "SID", "SESSION": "SID",
	"TTY": "TTY", "TT": "TTY",
	"S": "STATE", "STAT": "STATE", "STATE": "STATE",
	"ELAPSED": "ELAPSED",
	"STARTED": "START", "START": "START", "STIME": "START", "LSTART": "START",
	"TIME": "TIME", "%CPU": "%CPU", "PCPU": "%CPU",
	"RSS": "RSS", "RSZ": "RSS", "PSS": "PSS",
	"COMMAND": "ARGS", "CMD": "ARGS", "ARGS": "ARGS",
	"COMM": "COMM", "UCMD": "COMM", "UCOMM": "COMM",
}

// psColumns is a header line.
type psColumns struct {
	names   []string // what each column holds, as a value of psNames; empty for the skipped ones
	at      []int    // where each header begins in its line
	command int      // the column that may hold spaces
	whole   bool     // the command column holds arguments too, not only a name
}

// psHeader parses a header line: one that consists of headers, PID among them.
func psHeader(line string) (c psColumns, ok bool) {
	c.command = -1
	comm := -1
	at := 0
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ' ' || r == '\t' }) {
		at += strings.Index(line[at:], word)
		if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsUpper(r) && r != '%' && r != '_' }) {
			return c, false
		}
		name := psNames[word]
		switch name {
		case "ARGS":
			c.command, c.whole = len(c.names), true
		case "COMM":
			comm = len(c.names)
		}
		c.names = append(c.names, name)
		c.at = append(c.at, at)
		at += len(word)
	}
	if c.command < 0 {
		c.command = comm
	}
	// A column COMMAND before the last is that of ps -o comm,args: the name.
	for i := range max(c.command, 0) {
		if c.names[i] == "ARGS" {
			c.names[i] = "COMM"
		}
	}
	return c, c.command >= 0 && c.has("PID")
}

// has reports whether there is such a column.
func (c *psColumns) has(name string) bool { return slices.Contains(c.names, name) }

// psLine is one line below the header.
type psLine struct {
	scan.Process
	commandAt int // where the command begins in the line, its drawing included
}

// parse parses a line with one process. Cmdline becomes the content of the command column, with the
// drawing of a tree; TTY is as ps shows it.
func (c *psColumns) parse(line string, now time.Time) (p psLine, ok bool) {
	p.PPID = scan.UnknownPPID

	// The columns before the command are words counted from the left, those after it words counted from
	// the right. What is left between them is the command.
	rest := line
	word := func() string {
		rest = strings.TrimLeft(rest, " \t")
		i := strings.IndexAny(rest, " \t")
		if i < 0 {
			i = len(rest)
		}
		w := rest[:i]
		rest = rest[i:]
		return w
	}
	for i, name := range c.names[:c.command] {
		value := ""
		if name == "COMM" {
			value = c.name(line, len(line)-len(rest), i)
			rest = strings.TrimLeft(rest, " \t")[len(value):]
		} else if value = word(); name == "START" {
			for range psStartWords(value) - 1 {
				value += " " + word()
			}
		}
		if !p.set(name, value, now) {
			return p, false
		}
	}
	for _, name := range slices.Backward(c.names[c.command+1:]) {
		rest = strings.TrimRight(rest, " \t")
		i := strings.LastIndexAny(rest, " \t")
		if i < 0 || !p.set(name, rest[i+1:], now) {
			return p, false
		}
		rest = rest[:i]
	}
	if strings.TrimSpace(rest) == "" {
		return p, false
	}
	// One space parts the columns; more of them belong to the drawing or to the padding.
	p.commandAt = len(line) - len(strings.TrimLeft(rest, " \t"))
	p.Cmdline = strings.TrimSpace(rest)
	return p, true
}

// name returns the value at or after the position at of a column that holds the name of a program and is
// not the last. If the text is still aligned, the name ends where the next header begins and may contain
// spaces; else it is one word.
func (c *psColumns) name(line string, at, column int) string {
	rest := strings.TrimLeft(line[at:], " \t")
	at = len(line) - len(rest)
	if next := column + 1; next == c.command && at == c.at[column] {
		if end := c.at[next]; end < len(line) && line[end-1] == ' ' && line[end] != ' ' {
			return strings.TrimRight(line[at:end], " ")
		}
	}
	if i := strings.IndexAny(rest, " \t"); i >= 0 {
		return rest[:i]
	}
	return rest
}

// psStartWords returns how many words a start has that begins with this one: five when it is a
// weekday (lstart, "Mon Sep  1 10:32:05 2026"), two when it is a month ("Sep 01").
func psStartWords(first string) int {
	const days, months = "Mon Tue Wed Thu Fri Sat Sun", "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"
	switch {
	case len(first) == 3 && strings.Contains(days, first):
		return 5
	case len(first) == 3 && strings.Contains(months, first):
		return 2
	}
	return 1
}

// set fills in one column, as psNames calls it. It returns false if the value is impossible there: the line is not a
// process. A dash or an unusual form leaves the field unknown.
func (p *psLine) set(name, value string, now time.Time) (ok bool) {
	if value == "" {
		return false
	}
	if value == "-" && name != "PID" && name != "PPID" && name != "TTY" {
		return true
	}
	isTime := value[0] >= '0' && value[0] <= '9'
	switch name {
	case "PID":
		p.PID, ok = psNumber(value)
		return ok
	case "PPID":
		p.PPID, ok = psNumber(value)
		return ok
	case "UID", "USER": // ps -ef shows the number of a user without a name, whatever the header
		if n, ok := psNumber(value); ok {
			p.UID = &n
		} else {
			p.User = value
		}
	case "PGID":
		p.PGID, _ = psNumber(value)
	case "SID":
		p.SID, _ = psNumber(value) // macOS shows an address
	case "TTY":
		p.TTY = value
	case "STATE":
		p.State = value[:1]
		return value[0] >= 'A' && value[0] <= 'Z'
	case "RSS":
		return setKiB(&p.RSSBytes, value)
	case "PSS":
		return setKiB(&p.PSSBytes, value)
	case "%CPU":
		share, err := strconv.ParseFloat(strings.Replace(value, ",", ".", 1), 64)
		p.CPUPercent = &share
		return err == nil && share >= 0 && !math.IsInf(share, 0)
	case "TIME":
		if d, ok := psDuration(value); ok {
			seconds := d.Seconds()
			p.CPUSeconds = &seconds
		}
		return isTime
	case "ELAPSED":
		if d, ok := psDuration(value); ok {
			p.born(now.Add(-d))
		}
		return isTime
	case "START":
		if t, ok := psLongStart(value, now); ok && p.Started.IsZero() {
			p.born(t)
		}
	case "COMM":
		p.Name = value
	}
	return true
}

// psNumber parses a number that is not negative; 0 for anything else.
func psNumber(value string) (n int, ok bool) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return 0, false
	}
	return n, true
}

func setKiB(field **int64, value string) bool {
	n, ok := psNumber(value)
	if !ok || int64(n) > math.MaxInt64>>10 {
		return false
	}
	size := int64(n) << 10
	*field = &size
	return true
}

// born sets the start.
func (p *psLine) born(t time.Time) {
	p.Started, p.Start = t, t.UnixMilli()
}

// psLongStart parses the start that lstart prints, in the time zone of now. It must lie before now.
func psLongStart(value string, now time.Time) (time.Time, bool) {
	for _, layout := range []string{"Mon Jan 2 15:04:05 2006", "Mon 2 Jan 15:04:05 2006"} {
		if t, err := time.ParseInLocation(layout, value, now.Location()); err == nil && !t.After(now) {
			return t, true
		}
	}
	return time.Time{}, false
}

// psDuration parses [[days-]hours:]minutes:seconds[.fraction], or seconds alone.
func psDuration(s string) (time.Duration, bool) {
	days, clock, ok := strings.Cut(s, "-")
	if !ok {
		days, clock = "0", s
	}
	d, err := strconv.Atoi(days)
	parts := strings.Split(clock, ":")
	if err != nil || d < 0 || len(parts) > 3 {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(parts[len(parts)-1], 64)
	if err != nil || !(seconds >= 0) {
		return 0, false
	}
	unit := 60
	for _, part := range slices.Backward(parts[:len(parts)-1]) {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return 0, false
		}
		seconds += float64(n) * float64(unit)
		unit *= 60
	}
	seconds += float64(d) * 24 * 60 * 60
	if seconds > 100*365*24*60*60 { // more than a century is not an age
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}
