package multilock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
)

// crowd has so many take the lock once, all at the same time, and returns how many requests each
// turn cost, and each waiter in a second.
func crowd(t *testing.T, loopers int, hold time.Duration) (forTurn, inSecond float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		group, start := newMemory(), time.Now()
		turns := loop(t, group, loopers, 1, hold, multilock.Options{Fair: true})
		asked := float64(group.asked + group.queues["busy"].asked)
		_, sum := waitsOf(turns)
		t.Logf("%d waiters, held for %v: %.1f requests for a turn, %.2f a second and waiter, %.1f a second in all; all in %v",
			loopers, hold, asked/float64(loopers), asked/sum.Seconds(), asked/time.Since(start).Seconds(), time.Since(start))
		forTurn, inSecond = asked/float64(loopers), asked/sum.Seconds()
	})
	return forTurn, inSecond
}

// However many stand in line, a hand-over costs no more but for what grows with the logarithm of
// their number, and no herd asks at once; where turns take long, what counts is the time: a
// waiter far back asks once in some seconds.
func TestTwoHundredInLine(t *testing.T) {
	for _, hold := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond} {
		few, _ := crowd(t, 10, hold)
		many, _ := crowd(t, 200, hold)
		require.Less(t, many, 2*few)
	}
	for _, hold := range []time.Duration{time.Second, 10 * time.Second} {
		_, inSecond := crowd(t, 200, hold)
		require.Less(t, inSecond, 0.6)
	}
}
