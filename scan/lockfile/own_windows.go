package lockfile

import (
	"errors"
	"os"
)

// appendOwn opens or creates a file for appending.
func appendOwn(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, errors.Unwrap(err) // the caller adds the path
	}
	return f, nil
}
