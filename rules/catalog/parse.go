package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// Parse adds the rows of one catalog file. A [heading] names the family of the rows below it; a row has columns two or
// more spaces apart, "-" being an empty one; "#" begins a comment. The name is for error messages only.
func (x *Index) Parse(name, text string) error {
	var family Family
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		var err error
		switch heading, ok := strings.CutPrefix(line, "["); {
		case line == "":
		case ok:
			heading, ok = strings.CutSuffix(heading, "]")
			if family = Family(heading); !ok || !slices.Contains(families, family) {
				err = fmt.Errorf("unknown heading %q", line)
			}
		default:
			err = x.addRow(family, split(line))
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
	return nil
}

func (x *Index) addRow(family Family, columns []string) error {
	switch family {
	case "":
		return fmt.Errorf("a row before the first [heading]")
	case Lookalikes:
		if len(columns) > 1 {
			return fmt.Errorf("want 1 column, have %d", len(columns))
		}
		x.Lookalikes[columns[0]] = true
		return nil
	case Launchers:
		return x.addLauncher(columns)
	}
	if len(columns) > 4 {
		return fmt.Errorf("want at most 4 columns, have %d", len(columns))
	}
	return x.addPrograms(Program{Family: family, Name: cell(columns, 1)}, columns[0], columns[min(2, len(columns)):])
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
