//go:build !race

package terminate

// manyGroups is as many as a reap ends at once.
const manyGroups = 500
