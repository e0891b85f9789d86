package multilock_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// oneLock is a lock in memory that excludes, and tells nobody that it is free. Each of its
// users is a process of its own, with its own memory of its turns.
type oneLock struct {
	mu    sync.Mutex
	taken int // how often
	held  bool
	since time.Time
	asked int // attempts and looks
}

type userOf struct {
	*oneLock
	turns source.Turns
}

func (u *userOf) Turns() *source.Turns { return &u.turns }

func (u *userOf) Contend(context.Context, string, source.Claim, multilock.Patience) (source.Contender, error) {
	return &attempt{u.oneLock}, nil
}

func (u *userOf) Observe(context.Context, string, multilock.Patience) (source.Observer, error) {
	return &attempt{u.oneLock}, nil
}

func (u *userOf) Names(context.Context) ([]string, error) { return nil, nil }

type attempt struct{ *oneLock }

func (a *attempt) Try(context.Context) (source.Lease, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if a.held {
		return nil, multilock.ErrHeld
	}
	a.held, a.since = true, time.Now()
	a.taken++
	return &turnLease{oneLock: a.oneLock, since: boottime.Now()}, nil
}

func (a *attempt) Look(context.Context) (multilock.Sighting, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if !a.held {
		return multilock.Sighting{State: multilock.StateFree}, nil
	}
	record := source.Record{Token: strconv.Itoa(a.taken)}
	return multilock.Sighting{State: multilock.StateHeld, Record: record, Age: time.Since(a.since), Next: 5 * time.Second}, nil
}

func (a *attempt) Wake() <-chan struct{}       { return nil }
func (a *attempt) Break(context.Context) error { return multilock.ErrHeld }
func (a *attempt) Force(context.Context) error { return multilock.ErrHeld }
func (a *attempt) Close() error                { return nil }

type turnLease struct {
	*oneLock
	since boottime.Instant
}

func (l *turnLease) Record() source.Record       { return source.Record{Token: "mine"} }
func (l *turnLease) Since() boottime.Instant     { return l.since }
func (l *turnLease) Renew(context.Context) error { return nil }
func (l *turnLease) Close() error                { return nil }
func (l *turnLease) Fence(context.Context) (uint64, error) {
	return 0, multilock.ErrUnsupported
}
func (l *turnLease) MarkJob(context.Context, ...process.Group) error { return multilock.ErrUnsupported }

func (l *turnLease) Release(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	return nil
}

// aTurn is one wait for the lock.
type aTurn struct{ came, got time.Time }

func (w aTurn) waited() time.Duration { return w.got.Sub(w.came) }

// loop lets many take the lock again and again, and hold it for a while each time.
func loop(t *testing.T, lock *oneLock, loopers, cycles int, hold time.Duration) (turns []aTurn) {
	t.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	for range loopers {
		src := &userOf{oneLock: lock}
		group.Go(func() {
			for range cycles {
				turn := aTurn{came: time.Now()}
				held, err := multilock.Acquire(t.Context(), src, "busy", multilock.Options{TTL: ttl})
				if err != nil {
					t.Error(err)
					return
				}
				turn.got = time.Now()
				time.Sleep(hold)
				if err := held.Release(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				turns = append(turns, turn)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return turns
}

// overtaken is how often each was passed by one who came later.
func overtaken(turns []aTurn) []int {
	var counts []int
	for _, one := range turns {
		n := 0
		for _, other := range turns {
			if other.came.After(one.came) && other.got.Before(one.got) {
				n++
			}
		}
		counts = append(counts, n)
	}
	return counts
}

// Thirty loopers, ten turns each, and nothing but polling: nobody waits for many times as
// long as most do, and nobody asks more often than one who waits alone.
func TestManyLoopersTakeTurns(t *testing.T) {
	const loopers, cycles = 30, 10
	for _, hold := range []time.Duration{30 * time.Millisecond, 300 * time.Millisecond, 3 * time.Second} {
		t.Run(hold.String(), func(t *testing.T) {
			ratio := median(t, func(t *testing.T) float64 {
				lock, start := &oneLock{}, time.Now()
				turns := loop(t, lock, loopers, cycles, hold)
				waits, sum := waitsOf(turns)
				middle, longest := waits[len(waits)/2], waits[len(waits)-1]
				t.Logf("median %v, longest %v; at most %d times overtaken; %.2f requests a second and waiter; all in %v",
					middle, longest, slices.Max(overtaken(turns)), float64(lock.asked)/sum.Seconds(), time.Since(start))
				require.Less(t, time.Since(start), 6*loopers*cycles*hold, "fairness is not idleness")
				if sum > loopers*cycles*10*time.Second {
					require.Less(t, float64(lock.asked)/sum.Seconds(), 1.33)
				}
				return float64(longest) / float64(max(middle, 1))
			})
			require.Less(t, ratio, 10.)
		})
	}
}

// median is that of what several bubbles of time tell: each depends on chance.
func median(t *testing.T, told func(*testing.T) float64) float64 {
	t.Helper()
	var all []float64
	for range 9 {
		synctest.Test(t, func(t *testing.T) { all = append(all, told(t)) })
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func waitsOf(turns []aTurn) (waits []time.Duration, sum time.Duration) {
	for _, turn := range turns {
		waits = append(waits, turn.waited())
		sum += turn.waited()
	}
	slices.Sort(waits)
	return waits, sum
}

// Two who take turns do not keep each other waiting for long.
func TestTwoLoopersTakeTurns(t *testing.T) {
	const cycles, hold = 200, 10 * time.Millisecond
	passed := median(t, func(t *testing.T) (sum float64) {
		lock, start := &oneLock{}, time.Now()
		for _, n := range overtaken(loop(t, lock, 2, cycles, hold)) {
			sum += float64(n)
		}
		t.Logf("%.0f times overtaken in all; all in %v", sum, time.Since(start))
		return sum
	})
	require.Less(t, passed, cycles/2.)
}

// One who is alone stands back for a small part of the time.
func TestLoneLooperIsNotKeptWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cycles, hold = 1000, 10 * time.Millisecond
		lock, start := &oneLock{}, time.Now()
		loop(t, lock, 1, cycles, hold)
		require.Equal(t, cycles, lock.asked)
		require.Less(t, time.Since(start), cycles*hold*11/10)
	})
}
