package catalog

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Index is the catalog by the names of programs. The rows of one name are in the order in which they are tried: those of
// clients, of gateways, and of the text files.
type Index struct {
	Programs   map[string][]*Program
	Prefixes   []*Program // those that end in "*", without it
	Launchers  map[string][]*Launcher
	Lookalikes map[string]bool
	Names      map[string]string // a server's package or binary to the one name of both
}

//go:embed *.txt
var files embed.FS

var textFiles = []string{"servers.txt", "helpers.txt", "launchers.txt", "lookalikes.txt"}

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
	}
}

func build() (*Index, error) {
	x := newIndex()
	for i := range clients {
		c := &clients[i]
		if err := x.addRows(Program{Family: Clients, Name: c.Name, Client: c}, c.Programs); err != nil {
			return nil, err
		}
	}
	for _, g := range AllGateways() {
		if err := x.addRows(Program{Family: Gateways, Name: g.Name, Gateway: g}, g.Programs); err != nil {
			return nil, err
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

// addRows adds the rows of a client or gateway, which are those of the text files without the column NAME.
func (x *Index) addRows(of Program, rows string) error {
	for line := range strings.Lines(rows) {
		columns := split(line)
		if len(columns) == 0 {
			continue
		}
		if err := x.addPrograms(of, columns[0], columns[1:]); err != nil {
			return fmt.Errorf("%s: %w", of.Name, err)
		}
	}
	return nil
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

// Words returns the words of a text as a set.
func Words(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
