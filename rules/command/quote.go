package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// QuoteLine writes words as a line of shell that reads back as the same words.
func QuoteLine(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return strings.Join(quoted, " ")
}

// quote leaves an equals sign alone, which is special only in the first word of a command.
func quote(word string) string {
	quoted, _ := syntax.Quote(word, syntax.LangBash) // fails on NUL, which no argument can contain
	bare := strings.ReplaceAll(word, "=", "-")
	if same, _ := syntax.Quote(bare, syntax.LangBash); same == bare {
		return word
	}
	return quoted
}

// SplitLine returns the words of a line of POSIX shell. It returns false if the line means more than its words:
// several commands, variables, patterns, redirections.
func SplitLine(text string) (words []string, plain bool) {
	file, err := parseShell(text)
	if err != nil || len(file.Stmts) != 1 {
		return nil, false
	}
	stmt := file.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(stmt.Redirs) > 0 || stmt.Negated || stmt.Background {
		return nil, false
	}
	for _, w := range call.Args {
		if !isPlain(w.Parts) {
			return nil, false
		}
		words = append(words, wordText(text, w.Parts, false))
	}
	return words, true
}

func isPlain(parts []syntax.WordPart) bool {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, "*?[]{}~!") {
				return false
			}
		case *syntax.DblQuoted:
			if !isPlain(p.Parts) {
				return false
			}
		case *syntax.SglQuoted:
		default:
			return false
		}
	}
	return true
}
