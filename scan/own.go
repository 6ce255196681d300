package scan

import (
	"fmt"
	"os"
)

// Append opens the file at path for writing at its end, and makes it, for its owner alone, if there is
// none. It opens nothing but a regular file of this user, under its own name: where others can write
// too, they may have put a link to another file there, or something that blocks.
func Append(path string) (*os.File, error) {
	f, err := appendOwn(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}
