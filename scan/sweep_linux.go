package scan

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// stalled is how long no read may begin before those in progress count as blocked and another
	// goroutine is started. A healthy kernel needs a thousandth of it for one process.
	stalled = 10 * time.Millisecond

	// maxExtra bounds the threads that blocked reads can hold.
	maxExtra = 48
)

// sweep calls read for every index below n on a few goroutines and passes the results to take, in order,
// on the caller's goroutine. Each goroutine makes its own read, with its own buffers.
//
// It ends early when ctx is done or when no read has begun for patience. stuck are then the indexes whose
// read has not returned, skipped those whose read never began. A read that blocks in the kernel cannot be
// interrupted: it keeps its thread, and its result is dropped. Therefore read must not write to anything
// that the caller uses afterwards.
func sweep[T any](ctx context.Context, patience time.Duration, n int,
	newRead func() func(i int) T, take func(i int, v T)) (stuck, skipped []int) {
	var (
		results = make([]T, n)
		ready   = make([]atomic.Bool, n) // results[i] is complete
		left    atomic.Int64             // how many are not
		next    atomic.Int64             // the first index whose read has not begun
		done    = make(chan struct{})
	)
	left.Store(int64(n))
	work := func() {
		read := newRead()
		for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
			results[i] = read(int(i))
			ready[i].Store(true)
			if left.Add(-1) == 0 {
				close(done)
			}
		}
	}
	if n > 0 && ctx.Err() == nil {
		for range min(n, runtime.GOMAXPROCS(0)) {
			go work()
		}
		await(ctx, patience, done, int64(n), &next, work)
	}
	begun := int(next.Swap(int64(n))) // a read that returns later finds nothing left to do
	for i := range n {
		switch {
		case ready[i].Load():
			take(i, results[i])
		case i < begun:
			stuck = append(stuck, i)
		default:
			skipped = append(skipped, i)
		}
	}
	return stuck, skipped
}

// await returns when done is closed, when ctx is done, or when next has not moved for patience. While it
// does not move, await starts more goroutines. Ticks are counted, not time: a suspended machine, or
// a process that was stopped, is not a blocked read.
func await(ctx context.Context, patience time.Duration, done <-chan struct{}, n int64, next *atomic.Int64, work func()) {
	tick := time.NewTicker(stalled)
	defer tick.Stop()
	for seen, idle, extra := int64(-1), time.Duration(0), 0; ; {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		idle += stalled
		switch now := next.Load(); {
		case now != seen:
			seen, idle = now, 0
		case now < n && extra < maxExtra:
			extra++
			go work()
		case idle >= patience:
			return
		}
	}
}
