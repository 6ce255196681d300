package scan

import "testing"

// BenchmarkExamine100 looks closer at a hundred servers, half on pipes and half on socket pairs.
func BenchmarkExamine100(b *testing.B) {
	pids := hundredServers(b)
	s := takeTable(b)
	for b.Loop() {
		Examine(b.Context(), s, pids, ExamineOptions{})
	}
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
