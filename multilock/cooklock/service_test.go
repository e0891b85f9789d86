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

// The service that the article promises: hosts that ask again and again do the work
// of every period, one of them; and if that one dies right after it got the lock,
// with its memory, the next period is another's. By a clock on which nothing else
// takes time, the bound can be seen exactly.
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

// kitchen notes when somebody got the lock.
type kitchen struct {
	testing.TB
	cell    *cell
	periods int
	mu      sync.Mutex
	draws   *rand.Rand
	starts  []time.Time
}

// serve takes the lock again and again, and dies every other time.
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

// bound is within what time the next one has the lock, if at least one other host
// asks all the time: it looks at the latest a hundredth of a period after the swap,
// watches for a period, and asks again after a pause.
func bound(period time.Duration) time.Duration { return period + period/100 + 2*rarely }

// rarely is how often a waiter asks.
const rarely = period / 50
