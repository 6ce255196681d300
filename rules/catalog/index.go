package catalog

import (
	"slices"
	"strings"
	"sync"
)

// index is the catalog, ready to be asked.
type Index struct {
	Programs   map[string][]*Program
	Prefixes   []*Program // those that end in "*"
	Launchers  map[string][]*Launcher
	Lookalikes map[string]bool
	Names      map[string]string // a server's package or binary to the one name of both
}

// loadIndex reads the embedded catalog, once and only when it is needed. That it can be read is
// proved by the catalog's own tests.
var Load = sync.OnceValue(BuildIndex)

func BuildIndex() *Index {
	c, err := Embedded()
	if err != nil {
		panic("rules: the embedded catalog is broken: " + err.Error())
	}
	x := &Index{
		Programs: make(map[string][]*Program, len(c.Programs)), Launchers: make(map[string][]*Launcher, len(c.Launchers)),
		Lookalikes: make(map[string]bool, len(c.Lookalikes)), Names: make(map[string]string),
	}
	for i := range c.Programs {
		p := &c.Programs[i]
		if name, ok := strings.CutSuffix(p.Program, "*"); ok {
			p.Program = name
			x.Prefixes = append(x.Prefixes, p)
			continue
		}
		x.Programs[p.Program] = append(x.Programs[p.Program], p)
		if p.Name != "" && (p.Family == Servers || p.Family == Gateways) && !strings.Contains(p.Name, " ") {
			x.Names[p.Program] = p.Name
		}
	}
	for _, rows := range x.Programs {
		// A row that also asks for a folder says more, and is asked first.
		slices.SortStableFunc(rows, func(a, b *Program) int { return strings.Compare(below(b), below(a)) })
	}
	for i := range c.Launchers {
		l := &c.Launchers[i]
		x.Launchers[l.Words[0]] = append(x.Launchers[l.Words[0]], l)
	}
	for _, rows := range x.Launchers {
		slices.SortStableFunc(rows, func(a, b *Launcher) int { return len(b.Words) - len(a.Words) })
	}
	for _, name := range c.Lookalikes {
		x.Lookalikes[name] = true
	}
	return x
}

// below sorts: rows with a folder after those without, whatever the folder.
func below(p *Program) string {
	if p.Below != "" {
		return "1"
	}
	return ""
}

// isApp tells that a desktop application has this name.
func (x *Index) IsApp(name string) bool {
	for _, p := range x.Programs[name] {
		if p.App {
			return true
		}
	}
	return name == "electron"
}

// isShell tells that a launcher's rows are those of a shell.
func (x *Index) IsShell(name string) bool {
	rows := x.Launchers[name]
	return len(rows) > 0 && rows[0].Starts == StartsLine
}

// wordSet is the words of a text as a set.
func Words(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
