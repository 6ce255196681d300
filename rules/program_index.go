package rules

import (
	"slices"
	"strings"
	"sync"

	"mcpdoctor/rules/catalog"
)

// index is the catalog, ready to be asked.
type index struct {
	programs   map[string][]*catalog.Program
	prefixes   []*catalog.Program // those that end in "*"
	launchers  map[string][]*catalog.Launcher
	lookalikes map[string]bool
	names      map[string]string // a server's package or binary to the one name of both
}

// loadIndex reads the embedded catalog, once and only when it is needed. That it can be read is
// proved by the catalog's own tests.
var loadIndex = sync.OnceValue(buildIndex)

func buildIndex() *index {
	c, err := catalog.Embedded()
	if err != nil {
		panic("rules: the embedded catalog is broken: " + err.Error())
	}
	x := &index{
		programs: make(map[string][]*catalog.Program, len(c.Programs)), launchers: make(map[string][]*catalog.Launcher, len(c.Launchers)),
		lookalikes: make(map[string]bool, len(c.Lookalikes)), names: make(map[string]string),
	}
	for i := range c.Programs {
		p := &c.Programs[i]
		if name, ok := strings.CutSuffix(p.Program, "*"); ok {
			p.Program = name
			x.prefixes = append(x.prefixes, p)
			continue
		}
		x.programs[p.Program] = append(x.programs[p.Program], p)
		if p.Name != "" && (p.Family == catalog.Servers || p.Family == catalog.Gateways) && !strings.Contains(p.Name, " ") {
			x.names[p.Program] = p.Name
		}
	}
	for _, rows := range x.programs {
		// A row that also asks for a folder says more, and is asked first.
		slices.SortStableFunc(rows, func(a, b *catalog.Program) int { return strings.Compare(below(b), below(a)) })
	}
	for i := range c.Launchers {
		l := &c.Launchers[i]
		x.launchers[l.Words[0]] = append(x.launchers[l.Words[0]], l)
	}
	for _, rows := range x.launchers {
		slices.SortStableFunc(rows, func(a, b *catalog.Launcher) int { return len(b.Words) - len(a.Words) })
	}
	for _, name := range c.Lookalikes {
		x.lookalikes[name] = true
	}
	return x
}

// below sorts: rows with a folder after those without, whatever the folder.
func below(p *catalog.Program) string {
	if p.Below != "" {
		return "1"
	}
	return ""
}

// isApp tells that a desktop application has this name.
func (x *index) isApp(name string) bool {
	for _, p := range x.programs[name] {
		if p.App {
			return true
		}
	}
	return name == "electron"
}

// isShell tells that a launcher's rows are those of a shell.
func (x *index) isShell(name string) bool {
	rows := x.launchers[name]
	return len(rows) > 0 && rows[0].Starts == catalog.StartsLine
}

// wordSet is the words of a text as a set.
func wordSet(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
