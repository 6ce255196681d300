package stdio

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"

	"mcpdoctor/scan/facts"
)

// startFailure explains why the system could not start the command of this name.
func startFailure(name string, err error) *facts.Failure {
	f := &facts.Failure{Kind: facts.NeverStarted, Cause: err}
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		f.Kind = facts.Missing
	case errors.Is(err, fs.ErrPermission):
		f.Kind = facts.NotExecutable
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			f.Kind = facts.Directory
		}
	case errors.Is(err, errNotExecutable):
		f.Kind = facts.NoProgram
	}
	return f
}
