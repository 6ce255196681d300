package report

import (
	"strings"

	"github.com/charmbracelet/lipgloss"
)

// table is a few columns, of which the last takes what room there is.
type table struct {
	head []string
	rows [][]string
	own  bool // all but its last column are words of our own, which are not cut
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// rightAligned are the columns of numbers.
var rightAligned = map[string]bool{"PID": true, "AGE": true, "RSS": true, "PSS": true, "CPU": true, "SERVERS": true}

func (p *printer) table(t table) {
	widths := make([]int, len(t.head))
	const widest = 44 // of a column that is not the last: names come from strangers
	for _, row := range t.rows {
		for i := range len(row) - 1 {
			if !t.own {
				row[i] = cut(row[i], widest)
			}
		}
	}
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, c := range row {
			widths[i] = max(widths[i], lipgloss.Width(c))
		}
	}
	p.line(p.s.dim.Render(p.aligned(t.head, t.head, widths)))
	for _, row := range t.rows {
		p.line(p.aligned(row, t.head, widths))
	}
}

func (p *printer) aligned(row, head []string, widths []int) string {
	var b strings.Builder
	b.WriteString("  ")
	used := 2
	for i, c := range row {
		last := i == len(row)-1
		if last {
			b.WriteString(p.fit(c, used))
			break
		}
		pad := strings.Repeat(" ", widths[i]-lipgloss.Width(c))
		if rightAligned[head[i]] {
			c = pad + c
		} else {
			c += pad
		}
		b.WriteString(c + "  ")
		used += widths[i] + 2
	}
	return b.String()
}

// fit cuts a text to what is left of the terminal's width. In a pipe nothing is cut.
func (p *printer) fit(s string, used int) string {
	const least = 20 // a terminal too narrow for the columns gets long lines, and wraps them itself
	room := p.o.Width - used
	if p.o.Width == 0 || room < least {
		return s
	}
	return cut(s, room)
}

// cut cuts a text to so many cells.
func cut(s string, room int) string {
	if lipgloss.Width(s) <= room {
		return s
	}
	cells := 0
	for i, r := range s {
		cells += lipgloss.Width(string(r))
		if cells > room-1 {
			return s[:i] + "…"
		}
	}
	return s
}
