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

// Crowd is many who wait for one lock.
type Crowd struct {
	Source   source.Source
	Waiting  func() int // how many are seen to wait
	Requests func() int // how many there were until now
	Idle     func()     // requires that nobody asks for much while nothing happens
}

// Serve has so many wait for a lock, and each have it: in the order in which they came. It returns how
// many requests a hand-over has cost.
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
	time.Sleep(500 * time.Millisecond) // what the last ones begin to listen to is there
	c.Idle()
	before := c.Requests()
	require.NoError(t, lock.Release(ctx))
	all.Wait()
	for i := range served {
		require.Equal(t, i, served[i], "the order of arrival")
	}
	return float64(c.Requests()-before) / float64(size)
}

// StressTTL is that of the lock for which processes fight under stress.
const StressTTL = 3 * time.Second

// Stress has processes fight for one lock. They are killed and stopped at any moment, and now and then
// a fault happens to the server; in between they are left to work. Nobody holds what another holds,
// numbers grow, and the lock is never stuck: the one who watches is none of them, and asks no server
// before the end, when open has what is left be looked at. long is for ten minutes of that.
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
