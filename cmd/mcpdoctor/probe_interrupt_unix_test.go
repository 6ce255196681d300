//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Ctrl-C while sessions are open: the real command deletes them and comes back.
func TestProbeInterrupted(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	begin := make(chan struct{})
	e := &oneEndpoint{unknown: 404, onOpen: func(n int) {
		if n == 50 {
			close(begin)
		}
	}}
	c := exec.CommandContext(t.Context(), self, "probe", e.serve(t), "--sessions", "10000", "--timeout", "5m")
	c.Env = append(os.Environ(), playAs+"=mcpdoctor")
	var out, stderr bytes.Buffer
	c.Stdout, c.Stderr = &out, &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	<-begin
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if c.ProcessState.ExitCode() != exitTrouble || out.Len() > 0 || !strings.Contains(stderr.String(), "error: interrupted\nmcpdoctor: hint: opened sessions have been deleted") {
		t.Errorf("exit code %d\n%s%s", c.ProcessState.ExitCode(), out.String(), stderr.String())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	// The answer that nobody waited for any more may have opened one.
	if e.opened < 50 || e.opened > 5000 || len(e.open) > 1 {
		t.Errorf("of %d sessions %d are left open", e.opened, len(e.open))
	}
}
