package multilock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
)

// pacedFake is a source that is to be spared.
type pacedFake struct {
	*fake
	least, most time.Duration
}

func (f pacedFake) Pace() (least, most time.Duration) { return f.least, f.most }

// pausesOf are those of a waiter for a lock that is held for good.
func pausesOf(t *testing.T, src multilock.Source, f *fake, opt multilock.Options) []time.Duration {
	t.Helper()
	f.on(try, fails(multilock.ErrHeld))
	f.show(heldFor(time.Hour))
	_ = waitFor(t, src, 10*time.Minute, opt)
	return gaps(f.times(try))
}

func TestPaceOfAWaiter(t *testing.T) {
	for name, c := range map[string]struct {
		source      func(*fake) multilock.Source
		poll        time.Duration
		least, most time.Duration
		pauses      int // at least
	}{
		"by default":   {func(f *fake) multilock.Source { return f }, 0, 0, multilock.DefaultPoll, 601},
		"the source's": {slow(5 * time.Second), 0, 2 * time.Second, 5 * time.Second, 120},
		"always one":   {slow(2 * time.Second), 0, 2 * time.Second, 2 * time.Second, 299},
		"the caller's": {slow(5 * time.Second), time.Second, 0, time.Second, 601},
	} {
		runBubble(t, name, func(t *testing.T, f *fake) {
			pauses := pausesOf(t, c.source(f), f, multilock.Options{Poll: c.poll})
			require.GreaterOrEqual(t, len(pauses), c.pauses)
			different := map[time.Duration]bool{}
			for _, pause := range pauses {
				require.GreaterOrEqual(t, pause, c.least)
				require.LessOrEqual(t, pause, c.most)
				different[pause] = true
			}
			require.Equal(t, c.least < c.most, len(different) > 100, "jitter")
		})
	}
}

// slow makes a source that wants pauses of two seconds at least.
func slow(most time.Duration) func(*fake) multilock.Source {
	return func(f *fake) multilock.Source { return pacedFake{f, 2 * time.Second, most} }
}

// Whoever waits for long spares the processor and the file server: no two attempts
// are closer than half the limit then, nor farther apart than it.
func TestPausesOfALongWait(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		pauses := pausesOf(t, f, f, multilock.Options{Poll: 4 * time.Second})
		const growing = 13 // from 2 ms to 4 s
		require.Greater(t, len(pauses), growing+100)
		var sum time.Duration
		for _, pause := range pauses[:growing-1] {
			require.LessOrEqual(t, pause, 4*time.Second)
			sum += pause
		}
		require.Less(t, sum, 8*time.Second, "full jitter") // of 8.094 s
		different := map[time.Duration]bool{}
		for _, pause := range pauses[growing:] {
			require.Greater(t, pause, 2*time.Second)
			require.LessOrEqual(t, pause, 4*time.Second)
			different[pause] = true
		}
		require.Greater(t, len(different), 100, "jitter")
	})
}
