//go:build !linux

package stdio

import "mcpdoctor/scan"

// canAdopt tells that the system has somebody adopt who loses its parent.
const canAdopt = false

// adopt does nothing: only Linux lets a process adopt what is started below it.
func adopt() (restore func(), err error) { return func() {}, nil }

func waitFor(int) {}

// hasMark tells nothing: the environment of another process is not read here.
func hasMark(scan.ID, string) bool { return false }

// builtByGo tells nothing: the program of a process is not looked at here.
func builtByGo(int) bool { return false }
