package catalog

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Index is the catalog by the names of programs. The rows of one name are in the order in which they are tried: those of
// the gateways in Go, and of the text files.
type Index struct {
	Programs   map[string][]*Program
	Prefixes   []*Program // those that end in "*", without it
	Launchers  map[string][]*Launcher
	Lookalikes map[string]bool
	Names      map[string]string // a server's package or binary to the one name of both
	gateways   []*Gateway
	lists      map[string]map[string]bool // of words
}

//go:embed *.txt
var files embed.FS

var textFiles = []string{"clients.txt", "gateways.txt", "servers.txt", "helpers.txt", "launchers.txt", "lookalikes.txt", "words.txt"}

// Load returns the index of this program's catalog, which is built when it is first needed.
var Load = sync.OnceValue(func() *Index {
	x, err := build()
	if err != nil {
		panic("catalog: the embedded catalog is broken: " + err.Error()) // the tests of this package build it
	}
	return x
})

func newIndex() *Index {
	return &Index{
		Programs: map[string][]*Program{}, Launchers: map[string][]*Launcher{}, Lookalikes: map[string]bool{}, Names: map[string]string{},
		lists: map[string]map[string]bool{},
	}
}

func build() (*Index, error) {
	x := newIndex()
	for _, g := range registered {
		x.gateways = append(x.gateways, g)
		for row := range strings.Lines(strings.TrimSpace(g.Programs)) {
			columns := split(row)
			if err := x.addPrograms(Program{Family: Gateways, Name: g.Name, Gateway: g}, columns[0], columns[1:]); err != nil {
				return nil, fmt.Errorf("%s: %w", g.Name, err)
			}
		}
	}
	for _, name := range textFiles {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := x.Parse(name, string(text)); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *Index) add(p *Program) {
	if name, ok := strings.CutSuffix(p.Program, "*"); ok {
		p.Program = name
		x.Prefixes = append(x.Prefixes, p)
		return
	}
	rows := append(x.Programs[p.Program], p)
	// Rows that also ask for a folder are more specific and come first.
	slices.SortStableFunc(rows, func(a, b *Program) int { return min(1, len(b.Below)) - min(1, len(a.Below)) })
	x.Programs[p.Program] = rows
	if p.Name != "" && (p.Family == Servers || p.Family == Gateways) && !strings.Contains(p.Name, " ") {
		x.Names[p.Program] = p.Name
	}
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

// List returns what reports whether a word is in a list of words.txt.
func List(name string) func(word string) bool {
	list := sync.OnceValue(func() map[string]bool {
		words, ok := Load().lists[name]
		if !ok {
			panic("catalog: no list is called " + name)
		}
		return words
	})
	return func(word string) bool { return list()[word] }
}

// Words returns the words of a text as a set.
func Words(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
