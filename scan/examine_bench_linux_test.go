package scan

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkExamine100 looks closer at a client and its hundred servers, half on pipes and half on socket pairs. The
// processor time it reports is the cost on a machine that has other things to do too.
func BenchmarkExamine100(b *testing.B) {
	pids := hundredServers(b)
	client := append([]int{os.Getpid()}, pids...) // with the client that has started them
	s := takeTable(b)
	before := processorTime(b)
	for b.Loop() {
		Examine(b.Context(), s, client, ExamineOptions{Brief: client})
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
	for _, pid := range pids {
		if p := s.find(pid); p.Stdin == nil || p.Stdin.Peer != PeerOpen {
			b.Fatalf("pid %d has stdin %+v", pid, p.Stdin)
		}
	}
}

// BenchmarkHolders100 asks who holds the other ends of theirs.
func BenchmarkHolders100(b *testing.B) {
	pids := hundredServers(b)
	s := takeTable(b)
	Examine(b.Context(), s, pids, ExamineOptions{})
	for b.Loop() {
		Holders(b.Context(), s, pids, ExamineOptions{})
	}
}

func hundredServers(b *testing.B) []int {
	var pids []int
	for i := range 100 {
		server, _ := startServer(b, []string{"pipe", "socketpair"}[i%2], "stubborn")
		pids = append(pids, server.pid)
	}
	return pids
}

// processorTime is what this process has used of all processors.
func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
