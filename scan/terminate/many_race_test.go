//go:build race

package terminate

// manyGroups is far fewer than otherwise: the race detector breaks when hundreds of goroutines run in
// one bubble of synctest (golang/go issue 78156, "CHECK failed ... kEpochLast").
const manyGroups = 30
