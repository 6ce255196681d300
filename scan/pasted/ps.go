package pasted

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"mcpdoctor/scan"
)

// psCommand is the command whose output has the most of what is needed.
const psCommand = "ps -eo pid,ppid,etimes,rss,args"

// readPS reads the output of ps(1): with any columns in any order, as long as there is a header line; with
// the tree drawn by --forest; between Markdown fences, quoted, below a prompt and the command. What the
// columns do not say is left unknown:
//
//   - without PPID the parent is [scan.UnknownPPID], except where the drawn tree shows it;
//   - Started comes from ELAPSED or lstart; a START or STIME like "10:32" or "Sep01" is too coarse;
//   - %CPU is kept as it is: the average over the lifetime on Linux, over the last minute on macOS;
//   - a command in brackets, which ps shows where there is no command line, is the Name;
//   - the system is recognised by what only one has: launchd, "??" for no terminal and paths below
//     /Applications and /System on macOS; kthreadd, systemd and "?" on Linux.
//
// Problems says what is unknown, and which lines could not be read.
func readPS(text string, now time.Time) (*scan.Snapshot, error) {
	s := &scan.Snapshot{Schema: scan.Schema, Kind: scan.Kind, Taken: now, Processes: []scan.Process{}}
	problem := func(format string, args ...any) { s.Problems = append(s.Problems, fmt.Sprintf(format, args...)) }
	var (
		columns  psColumns
		forest   psForest
		system   psSystem
		seen     = make(map[int]bool)
		twice    []int
		badLines []int
		number   int
		margin   psMargin
	)
	for line := range strings.Lines(text) {
		number++
		line = psUnquote(line)
		if line == "" {
			continue
		}
		if c, ok := psHeader(line); ok {
			columns, forest = c, psForest{}
			continue
		}
		if columns.names == nil {
			continue // a prompt, prose
		}
		p, ok := columns.parse(line, now)
		if !ok {
			badLines = append(badLines, number)
			continue
		}
		if seen[p.PID] {
			twice = append(twice, p.PID)
			continue
		}
		seen[p.PID] = true
		margin.see(line)
		forest.plant(&p, columns.at[columns.command])
		system.see(&p)
		p.tidy(columns.whole)
		s.Processes = append(s.Processes, p.Process)
	}
	if columns.names == nil {
		return nil, fmt.Errorf("neither a snapshot nor the output of ps with its header line; paste all that is printed by: %s", psCommand)
	}
	if len(s.Processes) == 0 {
		return nil, errors.New("the header of ps is there, but no line below it is a process")
	}
	s.Host.OS = system.name()
	slices.SortFunc(s.Processes, func(a, b scan.Process) int { return a.PID - b.PID })

	if gaps := psGaps(s.Processes); gaps != "" {
		problem("unknown: %s; use the output of: %s", gaps, psCommand)
	}
	if !columns.whole {
		problem("the input has names of programs only, not their arguments, so few can be recognised; use the output of: %s", psCommand)
	}
	if column := margin.column(); column > 0 {
		problem("the lines are cut at column %d, so programs and arguments are missing; use the output of: %s ww", column, psCommand)
	}
	if len(twice) > 0 {
		problem("more than one line for %s: only the first was read", scan.PIDList(slices.Compact(slices.Sorted(slices.Values(twice)))))
	}
	if n := len(badLines); n == 1 {
		problem("line %d is not a process and was left out", badLines[0])
	} else if n > 1 {
		problem("%d lines are not processes and were left out, the first is line %d", n, badLines[0])
	}
	return s, nil
}

// psGaps lists what is unknown, for how many processes, and the missing column.
func psGaps(rows []scan.Process) string {
	var gaps []string
	for _, g := range []struct {
		what, column string
		unknown      func(p *scan.Process) bool
	}{
		{"the parents", "PPID", func(p *scan.Process) bool { return p.PPID == scan.UnknownPPID }},
		{"the ages", "ELAPSED", func(p *scan.Process) bool { return p.Started.IsZero() }},
		{"the memory", "RSS", func(p *scan.Process) bool { return p.RSSBytes == nil }},
	} {
		n := 0
		for i := range rows {
			if g.unknown(&rows[i]) {
				n++
			}
		}
		if n > 0 {
			gaps = append(gaps, fmt.Sprintf("%s of %d of %d processes (no %s column)", g.what, n, len(rows), g.column))
		}
	}
	return strings.Join(gaps, ", ")
}

// psMargin finds the column at which ps or a terminal cut the lines.
type psMargin struct {
	longest int
	endings map[string]bool // of the lines of that length
}

func (m *psMargin) see(line string) {
	n := utf8.RuneCountInString(line)
	if n > m.longest {
		m.longest, m.endings = n, map[string]bool{}
	}
	if n == m.longest {
		m.endings[line[max(0, len(line)-8):]] = true
	}
}

// column returns the length that several lines with different endings share, 0 if there is none. (Copies of
// one command have the same length and the same ending.)
func (m *psMargin) column() int {
	const several, widest = 3, 1000
	if len(m.endings) < several || m.longest > widest {
		return 0
	}
	return m.longest
}
