package scan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// psCure is the command whose output loses least.
const psCure = "ps -eo pid,ppid,etimes,rss,args"

// readPS reads the output of ps(1) as people paste it: with any columns in any order, as long as
// the header line is there; with the tree drawn by --forest; between Markdown fences, quoted, with
// the prompt and the command above it. What the columns do not tell is unknown, not guessed:
//
//   - without PPID the parent is [UnknownPPID], except where the drawn tree shows it;
//   - Started comes from ELAPSED, by which a process is that much older than now, or from lstart;
//     a START or STIME like "10:32" or "Sep01" is too coarse and is not used;
//   - %CPU is taken as ps says it: the lifetime's average on Linux, that of the last minute on macOS;
//   - a command in brackets, which ps shows where there is no command line, is the Name;
//   - the system is told by what only one has: launchd, "??" for no terminal and paths below
//     /Applications and /System on macOS; kthreadd, systemd and "?" on Linux.
//
// What was unknown, and lines that could not be read, are in Problems.
func readPS(text string, now time.Time) (*Snapshot, error) {
	s := &Snapshot{Schema: Schema, Kind: Kind, Taken: now, Processes: []Process{}}
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
		return nil, fmt.Errorf("neither a snapshot nor the output of ps with its header line; paste all that is printed by: %s", psCure)
	}
	if len(s.Processes) == 0 {
		return nil, errors.New("a header of ps, but no line below it is a process")
	}
	s.Host.OS = system.name()
	s.sort()

	if gaps := psGaps(s.Processes); gaps != "" {
		s.problem("the text does not tell %s; take it with: %s", gaps, psCure)
	}
	if !columns.whole {
		s.problem("the text has the names of programs only, not their arguments: few can be recognised; take it with: %s", psCure)
	}
	if column := margin.column(); column > 0 {
		s.problem("the lines are cut at column %d, so that programs and arguments are missing; take it with: %s ww", column, psCure)
	}
	if len(twice) > 0 {
		s.problem("more than one line for %s: the first counts", pidList(slices.Compact(slices.Sorted(slices.Values(twice)))))
	}
	if n := len(badLines); n == 1 {
		s.problem("line %d is not a process and was left out", badLines[0])
	} else if n > 1 {
		s.problem("%d lines are not processes and were left out, the first is line %d", n, badLines[0])
	}
	return s, nil
}

// psGaps lists what is unknown, of how many processes, and which column would have told.
func psGaps(rows []Process) string {
	var gaps []string
	for _, g := range []struct {
		what, column string
		unknown      func(p *Process) bool
	}{
		{"the parents (so that orphans cannot be told)", "PPID", func(p *Process) bool { return p.PPID == UnknownPPID }},
		{"the ages", "ELAPSED", func(p *Process) bool { return p.Started.IsZero() }},
		{"the sizes", "RSS", func(p *Process) bool { return p.RSSBytes == nil }},
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

// psMargin finds the column at which ps, or a terminal, has cut the lines.
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

// column is where several lines that end differently have the very same length; 0 for nowhere. Copies
// of one command are as long as each other, but end alike.
func (m *psMargin) column() int {
	const several, widest = 3, 1000
	if len(m.endings) < several || m.longest > widest {
		return 0
	}
	return m.longest
}
