package scan

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// More looks block than there are processors; all behind them are done nevertheless.
func TestSweepGetsPastBlockedLooks(t *testing.T) {
	blocked := runtime.GOMAXPROCS(0) + 5
	n := blocked + 50
	never := make(chan struct{})
	defer close(never)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var begun atomic.Int64
	var taken []int
	late, skipped := sweep(ctx, time.Minute, n, func() func(int) int {
		return func(i int) int {
			switch {
			case i < blocked:
				<-never
			case begun.Add(1) == int64(n-blocked):
				// The last one ends the sweep, and is late itself or not.
				cancel()
			}
			return i * i
		}
	}, func(i, v int) {
		if v != i*i {
			t.Errorf("the look at %d returned %d", i, v)
		}
		taken = append(taken, i)
	})
	late = append(late, skipped...)
	if len(late) < blocked || late[blocked-1] != blocked-1 {
		t.Errorf("late are %v, want the %d blocked ones", late, blocked)
	}
	if len(taken)+len(late) != n || len(taken) < n-blocked-runtime.GOMAXPROCS(0)-maxExtra || !slices.IsSorted(taken) {
		t.Errorf("of %d, %v were taken and %v late", n, taken, late)
	}
}

func TestSweepOfNothing(t *testing.T) {
	look := func() func(int) int { return func(int) int { return 1 } }
	if late, skipped := sweep(t.Context(), time.Minute, 0, look, func(int, int) {}); late != nil || skipped != nil {
		t.Errorf("stuck: %v, skipped: %v", late, skipped)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if late, skipped := sweep(ctx, time.Minute, 2, look, func(int, int) {}); late != nil || !slices.Equal(skipped, []int{0, 1}) {
		t.Errorf("after the end: stuck: %v, skipped: %v", late, skipped)
	}
}
