// Package catalog is the data that recognition stands on: which programs are MCP clients, gateways,
// servers, their helpers, which only start another program, and which are never any of these.
//
// It is kept in text files, one per family, that a person can read and extend. This package only
// reads them; package rules gives them their meaning.
package catalog

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed *.txt
var files embed.FS

// Files lists the embedded files in the order in which their families are asked.
var Files = []string{"clients.txt", "gateways.txt", "servers.txt", "helpers.txt", "launchers.txt", "lookalikes.txt"}

// Family is what a row's program is.
type Family string

// The families, as they are written in a file's [heading].
const (
	Clients    Family = "clients"
	Gateways   Family = "gateways"
	Servers    Family = "servers"
	Helpers    Family = "helpers"
	Launchers  Family = "launchers"
	Lookalikes Family = "lookalikes"
)

var families = []Family{Clients, Gateways, Servers, Helpers, Launchers, Lookalikes}

// Catalog is the content of one or more files.
type Catalog struct {
	Programs   []Program
	Launchers  []Launcher
	Lookalikes []string
}

// Program is one row of clients, gateways, servers or helpers.
type Program struct {
	Family Family

	// Program is the name to match, in lower case: an npm or PyPI package, a Python module, or the
	// base name of a script or binary without its extension. A "*" at its end matches any ending.
	Program string

	// Below, when set, is how a directory above the program must begin ("claude.app").
	Below string

	// Name is what people call it; for a server, the one name shared by its package and its binary.
	Name string

	// App marks a desktop application: many processes, of which few own servers.
	App bool

	// One of With, when there are any, and none of Without must hold for the arguments.
	With, Without []Condition
}

// Condition is something that arguments can fulfil: the sub-command "mcp serve", the flag "--mcp".
type Condition []string

// Launcher is one row of launchers: a command that starts another program.
type Launcher struct {
	Name   string   // the canonical name, equal for "npx", "npm exec" and "npm x"
	Words  []string // the command and its sub-commands
	Starts Starts

	// Skip counts the words between the options and what is started ("timeout 60 COMMAND"); -1 when
	// it is all up to a "--" ("mise x node@22 -- COMMAND").
	Skip int

	// Options are those that are followed by a value in a word of its own. With AllOptions every
	// option has one, except these.
	Options    map[string]bool
	AllOptions bool
}

// Starts is how a launcher is told what to start.
type Starts string

// The ways to name what is started.
const (
	StartsCommand Starts = "command" // a command and its arguments
	StartsPackage Starts = "package" // a package that has one, perhaps with a version
	StartsScript  Starts = "script"  // a script for Node
	StartsImage   Starts = "image"   // a container image
	StartsLine    Starts = "line"    // one line of shell
	StartsOption  Starts = "option"  // the value of one of its options: cargo run --bin x
)

// Embedded reads the files that are part of the program. They are checked by this package's tests,
// so that an error can only mean a broken build.
func Embedded() (*Catalog, error) {
	all := new(Catalog)
	for _, name := range Files {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		one, err := Parse(name, string(text))
		if err != nil {
			return nil, err
		}
		all.Programs = append(all.Programs, one.Programs...)
		all.Launchers = append(all.Launchers, one.Launchers...)
		all.Lookalikes = append(all.Lookalikes, one.Lookalikes...)
	}
	return all, nil
}

// Parse reads the text of one catalog file. A [heading] names the family of the rows below it; a row
// has columns two or more spaces apart, "-" being an empty one; "#" begins a comment. The name is for
// error messages only.
func Parse(name, text string) (*Catalog, error) {
	c := new(Catalog)
	var family Family
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		err := c.add(&family, line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
	return c, nil
}

func (c *Catalog) add(family *Family, line string) error {
	if heading, ok := strings.CutPrefix(line, "["); ok {
		heading, ok = strings.CutSuffix(heading, "]")
		f := Family(heading)
		if !ok || !slices.Contains(families, f) {
			return fmt.Errorf("unknown heading %q", line)
		}
		*family = f
		return nil
	}
	columns := split(line)
	switch *family {
	case "":
		return fmt.Errorf("a row before the first [heading]")
	case Lookalikes:
		if len(columns) > 1 {
			return fmt.Errorf("want 1 column, have %d", len(columns))
		}
		c.Lookalikes = append(c.Lookalikes, columns[0])
		return nil
	case Launchers:
		l, err := launcher(columns)
		c.Launchers = append(c.Launchers, l)
		return err
	default:
		p, err := program(columns)
		p.Family = *family
		c.Programs = append(c.Programs, p)
		return err
	}
}

// split cuts a line into columns where two or more spaces, or a tab, are.
func split(line string) []string {
	var columns []string
	for _, cell := range strings.Split(strings.ReplaceAll(line, "\t", "  "), "  ") {
		if cell = strings.TrimSpace(cell); cell != "" {
			columns = append(columns, cell)
		}
	}
	return columns
}

// cell returns column i, "" when it is left out or "-".
func cell(columns []string, i int) string {
	if i >= len(columns) || columns[i] == "-" {
		return ""
	}
	return columns[i]
}

func program(columns []string) (Program, error) {
	if len(columns) > 4 {
		return Program{}, fmt.Errorf("want at most 4 columns, have %d", len(columns))
	}
	p := Program{Program: columns[0], Name: cell(columns, 1)}
	if below, name, ok := strings.Cut(p.Program, "//"); ok {
		p.Below, p.Program = below, name
	}
	if p.Program != strings.ToLower(p.Program) || p.Below != strings.ToLower(p.Below) {
		return p, fmt.Errorf("program %q is not in lower case", columns[0])
	}
	if i := strings.IndexByte(p.Program, '*'); p.Program == "" || i >= 0 && (i == 0 || i < len(p.Program)-1) {
		return p, fmt.Errorf("program %q: a * is for the end of a name only", columns[0])
	}
	with := cell(columns, 2)
	if rest, ok := strings.CutPrefix(with, "(app)"); ok {
		p.App, with = true, strings.TrimPrefix(rest, ",")
	}
	var err error
	if p.With, err = conditions(with); err != nil {
		return p, err
	}
	p.Without, err = conditions(cell(columns, 3))
	return p, err
}

func conditions(text string) ([]Condition, error) {
	if text == "" {
		return nil, nil
	}
	var all []Condition
	for _, one := range strings.Split(text, ",") {
		words := strings.Fields(one)
		if len(words) == 0 {
			return nil, fmt.Errorf("an empty condition in %q", text)
		}
		if len(words) > 1 && strings.HasPrefix(words[0], "-") {
			return nil, fmt.Errorf("condition %q: a flag stands alone", one)
		}
		all = append(all, words)
	}
	return all, nil
}

func launcher(columns []string) (Launcher, error) {
	if len(columns) < 3 || len(columns) > 4 {
		return Launcher{}, fmt.Errorf("want 3 or 4 columns, have %d", len(columns))
	}
	l := Launcher{Name: columns[0], Words: strings.Fields(columns[1]), Options: map[string]bool{}}
	starts, skip, more := strings.Cut(columns[2], "+")
	l.Starts = Starts(starts)
	switch l.Starts {
	case StartsCommand, StartsPackage, StartsScript, StartsImage, StartsLine, StartsOption:
	default:
		return l, fmt.Errorf("unknown way to start %q", columns[2])
	}
	switch {
	case !more:
	case skip == "1":
		l.Skip = 1
	case skip == "--":
		l.Skip = -1
	default:
		return l, fmt.Errorf("want +1 or +--, have %q", columns[2])
	}
	for _, o := range strings.Fields(cell(columns, 3)) {
		switch {
		case o == "*":
			l.AllOptions = true
		case o[0] == '-' || o[0] == '+':
			l.Options[o] = true
		default:
			return l, fmt.Errorf("option %q begins with neither - nor +", o)
		}
	}
	return l, nil
}
