package multilock_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
)

// heldFor is a held lock whose next inspection is due after next.
func heldFor(next time.Duration) multilock.Observation {
	held := node7(multilock.StateHeld)
	held.Next = next
	return held
}

// waitFor waits for a held lock, for that long.
func waitFor(t *testing.T, src multilock.Source, d time.Duration, opt multilock.Options) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	_, err := multilock.Acquire(ctx, src, "nightly", opt)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	return err
}

// A lock that changes hands quickly is not inspected: attempts are cheap, inspections are not.
// Rule: none (waiting)
func TestWaiterLooksWhenALookIsDue(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(try, fails(multilock.ErrHeld))
		f.show(heldFor(10 * time.Second))
		start := time.Now()
		_ = waitFor(t, f, time.Minute, multilock.Options{Poll: 20 * time.Millisecond})
		looks := f.times(look)
		require.GreaterOrEqual(t, looks[0].Sub(start), 40*time.Millisecond)
		require.LessOrEqual(t, looks[0].Sub(start), 100*time.Millisecond)
		require.Len(t, looks, 6)
		for _, gap := range gaps(looks) {
			require.GreaterOrEqual(t, gap, 10*time.Second)
			require.LessOrEqual(t, gap, 10*time.Second+20*time.Millisecond)
		}
	})
}

// At the end of the wait, the reported age is that of now, however old the last inspection is.
// Rule: none (messages)
func TestEndOfTheWaitTellsTheAgeByThen(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(try, fails(multilock.ErrHeld))
		held := heldFor(time.Hour)
		held.Age = time.Minute
		f.show(held)
		var last *multilock.HeldError
		require.ErrorAs(t, waitFor(t, f, 10*time.Second, multilock.Options{}), &last)
		require.Equal(t, 70*time.Second, last.Observation.Age.Round(time.Second))
	})
}

// On a slow source a waiter inspects the holder at once, because the next attempt is far away.
// Rule: none (waiting)
func TestWaiterOfASlowSourceLooksAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(try, fails(multilock.ErrHeld))
		f.show(heldFor(time.Hour))
		start := time.Now()
		_ = waitFor(t, slow(5*time.Second)(f), time.Second, multilock.Options{})
		require.Equal(t, []time.Time{start}, f.times(look))
	})
}

// A wake-up is for all waiters: those that did not acquire the lock restart with short pauses, because it
// may soon be free.
// Rule: none (waiting)
func TestWakeUpMakesPausesShortAgain(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.wake = make(chan struct{}, 1)
		f.on(try, fails(multilock.ErrHeld))
		f.show(heldFor(time.Hour))
		result := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := multilock.Acquire(ctx, f, "nightly", multilock.Options{Poll: time.Minute})
			result <- err
		}()
		time.Sleep(time.Hour)
		before := f.count(try)
		f.wake <- struct{}{}
		time.Sleep(time.Second)
		require.Greater(t, f.count(try), before+3)
		cancel()
		require.ErrorIs(t, <-result, context.Canceled)
	})
}

// A call that does not wait only pauses if the lock seems to be free, and only briefly, whatever Poll is.
// Rule: none (waiting)
func TestElusiveLockIsSoonGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(try, fails(multilock.ErrHeld))
		start := time.Now()
		_, err := multilock.TryAcquire(t.Context(), f, "nightly", multilock.Options{Poll: time.Hour})
		require.ErrorIs(t, err, multilock.ErrHeld)
		require.ErrorContains(t, err, "changes hands")
		require.Less(t, time.Since(start), time.Second)
		require.Equal(t, 50, f.count(look))
		first := gaps(f.times(try))
		require.Zero(t, first[0]+first[1])
		require.NotZero(t, first[2], "it does not spin")
	})
}

// Only consecutive inspections that contradict the attempts are counted.
// Rule: none (waiting)
func TestLockThatIsSeenInBetweenIsNotElusive(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(try, fails(multilock.ErrHeld))
		suspect := node7(multilock.StateSuspect)
		var turns []multilock.Observation
		for range 30 {
			turns = append(turns, multilock.Observation{State: multilock.StateFree}, multilock.Observation{State: multilock.StateFree}, suspect)
		}
		f.on(look, f.showing(append(turns, node7(multilock.StateHeld))...))
		_, err := multilock.TryAcquire(t.Context(), f, "nightly", multilock.Options{})
		var held *multilock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, "node7", held.Observation.Record.Holder.Host)
		require.Equal(t, 91, f.count(look))
		require.Zero(t, f.count(breaks))
	})
}

// If the holder resumes before it is broken, the acquisition continues: the holder is inspected again, at
// once, and named in the error.
// Rule: I2
func TestHolderThatComesBackToLifeIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(try, fails(multilock.ErrHeld))
		f.on(look, f.showing(node7(multilock.StateDead), node7(multilock.StateHeld)))
		f.on(breaks, fails(multilock.ErrHeld))
		start := time.Now()
		_, err := multilock.TryAcquire(t.Context(), f, "nightly", multilock.Options{})
		var held *multilock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, multilock.StateHeld, held.Observation.State)
		require.Equal(t, []step{contend, try, look, breaks, try, look, closes}, f.steps())
		require.Zero(t, time.Since(start))
	})
}

// If the context ends between an attempt and an inspection, the source is not called.
// Rule: none (waiting)
func TestEndBetweenAnAttemptAndALook(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithCancel(t.Context())
		f.on(try, func(context.Context) error {
			cancel()
			return multilock.ErrHeld
		})
		_, err := multilock.TryAcquire(ctx, f, "nightly", multilock.Options{})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []step{contend, try, closes}, f.steps())
	})
}

// Rule: record
func TestClaimSaysWhatItIsFor(t *testing.T) {
	for job, terms := range map[bool]multilock.Terms{false: multilock.Options{}, true: multilock.ForJob{}} {
		bubble(t, func(t *testing.T, f *fake) {
			lock := acquire(t, f, terms)
			require.Equal(t, job, f.claim.Job)
			require.Equal(t, filepath.Base(os.Args[0]), f.claim.Holder.Command)
			require.NoError(t, lock.Release(t.Context()))
		})
	}
}

// Calls to a source that contradicts itself are limited all the same, and more so to a slow one.
// Rule: none (waiting)
func TestElusiveLockOfAWaiter(t *testing.T) {
	for most, paced := range map[int]func(*fake) multilock.Source{
		1000: func(f *fake) multilock.Source { return f },
		33:   slow(2 * time.Second),
	} {
		bubble(t, func(t *testing.T, f *fake) {
			f.on(try, fails(multilock.ErrHeld))
			require.NotErrorIs(t, waitFor(t, paced(f), time.Minute, multilock.Options{}), multilock.ErrHeld)
			require.LessOrEqual(t, f.count(try), most)
		})
	}
}

// An inspection that is due shortens a long pause.
// Rule: none (waiting)
func TestLookComesBeforeTheEndOfALongPause(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(try, fails(multilock.ErrHeld))
		f.show(heldFor(5 * time.Second))
		_ = waitFor(t, f, time.Hour, multilock.Options{Poll: 10 * time.Minute})
		for _, gap := range gaps(f.times(look)) {
			require.LessOrEqual(t, gap, 6*time.Second)
		}
		require.Greater(t, f.count(look), 500)
	})
}

// If the wait ends at the same time, a failure is still not blamed on the holder.
// Rule: I4
func TestFailureAtTheEndOfTheWaitNamesNoHolder(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithCancel(t.Context())
		f.on(try, inTurn(fails(multilock.ErrHeld), fails(multilock.ErrHeld), func(context.Context) error {
			cancel()
			return errServer
		}))
		f.on(look, f.showing(node7(multilock.StateSuspect)))
		_, err := multilock.TryAcquire(ctx, f, "nightly", multilock.Options{})
		require.ErrorIs(t, err, errServer)
		require.NotErrorIs(t, err, multilock.ErrHeld)
	})
}

// A contender that comes late and then fails leaves nothing to close.
// Rule: none (time limits)
func TestSourceThatHangsAndThenFails(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		until := make(chan struct{})
		f.on(contend, hangs(until, errServer))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := multilock.TryAcquire(ctx, f, "nightly", multilock.Options{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		close(until)
		synctest.Wait()
		require.Zero(t, f.count(closes))
	})
}

// pacedFake is a source with a pace.
type pacedFake struct {
	*fake
	least, most time.Duration
}

func (f pacedFake) Pace() (least, most time.Duration) { return f.least, f.most }

// pausesOf returns a waiter's pauses for a lock that stays held.
func pausesOf(t *testing.T, src multilock.Source, f *fake, opt multilock.Options) []time.Duration {
	t.Helper()
	f.on(try, fails(multilock.ErrHeld))
	f.show(heldFor(time.Hour))
	_ = waitFor(t, src, 10*time.Minute, opt)
	return gaps(f.times(try))
}

// Rule: none (waiting)
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

// slow makes a source that wants pauses of at least two seconds.
func slow(most time.Duration) func(*fake) multilock.Source {
	return func(f *fake) multilock.Source { return pacedFake{f, 2 * time.Second, most} }
}

// A long wait limits the load on the processor and the file server: consecutive attempts are then at least
// half of the limit apart, and at most the limit.
// Rule: none (waiting)
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
