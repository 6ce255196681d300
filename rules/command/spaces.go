package command

import (
	"regexp"
	"strings"
	"sync"
)

// The output of ps does not show where an argument with spaces ends. Only folders that are known to have a space
// in their names are put together again.

// joinable is how many words are looked at: programs and scripts are among the first.
const joinable = 12

// joinPaths puts paths together that were split at their spaces.
func joinPaths(words []string) []string {
	for i := 0; i+1 < len(words) && i < joinable; i++ {
		if n := wordsOfPath(words[i:]); n > 1 {
			joined := append(append([]string{}, words[:i]...), strings.Join(words[i:i+n], " "))
			words = append(joined, words[i+n:]...)
			i-- // one path may have several such folders
		}
	}
	return words
}

// spacedFolders are names that begin in one word and end in the next.
var spacedFolders = [...]struct{ before, after string }{
	{"/Library/Application", "Support/"}, {"/Claude", "Extensions/"}, {`:\Program`, "Files"}, {`:\program`, "files"},
}

// bundle is the path of a macOS application up to the folder of its program. Applications have others inside:
// Cursor.app/Contents/Frameworks/Cursor Helper (Plugin).app/Contents/MacOS/.
var bundle = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\S*/Applications/(?:[^/]+\.app/(?:[^/ ]+/)*)+`)
})

// wordsOfPath returns how many of the words are one path that was split; 1 for all others.
func wordsOfPath(words []string) int {
	for _, f := range spacedFolders {
		if strings.HasSuffix(words[0], f.before) && strings.HasPrefix(words[1], f.after) {
			return 2
		}
	}
	if !strings.Contains(words[0], "/Applications/") {
		return 1
	}
	line := strings.Join(words[:min(len(words), joinable)], " ")
	path := bundle().FindString(line)
	if path == "" {
		return 1
	}
	// The program often has the name of its bundle.
	name := LastSegment(path[:strings.LastIndex(path, ".app/")])
	if strings.HasPrefix(line[len(path):]+" ", name+" ") {
		path += name
	}
	n := 1
	for length := len(words[0]); length < len(path); n++ {
		length += 1 + len(words[n])
	}
	return n
}
