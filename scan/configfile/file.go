package configfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mcpdoctor/scan/config"
	"os"
)

// maxFile is the largest file that is read. Claude Code's ~/.claude.json, which older versions kept
// the history of every project in, is the only one that ever comes near a megabyte.
const maxFile = 8 << 20

// readFile reads a file that a user wrote. Whatever else lies at the path is told and left alone:
// opening a pipe would wait for its writer, and a file of another user could name any of our
// processes as a server that may be ended.
func readFile(path, home string) ([]byte, trouble) {
	info, err := os.Stat(path) // follows links: many keep these files in a repository
	if err != nil {
		return nil, troubleOf(err)
	}
	if t := unfit(info, home); t.state != "" {
		return nil, t
	}
	f, err := openWithoutWaiting(path)
	if err != nil {
		return nil, troubleOf(err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil { // it may be another one by now
		return nil, troubleOf(err)
	}
	if t := unfit(info, home); t.state != "" {
		return nil, t
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, troubleOf(err)
	case len(text) > maxFile: // it grew, or it is one of the files that say they are empty
		return nil, tooLarge
	}
	return text, trouble{}
}

var tooLarge = trouble{state: config.Refused, reason: fmt.Sprintf("it is larger than %d MB", maxFile>>20)}

// unfit says why a file is not to be read.
func unfit(info fs.FileInfo, home string) trouble {
	switch {
	case info.IsDir():
		return trouble{state: config.Broken, reason: "it is a folder"}
	case !info.Mode().IsRegular():
		return trouble{state: config.Broken, reason: "it is not a regular file"}
	case info.Size() > maxFile:
		return tooLarge
	case foreign(info, home):
		return trouble{state: config.Refused, reason: "it belongs to another user"}
	}
	return trouble{}
}

func troubleOf(err error) trouble {
	var cause *fs.PathError
	switch {
	case notThere(err):
		return trouble{state: config.Absent}
	case errors.Is(err, fs.ErrPermission):
		return trouble{state: config.Refused, reason: "permission denied"}
	case errors.As(err, &cause):
		return trouble{state: config.Broken, reason: cause.Err.Error()} // the system's words, such as those for a circle of links
	}
	return trouble{state: config.Broken, reason: "it cannot be read"}
}
