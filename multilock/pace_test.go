package multilock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
)

// pacedFake is a source that is to be spared.
type pacedFake struct{ *fake }

func (pacedFake) Pace() (least, most time.Duration) { return 2 * time.Second, 5 * time.Second }

func (f pacedFake) pauses(t *testing.T, opt multilock.Options) []time.Duration {
	t.Helper()
	return pausesOf(t, f, f.fake, opt)
}

// pausesOf are those of a waiter for a lock that is held for good.
func pausesOf(t *testing.T, src multilock.Source, f *fake, opt multilock.Options) []time.Duration {
	t.Helper()
	f.on(try, fails(multilock.ErrHeld))
	held := node7(multilock.StateHeld)
	held.Next = time.Hour
	f.show(held)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	_, err := multilock.Acquire(ctx, src, "nightly", opt)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	return gaps(f.times(try))
}

func TestSourceSetsThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pauses := pacedFake{newFake()}.pauses(t, multilock.Options{})
		different := map[time.Duration]bool{}
		for _, pause := range pauses {
			require.GreaterOrEqual(t, pause, 2*time.Second)
			require.LessOrEqual(t, pause, 5*time.Second)
			different[pause] = true
		}
		require.Greater(t, len(different), 100, "jitter")
	})
}

func TestPollTakesThePlaceOfTheSourcesPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pauses := pacedFake{newFake()}.pauses(t, multilock.Options{Poll: time.Second})
		require.Greater(t, len(pauses), 600)
		for _, pause := range pauses {
			require.LessOrEqual(t, pause, time.Second)
		}
	})
}

// Whoever waits for long spares the processor and the file server: no two attempts
// are closer than half the limit then, nor farther apart than it.
func TestPausesOfALongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		pauses := pausesOf(t, f, f, multilock.Options{Poll: 4 * time.Second})
		const growing = 13 // from 2 ms to 4 s
		require.Greater(t, len(pauses), growing+100)
		for _, pause := range pauses[:growing-1] {
			require.LessOrEqual(t, pause, 4*time.Second)
		}
		different := map[time.Duration]bool{}
		for _, pause := range pauses[growing:] {
			require.Greater(t, pause, 2*time.Second)
			require.LessOrEqual(t, pause, 4*time.Second)
			different[pause] = true
		}
		require.Greater(t, len(different), 100, "jitter")
	})
}
