package command

import "strings"

// QuoteLine writes words as a line of shell that reads back as the same words.
func QuoteLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n'\"`$&|;<>()#*?!~") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted[i] = w
	}
	return strings.Join(quoted, " ")
}
