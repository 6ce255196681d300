package scan

import (
	"context"
	"runtime"
	"sync/atomic"
)

// sweep looks at every index below n on a few goroutines, hands what came back in time to take, in
// order and in the caller's goroutine, and returns the indexes that did not. Each goroutine makes
// itself a look of its own, with its own buffers.
//
// A read that blocks in the kernel cannot be interrupted: it keeps its goroutine and its thread, and
// what it returns after ctx ended is dropped. Therefore look must not touch what the caller owns.
// The number of goroutines bounds the threads that can be lost.
func sweep[T any](ctx context.Context, n int, newLook func() func(i int) T, take func(i int, v T)) (late []int) {
	// More than there are processors, so that a few blocked reads do not hold up the rest.
	workers := min(n, max(4, runtime.GOMAXPROCS(0)))
	var (
		results = make([]T, n)
		ready   = make([]atomic.Bool, n) // results[i] is complete
		next    atomic.Int64
		working atomic.Int64
		all     = make(chan struct{})
	)
	working.Store(int64(workers))
	for range workers {
		go func() {
			defer func() {
				if working.Add(-1) == 0 {
					close(all)
				}
			}()
			look := newLook()
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				results[i] = look(i)
				ready[i].Store(true)
			}
		}()
	}
	if n > 0 {
		select {
		case <-all:
		case <-ctx.Done():
		}
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
