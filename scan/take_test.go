package scan

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"
)

// TestTakeSelf asserts about the real table what a process knows about itself, on every system.
func TestTakeSelf(t *testing.T) {
	before := time.Now()
	s, err := Take(t.Context(), Options{Now: before})
	if err != nil {
		t.Fatal(err)
	}
	checkTable(t, s)
	if s.Host.OS == "" || s.Host.Name == "" || s.Host.MemoryTotalBytes <= 0 || s.Host.UptimeSeconds <= 0 {
		t.Errorf("host %s", asJSON(t, s.Host))
	}
	if uid := os.Geteuid(); uid >= 0 && (s.Host.UID == nil || *s.Host.UID != uid) {
		t.Errorf("host uid %v, want %d", s.Host.UID, uid)
	}
	if s.Host.Services != nil {
		t.Errorf("services %v: nobody asked a manager", s.Host.Services)
	}
	p := s.find(os.Getpid())
	if p == nil {
		t.Fatalf("pid %d is missing", os.Getpid())
	}
	if p.PPID != os.Getppid() {
		t.Errorf("ppid %d, want %d", p.PPID, os.Getppid())
	}
	if p.Args != nil && !slices.Equal(p.Args, os.Args) || p.Args == nil && p.Cmdline == "" {
		t.Errorf("args %q, cmdline %q, want %q", p.Args, p.Cmdline, os.Args)
	}
	if p.RSS() <= 0 || p.CPUSeconds == nil || p.Name == "" || p.User == "" {
		t.Errorf("%s", asJSON(t, p))
	}
	if age := before.Sub(p.Started); age < -2*time.Second || age > 24*time.Hour {
		t.Errorf("started %v, at %v", p.Started, before)
	}
	if p.Start == 0 || len(p.Unreadable) > 0 || p.Stdin != nil || p.Listen != nil {
		t.Errorf("%s", asJSON(t, p))
	}

	again, err := Take(t.Context(), Options{Now: before})
	if err != nil {
		t.Fatal(err)
	}
	if a := again.find(os.Getpid()); a == nil || a.ID() != p.ID() {
		t.Errorf("identity %v, then %v", p.ID(), a)
	}
}

func TestTakeEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := Take(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context gives %v, %v", s, err)
	}
}
