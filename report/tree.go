package report

import (
	"fmt"
	"strings"
	"time"

	"mcpdoctor/rules"
	"mcpdoctor/rules/format"
)

const (
	treeRows = 8 // so many lines of processes fit on a first screen beside the words
	treeTail = 2 // of which so many are the last ones
)

// tree writes the processes of a finding as a small tree, each under its parent. Of a long one
// only the beginning and the end are shown.
func (p *printer) tree(f rules.Finding) {
	rows := f.Processes
	inside := map[int]bool{}
	for _, r := range rows {
		inside[r.PID] = true
	}
	children := map[int][]rules.Row{}
	for _, r := range rows {
		up := 0
		if inside[r.PPID] && r.PPID != r.PID {
			up = r.PPID
		}
		children[up] = append(children[up], r)
	}
	subject := map[int]bool{}
	for _, pid := range f.PIDs {
		subject[pid] = true
	}
	t := table{head: []string{"PID", "AGE", "RSS", "COMMAND"}}
	var draw func(up int, indent string)
	draw = func(up int, indent string) {
		below := children[up]
		delete(children, up) // a circle in the rows ends here
		for i, r := range below {
			branch, next := "├─ ", "│  "
			if i == len(below)-1 {
				branch, next = "└─ ", "   "
			}
			if up == 0 {
				branch, next = "", ""
			}
			note := ""
			if !subject[r.PID] {
				note = "  (kept)"
				if contains(f.Reap.Safe, r.PID) || contains(f.Reap.OnRequest, r.PID) {
					note = ""
				}
			}
			t.row(fmt.Sprint(r.PID), rowAge(r), rowSize(r), indent+branch+strings.TrimSpace(r.Command)+note)
			draw(r.PID, indent+next)
		}
	}
	draw(0, "")
	p.shorten(&t)
	if len(t.rows) > 0 {
		p.table(t)
	}
}

// shorten leaves of a long table the beginning and the end, and says in its last column how much is
// left out.
func (p *printer) shorten(t *table) {
	over := len(t.rows) - treeRows
	if over <= 0 || p.o.Verbose {
		return
	}
	middle := make([]string, len(t.head))
	middle[len(middle)-1] = fmt.Sprintf("... %d more, -v shows them", over+1)
	kept := append(t.rows[:treeRows-treeTail-1:treeRows-treeTail-1], middle)
	t.rows = append(kept, t.rows[len(t.rows)-treeTail:]...)
}

// rowAge and rowSize are "-" for what is not known.
func rowAge(r rules.Row) string {
	if r.AgeSeconds == nil {
		return "-"
	}
	return format.Age(time.Duration(*r.AgeSeconds) * time.Second)
}

func rowSize(r rules.Row) string {
	if r.RSSBytes == nil {
		return "-"
	}
	return format.Bytes(*r.RSSBytes)
}

func contains(pids []int, pid int) bool {
	for _, p := range pids {
		if p == pid {
			return true
		}
	}
	return false
}
