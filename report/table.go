package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// table is a few columns, of which the last takes what room there is.
type table struct {
	head []string
	rows [][]string
	own  bool // all columns but the last are our own words, which are not cut
}

func (t *table) row(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.rows = append(t.rows, row)
}

// rightAligned are the columns of numbers.
var rightAligned = []string{"PID", "AGE", "RSS", "PSS", "CPU", "SERVERS"}

func (p *printer) table(t table) {
	last := len(t.head) - 1
	if !t.own {
		const widest = 44 // of a column that is not the last: names come from strangers
		for _, row := range t.rows {
			for i := range row[:last] {
				row[i] = ansi.Truncate(row[i], widest, "…")
			}
		}
	}
	for i, name := range t.head[:last] {
		width := ansi.StringWidth(name)
		for _, row := range t.rows {
			width = max(width, ansi.StringWidth(row[i]))
		}
		align(t.head, i, width, name)
		for _, row := range t.rows {
			align(row, i, width, name)
		}
	}
	p.line(p.s.dim.Render(p.fit(t.head)))
	for _, row := range t.rows {
		p.line(p.fit(row))
	}
}

// align fills a cell with spaces.
func align(row []string, i, width int, name string) {
	space := strings.Repeat(" ", width-ansi.StringWidth(row[i]))
	if slices.Contains(rightAligned, name) {
		row[i] = space + row[i]
	} else {
		row[i] += space
	}
}

// fit joins the cells of a row, of which the last is cut to what is left of the terminal's width. In a pipe nothing is
// cut.
func (p *printer) fit(row []string) string {
	const least = 20 // a terminal too narrow for the columns gets long lines, and wraps them itself
	last := len(row) - 1
	line := "  " + strings.Join(row[:last], "  ") + "  "
	room := p.o.Width - ansi.StringWidth(line)
	if p.o.Width == 0 || room < least {
		return line + row[last]
	}
	return line + ansi.Truncate(row[last], room, "…")
}
