//go:build !linux

package scan

// rootOf is empty where processes have no root directory of their own that can be looked into.
func rootOf(ExamineOptions, int) string { return "" }
