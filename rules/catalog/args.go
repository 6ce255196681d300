package catalog

import (
	"slices"
	"strconv"
	"strings"
)

// Args are the arguments of a program.
type Args []string

// Flag returns the value of an option, written `--name value` or `--name=value`, and reports whether the option
// is there. An option that is followed by another one has no value.
func (a Args) Flag(name string) (value string, ok bool) {
	for i, arg := range a {
		switch rest, has := strings.CutPrefix(arg, name); {
		case arg == "--":
			return "", false // what follows belongs to another program
		case !has:
		case rest == "" && i+1 < len(a) && !strings.HasPrefix(a[i+1], "-"):
			return a[i+1], true
		case rest == "":
			return "", true
		case rest[0] == '=':
			return rest[1:], true
		}
	}
	return "", false
}

// Has reports whether an option is there.
func (a Args) Has(name string) bool {
	_, ok := a.Flag(name)
	return ok
}

// Run is one run of a program, as far as its process shows.
type Run struct {
	Args
	Runtime string // the interpreter; empty for a binary
	Version string // empty when it is not known
}

// Major is the first number of the version; 0 when it is not known.
func (r Run) Major() int {
	n, _ := strconv.Atoi(strings.SplitN(r.Version, ".", 2)[0])
	return n
}

// Target is a command that a gateway starts: either a line of shell or separate words.
type Target struct {
	Line  string
	Words []string
}

// afterDashes is what follows "--", the usual way to name a command.
func afterDashes(a Args) []Target {
	if i := slices.Index(a, "--"); i >= 0 {
		return wordsFrom(a, i+1)
	}
	return nil
}

// afterOptions is the first word that is neither an option nor the value of one, and what follows it. The options
// in withValue have a value in a word of its own. A URL in place of the command names a remote server.
func afterOptions(a Args, withValue map[string]bool) []Target {
	for i := 0; i < len(a); i++ {
		switch arg := a[i]; {
		case arg == "--":
			return wordsFrom(a, i+1)
		case withValue[arg]:
			i++
		case strings.HasPrefix(arg, "-"):
		case strings.Contains(arg, "://"):
			return nil
		default:
			return wordsFrom(a, i)
		}
	}
	return nil
}

// lineAfter is the value of an option that is a line of shell. Where the arguments were cut at their spaces (ps,
// Windows), the line ends at the next of the gateway's own options.
func lineAfter(a Args, option string, options map[string]bool) []Target {
	for i, arg := range a {
		if value, ok := strings.CutPrefix(arg, option+"="); ok {
			return []Target{{Line: value}}
		}
		if arg != option || i+1 == len(a) {
			continue
		}
		words := a[i+1:]
		if strings.Contains(words[0], " ") {
			return []Target{{Line: words[0]}}
		}
		end := slices.IndexFunc(words, func(w string) bool {
			name, _, _ := strings.Cut(w, "=")
			return options[name]
		})
		switch end {
		case -1:
			end = len(words)
		case 0:
			return nil
		}
		return []Target{{Line: strings.Join(words[:end], " ")}}
	}
	return nil
}

func wordsFrom(a Args, i int) []Target {
	if i >= len(a) {
		return nil
	}
	return []Target{{Words: a[i:]}}
}
