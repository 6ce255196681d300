//go:build !race

package scan

// manyGroups is as many as a reap ends at once.
const manyGroups = 500
