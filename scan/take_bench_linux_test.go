package scan

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// The two benchmarks look at the machine's own table, whatever it holds; compare them in one run.
// Wall time says little, since Take uses all cores: compare cpu-ns/op.

func BenchmarkTake(b *testing.B) {
	b.ReportAllocs()
	n := 0
	defer reportCPU(b)()
	for b.Loop() {
		s, err := Take(b.Context(), Options{Now: time.Now()})
		if err != nil {
			b.Fatal(err)
		}
		n = len(s.Processes)
	}
	b.ReportMetric(float64(n), "processes")
}

// BenchmarkBareLoop is the least that a look at each process can cost: open, read and close the two
// files, and keep nothing.
func BenchmarkBareLoop(b *testing.B) {
	buf := make([]byte, 64<<10)
	defer reportCPU(b)()
	for b.Loop() {
		proc, err := os.Open("/proc")
		if err != nil {
			b.Fatal(err)
		}
		names, err := proc.Readdirnames(-1)
		if err != nil {
			b.Fatal(err)
		}
		proc.Close()
		for _, name := range names {
			if name[0] < '0' || name[0] > '9' {
				continue
			}
			for _, file := range []string{"/stat", "/cmdline"} {
				f, err := os.Open("/proc/" + name + file)
				if err != nil {
					continue // it has ended
				}
				f.Read(buf)
				f.Close()
			}
		}
	}
}

// reportCPU measures the processor time, user and system, from now until the returned function is
// called.
func reportCPU(b *testing.B) func() {
	start := cpuTime(b)
	return func() {
		b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N), "cpu-ns/op")
	}
}

func cpuTime(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
