package multilock_test

import (
	"context"
	"maps"
	"slices"
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

// memory is a group of exclusive locks in memory, without notifications.
type memory struct {
	mu     sync.Mutex
	held   map[string]time.Time // since when
	taken  int                  // how often
	asked  int                  // attempts, inspections and listings
	queues map[string]*memory
}

func newMemory() *memory { return &memory{held: map[string]time.Time{}, queues: map[string]*memory{}} }

// member is one user of the group, like a separate process, with its own record of its turns.
type member struct {
	*memory
	turns source.Turns
}

func (m *member) Turns() *source.Turns { return &m.turns }

func (m *memory) Contend(_ context.Context, name string, _ source.Claim, _ multilock.StalePolicy) (source.Contender, error) {
	return &attempt{m, name}, nil
}

func (m *memory) Observe(_ context.Context, name string, _ multilock.StalePolicy) (source.Observer, error) {
	return &attempt{m, name}, nil
}

func (m *memory) Names(context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	return slices.Collect(maps.Keys(m.held)), nil
}

func (m *memory) Queue(name string) (source.Queue, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.queues[name] == nil {
		m.queues[name] = newMemory()
	}
	return m.queues[name], nil
}

func (m *memory) Empty(context.Context) (bool, error)   { return false, nil }
func (m *memory) Wake() (<-chan struct{}, func())       { return nil, func() {} }
func (m *memory) Left(string) (<-chan struct{}, func()) { return nil, func() {} }
func (m *memory) Tidy(context.Context, string) error    { return nil }
func (m *memory) Close() error                          { return nil }

type attempt struct {
	of   *memory
	name string
}

func (a *attempt) Try(context.Context) (source.Lease, error) {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.of.asked++
	if _, held := a.of.held[a.name]; held {
		return nil, multilock.ErrHeld
	}
	a.of.held[a.name] = time.Now()
	a.of.taken++
	return &turnLease{*a, boottime.Now()}, nil
}

func (a *attempt) Look(context.Context) (multilock.Observation, error) {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.of.asked++
	since, held := a.of.held[a.name]
	if !held {
		return multilock.Observation{State: multilock.StateFree}, nil
	}
	return multilock.Observation{State: multilock.StateHeld, Age: time.Since(since), Next: 5 * time.Second}, nil
}

func (a *attempt) Wake() <-chan struct{}       { return nil }
func (a *attempt) Break(context.Context) error { return multilock.ErrHeld }
func (a *attempt) Force(context.Context) error { return multilock.ErrHeld }
func (a *attempt) Close() error                { return nil }

type turnLease struct {
	attempt
	since boottime.Instant
}

func (l *turnLease) Record() source.Record       { return source.Record{Token: "mine"} }
func (l *turnLease) Since() boottime.Instant     { return l.since }
func (l *turnLease) Renew(context.Context) error { return nil }
func (l *turnLease) Fence(context.Context) (uint64, error) {
	return 0, multilock.ErrUnsupported
}
func (l *turnLease) MarkJob(context.Context, ...process.Group) error { return multilock.ErrUnsupported }

func (l *turnLease) Release(context.Context) error {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	delete(l.of.held, l.name)
	return nil
}

// aTurn is one wait for the lock.
type aTurn struct{ came, got time.Time }

func (w aTurn) waited() time.Duration { return w.got.Sub(w.came) }

// loop has many processes acquire the lock repeatedly, and hold it for a while each time.
func loop(t *testing.T, group *memory, loopers, cycles int, hold time.Duration, opt multilock.Options) (turns []aTurn) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	opt.TTL = ttl
	for range loopers {
		src := &member{memory: group}
		all.Go(func() {
			for range cycles {
				turn := aTurn{came: time.Now()}
				held, err := multilock.Acquire(t.Context(), src, "busy", opt)
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
	all.Wait()
	return turns
}

// overtaken is how often each waiter was overtaken by one that came later.
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

// Thirty loopers, ten turns each, without notifications: no waiter waits for many times as long as most do,
// and none calls more often than a waiter that is alone.
// Rule: stand-back
func TestManyLoopersTakeTurns(t *testing.T) {
	const loopers, cycles = 30, 10
	for _, hold := range []time.Duration{30 * time.Millisecond, 300 * time.Millisecond, 3 * time.Second} {
		t.Run(hold.String(), func(t *testing.T) {
			ratio := median(t, func(t *testing.T) float64 {
				group, start := newMemory(), time.Now()
				turns := loop(t, group, loopers, cycles, hold, multilock.Options{})
				waits, sum := waitsOf(turns)
				middle, longest := waits[len(waits)/2], waits[len(waits)-1]
				t.Logf("median %v, longest %v; at most %d times overtaken; %.2f requests a second and waiter; all in %v",
					middle, longest, slices.Max(overtaken(turns)), float64(group.asked)/sum.Seconds(), time.Since(start))
				require.Less(t, time.Since(start), 6*loopers*cycles*hold, "fairness is not idleness")
				if sum > loopers*cycles*10*time.Second {
					require.Less(t, float64(group.asked)/sum.Seconds(), 1.33)
				}
				return float64(longest) / float64(max(middle, 1))
			})
			require.Less(t, ratio, 10.)
		})
	}
}

// median is the median over several bubbles, because each depends on chance.
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

// Two loopers that alternate do not delay each other for long.
// Rule: stand-back
func TestTwoLoopersTakeTurns(t *testing.T) {
	const cycles, hold = 200, 10 * time.Millisecond
	passed := median(t, func(t *testing.T) (sum float64) {
		group, start := newMemory(), time.Now()
		for _, n := range overtaken(loop(t, group, 2, cycles, hold, multilock.Options{})) {
			sum += float64(n)
		}
		t.Logf("%.0f times overtaken in all; all in %v", sum, time.Since(start))
		return sum
	})
	require.Less(t, passed, cycles/2.)
}

// A single looper backs off for a small part of the time.
// Rule: stand-back
func TestLoneLooperIsNotKeptWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cycles, hold = 1000, 10 * time.Millisecond
		group, start := newMemory(), time.Now()
		loop(t, group, 1, cycles, hold, multilock.Options{})
		require.Equal(t, cycles, group.asked)
		require.Less(t, time.Since(start), cycles*hold*11/10)
	})
}

// A waiter in the queue is never overtaken by one that came later; the queue does not stall for long, and
// makes fewer calls than waiters without a queue.
// Rule: queue
func TestTheFairComeInTheirOrder(t *testing.T) {
	const loopers, cycles = 30, 10
	for _, hold := range []time.Duration{30 * time.Millisecond, 300 * time.Millisecond, 3 * time.Second} {
		t.Run(hold.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				group, start := newMemory(), time.Now()
				turns := loop(t, group, loopers, cycles, hold, multilock.Options{Fair: true})
				waits, sum := waitsOf(turns)
				asked := group.asked + group.queues["busy"].asked
				middle, longest := waits[len(waits)/2], waits[len(waits)-1]
				t.Logf("median %v, longest %v; at most %d times overtaken; %.2f requests a second and waiter, %d for a turn; all in %v",
					middle, longest, slices.Max(overtaken(turns)), float64(asked)/sum.Seconds(), asked/len(turns), time.Since(start))
				require.Zero(t, slices.Max(overtaken(turns)))
				require.Less(t, longest, 3*middle)
				require.Less(t, time.Since(start), 2*loopers*cycles*hold)
			})
		})
	}
}
