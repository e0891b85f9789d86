package multilock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
)

// crowd has many processes acquire the lock once, all at the same time, and returns how many calls each
// turn cost, and each waiter per second, not counting heartbeats.
func crowd(t *testing.T, loopers int, hold time.Duration, opt multilock.Options) (forTurn, inSecond float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		group, start := newMemory(), time.Now()
		turns := loop(t, group, loopers, 1, hold, opt)
		asked := float64(group.asked)
		if opt.Fair {
			asked += float64(group.queues["busy"].asked)
		}
		idle := (time.Since(start) - time.Duration(loopers)*hold) / time.Duration(loopers)
		_, sum := waitsOf(turns)
		t.Logf("%d waiters, fair %t, held for %v: %.1f calls for a turn, %.2f a second and waiter, %.1f a second in all; idle between two turns %v",
			loopers, opt.Fair, hold, asked/float64(loopers), asked/sum.Seconds(), asked/time.Since(start).Seconds(), idle.Round(time.Millisecond))
		forTurn, inSecond = asked/float64(loopers), asked/sum.Seconds()
	})
	return forTurn, inSecond
}

// However many waiters queue, the cost of a hand-over only grows with the logarithm of their number, and
// they do not all call the source at once. Where turns take long, the time counts: a waiter far back calls
// once in some seconds.
// Rule: queue
func TestTwoHundredInLine(t *testing.T) {
	fair := multilock.Options{Fair: true}
	for _, hold := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond} {
		few, _ := crowd(t, 10, hold, fair)
		many, _ := crowd(t, 200, hold, fair)
		// Twenty times as many: 19 to 28 calls for a turn instead of 9 to 18, of which the few vary with chance.
		require.Less(t, many, 3*few)
	}
	for hold, most := range map[time.Duration]float64{time.Second: 0.45, 10 * time.Second: 0.25} {
		_, inSecond := crowd(t, 200, hold, fair)
		require.Less(t, inSecond, most)
		_, inSecond = crowd(t, 200, hold, multilock.Options{}) // for docs/nfs-evidence.md
		require.Less(t, inSecond, 1.7)
	}
}
