package mongolock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The bubble's clock is the monotonic one; boottime takes the larger of two, and the
// other does not move with it.

func TestWatchCountsFromTheFirstSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w watch
		for range 10 {
			w.add(sign{"t", 1}, time.Second)
			time.Sleep(time.Second)
		}
		require.GreaterOrEqual(t, w.unchanged(), 10*time.Second)
		require.GreaterOrEqual(t, w.watched(), 10*time.Second)
		w.add(sign{"t", 2}, time.Second)
		require.Less(t, w.unchanged(), time.Second, "a sign of life begins it anew")
		time.Sleep(time.Second)
		w.add(sign{"u", 2}, time.Second)
		require.Less(t, w.unchanged(), time.Second, "another holder, too")
	})
}

func TestWatchAfterAFailureOrAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w watch
		w.add(sign{"t", 1}, time.Second)
		time.Sleep(time.Second)
		w.interrupt()
		require.Zero(t, w.watched())
		w.add(sign{"t", 1}, time.Second)
		require.Less(t, w.watched(), time.Second)
		require.GreaterOrEqual(t, w.unchanged(), time.Second, "that there was no sign is known all the same")
		time.Sleep(5 * time.Second)
		w.add(sign{"t", 1}, time.Second)
		require.Less(t, w.watched(), time.Second)
		require.GreaterOrEqual(t, w.unchanged(), 6*time.Second)
	})
}
