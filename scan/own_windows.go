package scan

import (
	"errors"
	"os"
)

// appendOwn opens or makes a file for writing at its end.
func appendOwn(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, errors.Unwrap(err) // the path is told by who calls
	}
	return f, nil
}
