package command

import (
	"strings"

	"mcpdoctor/rules/catalog"
)

// Launchers: their own options, and where what they start begins.

// started is what a launcher's own words say about what it starts.
type started struct {
	Words  []string
	from   string // the package to take it from
	call   string // a line of shell instead of words
	folder string // the folder to start it in
	module bool   // the first word is a Python module
	Line   bool   // the words are a line of shell
	strip  bool   // that is in quotes of its own
}

// launcher finds the row for a command, and what comes after the launcher's own words.
func LauncherRow(name string, args []string) (*catalog.Launcher, started) {
	for _, row := range catalog.Load().Launchers[name] {
		if s, ok := start(row, args); ok {
			return row, s
		}
	}
	return nil, started{}
}

func start(row *catalog.Launcher, args []string) (s started, ok bool) {
	if row.Starts == catalog.StartsLine {
		return startShell(row, args), true
	}
	for _, sub := range row.Words[1:] {
		args = s.options(row, args)
		if len(args) == 0 || args[0] != sub {
			return s, false
		}
		args = args[1:]
	}
	s.Words = s.options(row, args)
	return s, true
}

// options skips a launcher's options and keeps those that name what is started.
func (s *started) options(row *catalog.Launcher, args []string) []string {
	for len(args) > 0 {
		w := args[0]
		if w == "--" {
			return args[1:]
		}
		if len(w) < 2 || w[0] != '-' {
			return args
		}
		args = args[1:]
		if row.Name == "uv run" && (w == "-m" || w == "--module") {
			s.module = true
			return args
		}
		name, value, attached := strings.Cut(w, "=")
		if !attached {
			if !takesValue(row, w) {
				continue
			}
			if len(args) == 0 {
				return nil
			}
			value, args = args[0], args[1:]
		}
		switch {
		case row.Starts == catalog.StartsOption && (name == "--bin" || name == "--example" || name == "--project" || name == "--package" || name == "-p"):
			if s.from == "" || name == "--bin" {
				s.from = value
			}
		case name == "--from", name == "--spec", name == "--package", name == "-p" && row.Name != "uvx" && row.Starts == catalog.StartsPackage:
			if s.from == "" {
				s.from = value
			}
		case name == "--directory", name == "--cwd":
			s.folder = value
		case row.Name == "npx" && (name == "-c" || name == "--call"):
			s.call = value
		}
	}
	return args
}

func takesValue(row *catalog.Launcher, option string) bool {
	if !row.AllOptions {
		return row.Options[option]
	}
	if row.Options[option] {
		return false
	}
	if strings.HasPrefix(option, "--") {
		return true
	}
	// Letters may stand together: -it is -i -t; the first with a value takes the rest, or the
	// next word when there is none.
	for i := 1; i < len(option); i++ {
		if !row.Options["-"+option[i:i+1]] {
			return i == len(option)-1
		}
	}
	return false
}

// startShell reads the options of a shell up to its -c, in its three dialects.
func startShell(row *catalog.Launcher, args []string) (s started) {
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch row.Name {
		case "cmd":
			switch Lower(w) {
			case "/c", "/k", "/r":
				s.Words, s.Line = args[i+1:], true
				return s
			case "/s":
				s.strip = true
			}
			if !strings.HasPrefix(w, "/") {
				return s
			}
		case "powershell":
			switch option := strings.ToLower(w); {
			case option == "-command" || option == "-c":
				s.Words, s.Line = args[i+1:], true
				return s
			case option == "-file" || option == "-f":
				s.Words = args[i+1:]
				return s
			case row.Options[option]:
				i++
			case strings.HasPrefix(option, "-enc") || option == "-e":
				return s
			case w == "" || w[0] != '-':
				s.Words, s.Line = args[i:], true
				return s
			}
		default:
			switch {
			case len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.IndexByte(w, 'c') > 0:
				rest := args[i+1:]
				for len(rest) > 1 && len(rest[0]) == 2 && rest[0][0] == '-' { // sh -c -l 'line'
					rest = rest[1:]
				}
				s.Words, s.Line = rest, true
				return s
			case row.Options[w]:
				i++
			case w == "" || w == "-s":
				return s // reads commands from standard input
			case w[0] != '-' && w[0] != '+':
				s.Words = args[i:]
				return s
			}
		}
	}
	return s
}
