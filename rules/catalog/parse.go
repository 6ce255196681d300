package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// parser reads one catalog file into an index.
type parser struct {
	*Index
	family Family
	list   map[string]bool // the words of the heading, of the family words
	of     Program         // the client or gateway that the indented rows are of
}

// Parse adds the rows of one catalog file. A [heading] names the family of the rows below it; a row has columns two or
// more spaces apart, "-" being an empty one; "#" begins a comment. The name is for error messages only.
func (x *Index) Parse(name, text string) error {
	p := parser{Index: x}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimRight(line, " \t\r\n")
		var err error
		switch {
		case line == "":
		case line[0] == '[':
			err = p.heading(line)
		default:
			err = p.row(line)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
	return nil
}

func (p *parser) heading(line string) error {
	heading, closed := strings.CutSuffix(line[1:], "]")
	family, list, _ := strings.Cut(heading, " ")
	p.family, p.of = Family(family), Program{}
	if !closed || !slices.Contains(families, p.family) {
		return fmt.Errorf("unknown heading %q", line)
	}
	if p.family == words {
		p.list = map[string]bool{}
		p.lists[list] = p.list
	}
	return nil
}

func (p *parser) row(line string) error {
	columns := split(line)
	switch p.family {
	case "":
		return fmt.Errorf("a row before the first [heading]")
	case words:
		for word := range strings.SplitSeq(strings.TrimSuffix(line, ","), ",") {
			p.list[strings.TrimSpace(word)] = true
		}
		return nil
	case Lookalikes:
		if len(columns) > 1 {
			return fmt.Errorf("want 1 column, have %d", len(columns))
		}
		p.Lookalikes[columns[0]] = true
		return nil
	case Launchers:
		return p.addLauncher(columns)
	case Clients, Gateways:
		switch {
		case line[0] != ' ':
			return p.owner(columns)
		case p.of.Name == "":
			return fmt.Errorf("a program before the first name")
		case len(columns) > 3:
			return fmt.Errorf("want at most 3 columns, have %d", len(columns))
		}
		return p.addPrograms(p.of, columns[0], columns[1:])
	}
	if len(columns) > 4 {
		return fmt.Errorf("want at most 4 columns, have %d", len(columns))
	}
	return p.addPrograms(Program{Family: p.family, Name: cell(columns, 1)}, columns[0], columns[min(2, len(columns)):])
}

// owner begins a client or gateway, whose programs are the rows below.
func (p *parser) owner(columns []string) error {
	p.of = Program{Family: p.family, Name: columns[0]}
	if p.family == Gateways {
		p.of.Gateway = &Gateway{Name: p.of.Name, ConfigFlags: cellWords(columns, 1)}
		p.gateways = append(p.gateways, p.of.Gateway)
		return nil
	}
	kind := ClientKind(cell(columns, 1))
	p.of.Client = &Client{Name: p.of.Name, Kind: kind, ConfigFlags: cellWords(columns, 2), nonInteractive: cellWords(columns, 3)}
	switch kind {
	case Agent, Desktop, Editor, Daemon:
		return nil
	}
	return fmt.Errorf("unknown kind of client %q", kind)
}

// addPrograms adds a row for each of the names, which have commas between them. The other columns are WITH and WITHOUT.
func (x *Index) addPrograms(p Program, names string, columns []string) (err error) {
	with := cell(columns, 0)
	if rest, ok := strings.CutPrefix(with, "(app)"); ok {
		p.App, with = true, strings.TrimPrefix(rest, ",")
	}
	if p.With, err = conditions(with); err != nil {
		return err
	}
	if p.Without, err = conditions(cell(columns, 1)); err != nil {
		return err
	}
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if name != strings.ToLower(name) {
			return fmt.Errorf("program %q is not in lower case", name)
		}
		p.Program, p.Below = name, ""
		if below, program, ok := strings.Cut(name, "//"); ok {
			p.Below, p.Program = below, program
		}
		if i := strings.IndexByte(p.Program, '*'); p.Program == "" || i >= 0 && (i == 0 || i < len(p.Program)-1) {
			return fmt.Errorf("program %q: a * is for the end of a name only", p.Program)
		}
		row := p
		x.add(&row)
	}
	return nil
}

// split cuts a line into columns where two or more spaces, or a tab, are.
func split(line string) []string {
	var columns []string
	for cell := range strings.SplitSeq(strings.ReplaceAll(line, "\t", "  "), "  ") {
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

// cellWords returns the words of column i, which have commas between them.
func cellWords(columns []string, i int) []string {
	return strings.FieldsFunc(cell(columns, i), func(r rune) bool { return r == ',' || r == ' ' })
}

func conditions(text string) ([]Condition, error) {
	if text == "" {
		return nil, nil
	}
	var all []Condition
	for one := range strings.SplitSeq(text, ",") {
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

func (x *Index) addLauncher(columns []string) error {
	if len(columns) < 3 || len(columns) > 4 {
		return fmt.Errorf("want 3 or 4 columns, have %d", len(columns))
	}
	starts, skip, more := strings.Cut(columns[2], "+")
	l := &Launcher{Name: columns[0], Words: strings.Fields(columns[1]), Starts: Starts(starts), Options: map[string]bool{}}
	switch l.Starts {
	case StartsCommand, StartsPackage, StartsScript, StartsImage, StartsLine, StartsOption:
	default:
		return fmt.Errorf("unknown way to start %q", columns[2])
	}
	switch {
	case !more:
	case skip == "1":
		l.Skip = 1
	case skip == "--":
		l.Skip = -1
	default:
		return fmt.Errorf("want +1 or +--, have %q", columns[2])
	}
	for _, o := range strings.Fields(cell(columns, 3)) {
		switch {
		case o == "*":
			l.AllOptions = true
		case o[0] == '-' || o[0] == '+':
			l.Options[o] = true
		default:
			return fmt.Errorf("option %q begins with neither - nor +", o)
		}
	}
	rows := append(x.Launchers[l.Words[0]], l)
	// The row with the most sub-commands is the most specific and comes first.
	slices.SortStableFunc(rows, func(a, b *Launcher) int { return len(b.Words) - len(a.Words) })
	x.Launchers[l.Words[0]] = rows
	return nil
}
