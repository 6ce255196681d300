package configfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"mcpdoctor/scan/config"
)

// maxFile is the largest file that is read. Only Claude Code's ~/.claude.json, in which older versions kept
// the history of every project, is ever near a megabyte.
const maxFile = 8 << 20

// readFile reads a regular file of the user. Anything else is left alone: opening a FIFO would wait for a
// writer, and another user's file could name any of our processes as a server to terminate.
func (o Options) readFile(path string) ([]byte, error) {
	if err := o.check(os.Stat(path)); err != nil { // follows links: many users keep these files in a repository
		return nil, err
	}
	f, err := openNonblock(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := o.check(f.Stat()); err != nil { // it may be another file by now
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(text) > maxFile { // it grew, or it is one of those whose size is reported as 0
		return nil, tooLarge
	}
	return text, err
}

var tooLarge = refused(fmt.Sprintf("larger than %d MB", maxFile>>20))

// check returns a problem unless the file should be read.
func (o Options) check(info fs.FileInfo, err error) error {
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return broken("a folder, not a file")
	case !info.Mode().IsRegular():
		return broken("not a regular file")
	case info.Size() > maxFile:
		return tooLarge
	case untrusted(info, o.Home):
		return refused("belongs to another user")
	}
	return nil
}

// problemOf makes a problem of any error.
func problemOf(err error) problem {
	var p problem
	var cause *fs.PathError
	switch {
	case errors.As(err, &p):
		return p
	case absent(err):
		return problem{state: config.Absent}
	case errors.Is(err, fs.ErrPermission):
		return refused("permission denied")
	case errors.As(err, &cause):
		return broken(cause.Err.Error()) // without the path: "too many levels of symbolic links"
	}
	return broken("unreadable")
}
