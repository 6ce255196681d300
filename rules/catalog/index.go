package catalog

import (
	"slices"
	"strings"
	"sync"
)

// Index is the catalog by the names of programs.
type Index struct {
	Programs   map[string][]*Program
	Prefixes   []*Program // those that end in "*", without it
	Launchers  map[string][]*Launcher
	Lookalikes map[string]bool
	Names      map[string]string // a server's package or binary to the one name of both
}

// Load builds the index of the embedded catalog once, when it is first needed.
var Load = sync.OnceValue(build)

func build() *Index {
	c, err := Embedded()
	if err != nil {
		panic("catalog: the embedded catalog is broken: " + err.Error())
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
		// Rows that also ask for a folder are more specific and come first.
		slices.SortStableFunc(rows, func(a, b *Program) int { return min(1, len(b.Below)) - min(1, len(a.Below)) })
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

// IsApp reports whether a desktop application has this name.
func (x *Index) IsApp(name string) bool {
	return name == "electron" || slices.ContainsFunc(x.Programs[name], func(p *Program) bool { return p.App })
}

// IsShell reports whether a launcher of this name is a shell.
func (x *Index) IsShell(name string) bool {
	rows := x.Launchers[name]
	return len(rows) > 0 && rows[0].Starts == StartsLine
}

// Words returns the words of a text as a set.
func Words(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
