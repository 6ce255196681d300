//go:build !linux

package stdio

// isGoProgram is not implemented here.
func isGoProgram(int) bool { return false }
