package report

import (
	"fmt"
	"slices"
	"strings"

	"mcpdoctor/rules"
	"mcpdoctor/rules/format"
)

const (
	treeRows = 8 // lines of processes that fit on a first screen beside the words
	treeTail = 2 // of which the last ones
)

// tree writes the processes of a finding, each under its parent. Of a long tree only the beginning and the end are
// shown.
func (p *printer) tree(f rules.Finding) {
	inside, leaked := map[int]bool{}, map[int]bool{}
	for _, r := range f.Processes {
		inside[r.PID] = true
	}
	children := map[int][]rules.Row{}
	for _, r := range f.Processes {
		up := 0
		if inside[r.PPID] && r.PPID != r.PID {
			up = r.PPID
		}
		children[up] = append(children[up], r)
	}
	for _, pid := range slices.Concat(f.PIDs, f.Reap.Safe, f.Reap.OnRequest) {
		leaked[pid] = true
	}
	t := table{head: []string{"PID", "AGE", "RSS", "COMMAND"}}
	var draw func(up int, indent string)
	draw = func(up int, indent string) {
		below := children[up]
		delete(children, up) // a circle in the rows ends here
		for i, r := range below {
			line, next := branch(i, len(below))
			if up == 0 {
				line, next = "", ""
			}
			note := ""
			if !leaked[r.PID] {
				note = "  (kept)"
			}
			t.row(r.PID, rowAge(r), size(r.RSSBytes), indent+line+strings.TrimSpace(r.Command)+note)
			draw(r.PID, indent+next)
		}
	}
	draw(0, "")
	p.shorten(&t)
	if len(t.rows) > 0 {
		p.table(t)
	}
}

// branch returns the lines that lead to the i-th of n children, and past it.
func branch(i, n int) (line, next string) {
	if i == n-1 {
		return "└─ ", "   "
	}
	return "├─ ", "│  "
}

// shorten leaves only the beginning and the end of a long table, and says how much is left out.
func (p *printer) shorten(t *table) {
	over := len(t.rows) - treeRows
	if over <= 0 || p.o.Verbose {
		return
	}
	middle := make([]string, len(t.head))
	middle[len(middle)-1] = fmt.Sprintf("... %d more, -v shows them", over+1)
	t.rows = slices.Concat(t.rows[:treeRows-treeTail-1], [][]string{middle}, t.rows[len(t.rows)-treeTail:])
}

// rowAge and size are "-" for what is not known.
func rowAge(r rules.Row) string {
	if r.AgeSeconds == nil {
		return "-"
	}
	return seconds(*r.AgeSeconds)
}

func size(n *int64) string {
	if n == nil {
		return "-"
	}
	return format.Bytes(*n)
}
