package scan

import (
	"testing"
	"time"
)

// BenchmarkTake reads the machine's own process table. Compare it with BenchmarkBareLoop in the
// same run; make bench does both over a table of 3,000.
func BenchmarkTake(b *testing.B) {
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		s, err := Take(b.Context(), Options{Now: time.Now()})
		if err != nil {
			b.Fatal(err)
		}
		n = len(s.Processes)
	}
	b.ReportMetric(float64(n), "processes")
}
