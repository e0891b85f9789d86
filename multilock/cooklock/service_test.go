package cooklock_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cooklock"
)

// The use as a service: of hosts that retry again and again, one does the work of every period; and
// if that host dies right after it acquired the lock, and loses its memory, another host does the
// work of the next period. With a clock that only waiting advances, the bound is exact.
func TestSomebodyCooksInEveryPeriod(t *testing.T) {
	const chefs, periods = 3, 100
	synctest.Test(t, func(t *testing.T) {
		k := &kitchen{TB: t, cell: newCell(), draws: rand.New(rand.NewPCG(1, 2)), periods: periods}
		ctx, done := context.WithCancel(t.Context())
		defer done()
		var group sync.WaitGroup
		for range chefs {
			group.Go(func() { k.serve(ctx, done) })
		}
		group.Wait()
		for i := range periods - 1 {
			gap := k.starts[i+1].Sub(k.starts[i])
			require.GreaterOrEqual(t, gap, period)
			require.LessOrEqual(t, gap, bound(period))
		}
	})
}

// kitchen records the times of acquisitions.
type kitchen struct {
	testing.TB
	cell    *cell
	periods int
	mu      sync.Mutex
	draws   *rand.Rand
	starts  []time.Time
}

// serve acquires the lock again and again, and dies every other time.
func (k *kitchen) serve(ctx context.Context, done func()) {
	for src := k.cell.chef(k, cooklock.Options{}); ; {
		lock, err := multilock.Acquire(ctx, src, "nightly", multilock.Options{Poll: rarely})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			k.Error(err)
			done()
			return
		}
		_ = lock.Release(ctx)
		if k.start(done) {
			src = k.cell.chef(k, cooklock.Options{})
		}
	}
}

func (k *kitchen) start(done func()) (dies bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.starts = append(k.starts, time.Now()); len(k.starts) == k.periods {
		done()
	}
	return k.draws.IntN(2) == 0
}

// bound is the maximum time until the next acquisition, if at least one other host retries all the
// time: it looks at the latest a hundredth of a period after the swap, watches for a period, and
// retries after a pause.
func bound(period time.Duration) time.Duration { return period + period/100 + 2*rarely }

// rarely is the pause between two attempts of a waiter.
const rarely = period / 50
