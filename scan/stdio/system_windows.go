package stdio

import "golang.org/x/sys/windows"

const hasSIGTERM = false

// errNotExecutable is the error of CreateProcess for a file that is no program.
const errNotExecutable = windows.ERROR_BAD_EXE_FORMAT
