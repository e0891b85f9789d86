package source_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
)

// The bubble's clock is the monotonic one; boottime uses the maximum of two clocks, and the other
// one is not the bubble's.

var everySecond = source.WatchLimits{Slow: 250 * time.Millisecond, Gap: time.Second}

func TestCountsFromTheFirstSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w source.Watch[string]
		require.Zero(t, w.Unchanged())
		require.Zero(t, w.Watched())
		for range 10 {
			w.Add("one", boottime.Now(), boottime.Now(), everySecond)
			time.Sleep(time.Second)
		}
		w.Add("one", boottime.Now(), boottime.Now(), everySecond)
		require.Equal(t, "one", w.Last())
		require.GreaterOrEqual(t, w.Unchanged(), 10*time.Second)
		require.GreaterOrEqual(t, w.Watched(), 10*time.Second)
	})
}

func TestASignBeginsItAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w source.Watch[string]
		w.Add("one", boottime.Now(), boottime.Now(), everySecond)
		time.Sleep(time.Second)
		w.Add("one", boottime.Now(), boottime.Now(), everySecond)
		require.False(t, w.Shown())
		w.Add("two", boottime.Now(), boottime.Now(), everySecond)
		require.True(t, w.Shown())
		require.Less(t, w.Unchanged(), time.Second)
		require.Less(t, w.Watched(), time.Second)
		require.Equal(t, "two", w.Last())
	})
}

func TestTroubleBeginsTheSteadyPartAnew(t *testing.T) {
	trouble := map[string]func(w *source.Watch[string]) (start boottime.Instant){
		"a sample that failed": func(w *source.Watch[string]) boottime.Instant {
			w.Interrupt()
			require.Zero(t, w.Watched())
			return boottime.Now()
		},
		"a gap": func(*source.Watch[string]) boottime.Instant {
			time.Sleep(2 * time.Second)
			return boottime.Now()
		},
		"a slow sample": func(*source.Watch[string]) boottime.Instant {
			start := boottime.Now()
			time.Sleep(500 * time.Millisecond)
			return start
		},
	}
	for name, happens := range trouble {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w source.Watch[string]
				w.Add("one", boottime.Now(), boottime.Now(), everySecond)
				time.Sleep(500 * time.Millisecond)
				w.Add("one", happens(&w), boottime.Now(), everySecond)
				require.Less(t, w.Watched(), 100*time.Millisecond)
				require.GreaterOrEqual(t, w.Unchanged(), 500*time.Millisecond, "that there was no sign is known all the same")
			})
		})
	}
}

func TestSlowSamplesCountWhereTimeHasNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w source.Watch[string]
		w.Add("one", boottime.Now(), boottime.Now(), source.WatchLimits{Gap: time.Second})
		start := boottime.Now()
		time.Sleep(time.Second)
		w.Add("one", start, boottime.Now(), source.WatchLimits{Gap: time.Second})
		w.Add("one", boottime.Now(), boottime.Now(), source.WatchLimits{Gap: time.Second})
		require.GreaterOrEqual(t, w.Watched(), time.Second)
	})
}

// The time after the last sample does not count as watched. A sample counts from the start of its
// request, and not from the reply.
func TestCountsUpToTheLastSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w source.Watch[string]
		w.Add("one", boottime.Now(), boottime.Now(), everySecond)
		time.Sleep(time.Second)
		start := boottime.Now()
		time.Sleep(100 * time.Millisecond)
		w.Add("one", start, boottime.Now(), everySecond)
		time.Sleep(time.Hour)
		require.Less(t, w.Unchanged(), 1050*time.Millisecond)
		require.Less(t, w.Watched(), 1050*time.Millisecond)
		require.GreaterOrEqual(t, w.Stale(boottime.Now()), time.Hour+100*time.Millisecond)
		w.Interrupt()
		require.GreaterOrEqual(t, w.Unchanged(), time.Second, "a sample that failed takes nothing back")
		require.Less(t, w.Unchanged(), 1050*time.Millisecond)
	})
}

// A sample after a failed one starts a new watch.
func TestWatchesOnAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w source.Watch[string]
		w.Add("one", boottime.Now(), boottime.Now(), everySecond)
		w.Interrupt()
		for range 3 {
			w.Add("one", boottime.Now(), boottime.Now(), everySecond)
			time.Sleep(time.Second / 2)
		}
		require.GreaterOrEqual(t, w.Watched(), time.Second)
	})
}

// The zero value of the sign is a sign like any other. Before the first sample nothing is known,
// and nothing is stale.
func TestZeroSign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w source.Watch[int]
		require.Zero(t, w.Stale(boottime.Now()))
		w.Add(0, boottime.Now(), boottime.Now(), everySecond)
		time.Sleep(time.Second / 2)
		w.Add(0, boottime.Now(), boottime.Now(), everySecond)
		require.GreaterOrEqual(t, w.Unchanged(), time.Second/2)
	})
}
