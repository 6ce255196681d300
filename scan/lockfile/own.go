package lockfile

import (
	"fmt"
	"os"
)

// Append opens the file at path for appending and creates it, readable by its owner only, if there is none.
// It opens only a regular file of this user with a single name: in a directory that others can write to,
// anything else may be a link to another file, or block.
func Append(path string) (*os.File, error) {
	f, err := appendOwn(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}
