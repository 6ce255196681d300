package scan

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// A process of which the first thread has ended looks like a zombie and holds all that it held.
func TestHoldersWithoutFirstThread(t *testing.T) {
	for _, kind := range []string{"pipe", "socketpair"} {
		client := startChild(t, "client "+kind+" headless", nil)
		server := client.number(0)
		t.Cleanup(func() { kill(t, server) })
		deadline := time.Now().Add(10 * time.Second)
		for {
			s := takeTable(t)
			if p := s.find(client.pid); p != nil && p.State == "Zl" {
				Examine(t.Context(), s, []int{server}, patient)
				Holders(t.Context(), s, []int{server}, patient)
				if got := s.find(server).Stdin; got.Peer != PeerOpen || !slices.Equal(got.Holders, []int{client.pid}) {
					t.Errorf("%s: stdin is %+v, want it held by %d", kind, got, client.pid)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the first thread did not end")
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// Who reads what a server writes to a pipe.
func TestReaders(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	cmd.Stdout = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck
	})
	write.Close()
	output := func() *Stdin {
		s := takeTable(t)
		Examine(t.Context(), s, []int{cmd.Process.Pid}, patient)
		Holders(t.Context(), s, []int{cmd.Process.Pid}, patient)
		return s.find(cmd.Process.Pid).Stdout
	}
	if got := output(); got.Type != StdinPipe || got.Peer != PeerOpen || !slices.Equal(got.Holders, []int{os.Getpid()}) {
		t.Errorf("output %+v, want it read by %d", got, os.Getpid())
	}
	read.Close()
	if got := output(); got.Type != StdinPipe || got.Peer != PeerClosed {
		t.Errorf("output %+v, want it read by nobody", got)
	}
}

// A helper that inherited the writing end keeps a server's stdin open after the client has gone.
func TestHolders(t *testing.T) {
	for _, kind := range []string{"pipe", "socketpair"} {
		t.Run(kind, func(t *testing.T) {
			server, ours := startServer(t, kind, "stubborn")
			helper := startChild(t, "stay", func(cmd *exec.Cmd) { cmd.ExtraFiles = []*os.File{ours} })
			holders := func() []int {
				s := takeTable(t)
				Examine(t.Context(), s, []int{server.pid}, patient)
				Holders(t.Context(), s, []int{server.pid}, patient)
				if p := s.find(server.pid); slices.Contains(p.Unreadable, "holders") {
					t.Errorf("holders are unreadable: %v", s.Problems)
				}
				return s.find(server.pid).Stdin.Holders
			}
			both := []int{os.Getpid(), helper.pid}
			slices.Sort(both)
			if got := holders(); !slices.Equal(got, both) {
				t.Errorf("held by %v, want %v", got, both)
			}
			ours.Close()
			if got := holders(); !slices.Equal(got, []int{helper.pid}) {
				t.Errorf("held by %v, want the helper %d", got, helper.pid)
			}
			kill(t, helper.pid)
			eventually(t, "closed after the helper's end", func() bool {
				return examined(t, server.pid).Stdin.Peer == PeerClosed
			})
			if got := holders(); got != nil {
				t.Errorf("a closed stdin is held by %v", got)
			}
		})
	}
}
