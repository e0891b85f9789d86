package engine

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Crowd is a number of waiters for one lock.
type Crowd struct {
	Source   source.Source
	Waiting  func() int // number of waiters seen so far
	Requests func() int // number of requests so far
	Idle     func()     // fails the test if idle waiters send many requests
}

// Serve starts size waiters, lets each acquire and release the lock, and requires that they are served
// in order of arrival. It returns the number of requests per handover.
func (c Crowd) Serve(t *testing.T, size int) (each float64) {
	t.Helper()
	ctx := Within(t)
	opt := multilock.Options{TTL: 10 * time.Minute}
	lock, err := multilock.TryAcquire(ctx, c.Source, "nightly", opt)
	require.NoError(t, err)
	var mu sync.Mutex
	var served []int
	var all sync.WaitGroup
	for i := range size {
		all.Go(func() {
			mine, err := multilock.Acquire(ctx, c.Source, "nightly", opt)
			if err == nil {
				mu.Lock()
				served = append(served, i)
				mu.Unlock()
				err = mine.Release(ctx)
			}
			if err != nil {
				t.Error(err)
			}
		})
		require.Eventually(t, func() bool { return c.Waiting() == i+1 }, Watchdog, time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond) // until the last waiters have begun to watch
	c.Idle()
	before := c.Requests()
	require.NoError(t, lock.Release(ctx))
	all.Wait()
	for i := range served {
		require.Equal(t, i, served[i], "the order of arrival")
	}
	return float64(c.Requests()-before) / float64(size)
}

// StressTTL is the TTL of the lock in Stress.
const StressTTL = 3 * time.Second

// Stress has processes contend for one lock. They are killed and paused at random, and fault breaks the
// server from time to time, with quiet periods in between. Stress requires that there is never more
// than one holder, that fencing tokens grow, and that the lock never gets stuck. The judge is not one
// of the contenders, and uses the server only at the end, when it inspects what is left through open.
// long selects ten minutes of this.
func Stress(t *testing.T, place string, long bool, fault func(), open func() source.Source) {
	t.Helper()
	turns, lasts := 25, time.Duration(0)
	if testing.Short() {
		turns = 6
	}
	if long {
		lasts = 10 * time.Minute
	}
	faults := 0
	var quiet time.Time
	crew := worker.Crew{TB: t, Place: place, TTL: StressTTL, Lasts: lasts, Disturb: func() {
		if time.Since(quiet) < 2*StressTTL {
			return
		}
		fault()
		faults++
		quiet = time.Now()
	}}
	crew.Work(4, turns)
	require.Positive(t, faults)
	crew.Judge(open())
	t.Logf("%d faults", faults)
}
