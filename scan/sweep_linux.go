package scan

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// stalled is how long nobody may have begun anything until the goroutines of a sweep count as
	// blocked and get help. A healthy kernel needs a thousandth of it for one process.
	stalled = 10 * time.Millisecond

	// maxHelp bounds the threads that blocked reads can hold.
	maxHelp = 32
)

// sweep looks at every index below n on a few goroutines, hands what came back in time to take, in
// order and in the caller's goroutine, and returns the indexes that did not. Each goroutine makes
// itself a look of its own, with its own buffers.
//
// A read that blocks in the kernel cannot be interrupted: it keeps its goroutine and its thread, and
// what it returns after ctx ended is dropped. Therefore look must not touch what the caller owns.
func sweep[T any](ctx context.Context, n int, newLook func() func(i int) T, take func(i int, v T)) (late []int) {
	var (
		results = make([]T, n)
		ready   = make([]atomic.Bool, n) // results[i] is complete
		left    atomic.Int64             // how many are not
		next    atomic.Int64             // the first index that nobody has begun
		all     = make(chan struct{})
	)
	left.Store(int64(n))
	work := func() {
		look := newLook()
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			results[i] = look(i)
			ready[i].Store(true)
			if left.Add(-1) == 0 {
				close(all)
			}
		}
	}
	if n > 0 {
		for range min(n, runtime.GOMAXPROCS(0)) {
			go work()
		}
		helpUntil(ctx, all, &next, work)
	}
	for i := range n {
		if ready[i].Load() {
			take(i, results[i])
		} else {
			late = append(late, i)
		}
	}
	return late
}

// helpUntil waits for done or the end of ctx. Whenever next has not moved for a while it starts
// another worker.
func helpUntil(ctx context.Context, done <-chan struct{}, next *atomic.Int64, work func()) {
	tick := time.NewTicker(stalled)
	defer tick.Stop()
	for seen, help := int64(-1), 0; ; {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
			if now := next.Load(); now != seen {
				seen = now
			} else if help < maxHelp {
				help++
				go work()
			}
		}
	}
}
