package command

import (
	"strings"

	"mcpdoctor/rules/catalog"
)

// launched is what the words of a launcher say about what it starts.
type launched struct {
	words  []string
	from   string // the package to take it from
	call   string // a line of shell in place of words
	folder string // where it is started
	module bool   // the first word is a Python module
	line   bool   // the words are a line of shell
}

// findLauncher returns the row of a launcher and what its arguments say.
func findLauncher(name string, args []string) (*catalog.Launcher, launched) {
	for _, row := range catalog.Load().Launchers[name] {
		if s, ok := readLauncher(row, args); ok {
			return row, s
		}
	}
	return nil, launched{}
}

func readLauncher(row *catalog.Launcher, args []string) (s launched, ok bool) {
	if row.Starts == catalog.StartsLine {
		return readShell(row, args), true
	}
	for _, sub := range row.Words[1:] {
		args = s.readOptions(row, args)
		if len(args) == 0 || args[0] != sub {
			return s, false
		}
		args = args[1:]
	}
	s.words = s.readOptions(row, args)
	return s, true
}

// readOptions returns what follows the options of a launcher.
func (s *launched) readOptions(row *catalog.Launcher, args []string) []string {
	for len(args) > 0 {
		option := args[0]
		if option == "--" {
			return args[1:]
		}
		if len(option) < 2 || option[0] != '-' {
			return args
		}
		args = args[1:]
		if row.Name == "uv run" && (option == "-m" || option == "--module") {
			s.module = true
			return args
		}
		name, value, attached := strings.Cut(option, "=")
		if !attached && takesValue(row, option) {
			if len(args) == 0 {
				return nil
			}
			value, args = args[0], args[1:]
		}
		if value != "" {
			s.readOption(row, name, value)
		}
	}
	return args
}

var (
	projectOptions = catalog.Words("--bin --example --project --package -p") // of cargo run, dotnet run
	packageOptions = catalog.Words("--from --spec --package")
)

// readOption keeps what names the program. Of several, the first counts, but a binary says more than its package.
func (s *launched) readOption(row *catalog.Launcher, name, value string) {
	switch {
	case row.Starts == catalog.StartsOption:
		if projectOptions[name] && (s.from == "" || name == "--bin") {
			s.from = value
		}
	case packageOptions[name], name == "-p" && row.Starts == catalog.StartsPackage && row.Name != "uvx":
		if s.from == "" {
			s.from = value
		}
	case name == "--directory", name == "--cwd":
		s.folder = value
	case row.Name == "npx" && (name == "-c" || name == "--call"):
		s.call = value
	}
}

// takesValue reports whether the word after an option is its value.
func takesValue(row *catalog.Launcher, option string) bool {
	if !row.AllOptions {
		return row.Options[option]
	}
	if row.Options[option] || strings.HasPrefix(option, "--") {
		return !row.Options[option]
	}
	// Letters may stand together: -it is -i -t. The first one with a value takes the rest of the word or, if
	// there is none, the next word.
	for i := 1; i < len(option); i++ {
		if !row.Options["-"+option[i:i+1]] {
			return i == len(option)-1
		}
	}
	return false
}

// shellWord is what one argument of a shell means.
type shellWord int

const (
	shellOption   shellWord = iota
	lineFollows             // -c
	scriptFollows           // -File
	bareWord                // the first argument that is not an option
	notReadable             // commands come from stdin, or are encoded
)

// readShellWord returns what an argument of cmd, powershell or sh means.
func readShellWord(shell, word string) shellWord {
	if shell == "sh" {
		flags, isOption := strings.CutPrefix(word, "-")
		short, _, _ := strings.Cut(flags, "-")
		switch {
		case isOption && strings.Contains(short, "c"):
			return lineFollows
		case word == "", word == "-s":
			return notReadable
		case isOption, word[0] == '+':
			return shellOption
		}
		return bareWord
	}
	word = strings.ToLower(word)
	switch {
	case shell == "cmd" && (word == "/c" || word == "/k" || word == "/r"):
		return lineFollows
	case shell == "cmd" && strings.HasPrefix(word, "/"):
		return shellOption
	case shell == "cmd":
		return notReadable
	case word == "-c", word == "-command":
		return lineFollows
	case word == "-f", word == "-file":
		return scriptFollows
	case word == "-e", strings.HasPrefix(word, "-enc"):
		return notReadable
	case strings.HasPrefix(word, "-"):
		return shellOption
	}
	return bareWord
}

// readShell reads the options of a shell up to its line or script.
func readShell(row *catalog.Launcher, args []string) launched {
	for i := 0; i < len(args); i++ {
		word, rest := args[i], args[i+1:]
		switch readShellWord(row.Name, word) {
		case lineFollows:
			for row.Name == "sh" && len(rest) > 1 && len(rest[0]) == 2 && rest[0][0] == '-' { // sh -c -l 'line'
				rest = rest[1:]
			}
			return launched{words: rest, line: true}
		case scriptFollows:
			return launched{words: rest}
		case notReadable:
			return launched{}
		case bareWord:
			return launched{words: args[i:], line: row.Name == "powershell"}
		}
		if row.Options[word] || row.Options[strings.ToLower(word)] {
			i++
		}
	}
	return launched{}
}

// ShellLine returns the line that the words give a shell to run; false if they do not start a shell with one.
func ShellLine(words ...string) (text string, ok bool) {
	if len(words) == 0 {
		return "", false
	}
	_, rest := findLauncher(ProgramName(words[0]), words[1:])
	return strings.Join(rest.words, " "), rest.line && len(rest.words) > 0
}
