package multilock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Rule: none (waiting)
func TestAcquireTakesAFreeLock(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock, err := multilock.Acquire(t.Context(), f, "nightly", multilock.Options{})
		require.NoError(t, err)
		require.NoError(t, lock.Release(t.Context()))
		require.Equal(t, []step{contend, try, closes, release}, f.steps())
	})
}

// Rule: I4
func TestTryAcquireNamesTheHolderAndDoesNotWait(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(try, fails(multilock.ErrHeld))
		f.show(node7(multilock.StateHeld))
		start := time.Now()
		_, err := multilock.TryAcquire(t.Context(), f, "nightly", multilock.Options{})
		require.Zero(t, time.Since(start))
		require.ErrorIs(t, err, multilock.ErrHeld)
		var held *multilock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, "nightly", held.Name)
		require.Equal(t, "node7", held.Observation.Record.Holder.Host)
		require.Equal(t, []step{contend, try, look, closes}, f.steps())
	})
}

// TryOnce does not inspect the holder, because its caller has other locks to try.
// Rule: none (waiting)
func TestTryOnceDoesNotLook(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(try, inTurn(fails(multilock.ErrHeld), succeeds))
		f.show(node7(multilock.StateDead))
		start := time.Now()
		_, err := multilock.TryOnce(t.Context(), f, "nightly", multilock.Options{})
		require.ErrorIs(t, err, multilock.ErrHeld)
		require.Zero(t, time.Since(start))
		require.Equal(t, []step{contend, try, closes}, f.steps())

		lock, err := multilock.TryOnce(t.Context(), f, "nightly", multilock.Options{})
		require.NoError(t, err)
		require.NoError(t, lock.Release(t.Context()))
	})
}

// Rule: silence
func TestTryAcquireSeesASuspectThrough(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(try, fails(multilock.ErrHeld))
		suspect := node7(multilock.StateSuspect)
		f.on(look, f.showing(suspect, suspect, suspect, node7(multilock.StateDead)))
		f.on(breaks, func(context.Context) error {
			f.on(try, succeeds)
			return nil
		})
		start := time.Now()
		lock := acquire(t, f, multilock.Options{Poll: time.Hour})
		require.Equal(t, 3*suspect.Next, time.Since(start), "it looks when the source says so")
		require.Equal(t, 1, f.count(breaks))
		require.NoError(t, lock.Release(t.Context()))
	})
}

// A waiter that is notified of a holder's missing heartbeats inspects at once, not at its next inspection.
// Rule: none (waiting)
func TestNewsOfSilenceAreLookedInto(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.wake = make(chan struct{}, 1)
		f.on(try, fails(multilock.ErrHeld))
		f.show(multilock.Observation{State: multilock.StateHeld, Next: time.Hour})
		const ends = 10 * time.Second
		go func() {
			time.Sleep(ends)
			f.show(multilock.Observation{State: multilock.StateDead})
			f.on(try, inTurn(fails(source.ErrSilent), succeeds))
			f.wake <- struct{}{}
		}()
		start := time.Now()
		lock, err := multilock.Acquire(t.Context(), f, "nightly", multilock.Options{Poll: time.Hour})
		require.NoError(t, err)
		require.NoError(t, lock.Release(t.Context()))
		require.Less(t, time.Since(start), ends+time.Second, "by the bubble's clock")
		require.Equal(t, 1, f.count(breaks))
	})
}

// Rule: none (waiting)
func TestWakeUpCutsThePauseShort(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.wake = make(chan struct{}, 1)
		f.on(try, fails(multilock.ErrHeld))
		held := node7(multilock.StateHeld)
		held.Next = 24 * time.Hour
		f.show(held)
		const when = 10 * time.Hour
		time.AfterFunc(when, func() {
			f.on(try, succeeds)
			f.wake <- struct{}{}
		})
		start := time.Now()
		lock, err := multilock.Acquire(t.Context(), f, "nightly", multilock.Options{TTL: ttl, Poll: 1000 * time.Hour})
		require.NoError(t, err)
		require.Equal(t, when, time.Since(start))
		require.Equal(t, []step{contend, try, wake, try}, f.steps()[:4], "it might have been released before the channel was there")
		require.Zero(t, gaps(f.times(try))[0])
		require.Equal(t, 1, f.count(contend), "a waiter keeps what it has prepared")
		require.NoError(t, lock.Release(t.Context()))
	})
}

// Rule: I4
func TestEndOfTheWaitNamesTheHolder(t *testing.T) {
	for name, then := range map[string]func(<-chan struct{}) action{
		"waiting":       func(<-chan struct{}) action { return fails(multilock.ErrHeld) },
		"in an attempt": func(until <-chan struct{}) action { return hangs(until, multilock.ErrHeld) },
	} {
		runBubble(t, name, func(t *testing.T, f *fake) {
			until := make(chan struct{})
			f.on(try, fails(multilock.ErrHeld))
			f.show(node7(multilock.StateHeld))
			time.AfterFunc(time.Minute, func() { f.on(try, then(until)) })
			tooLate := errors.New("the night is over")
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, tooLate)
			defer cancel()
			_, err := multilock.Acquire(ctx, f, "nightly", multilock.Options{})
			require.ErrorIs(t, err, tooLate)
			require.ErrorAs(t, err, new(*multilock.HeldError))
			require.ErrorContains(t, err, "node7 pid 4711 by ada: rsync")
			close(until)
			synctest.Wait()
			require.Equal(t, 1, f.count(closes))
		})
	}
}

// The end of the wait must not depend on the source, which may hang in any call.
// Rule: none (time limits)
func TestEndOfTheWaitWhileTheSourceHangs(t *testing.T) {
	for _, where := range []step{contend, try, look, breaks} {
		runBubble(t, string(where), func(t *testing.T, f *fake) {
			until := make(chan struct{})
			f.on(try, fails(multilock.ErrHeld))
			f.show(node7(multilock.StateDead))
			f.on(where, hangs(until, nil))
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Minute, cancel)
			start := time.Now()
			_, err := multilock.Acquire(ctx, f, "nightly", multilock.Options{})
			require.ErrorIs(t, err, context.Canceled)
			require.Contains(t, err.Error(), "did not answer")
			require.Equal(t, time.Minute+time.Second, time.Since(start), "it is given a second to come back")

			require.Zero(t, f.count(closes), "a contender is for one goroutine, and one is in it")
			close(until)
			synctest.Wait()
			require.Equal(t, 1, f.count(closes))
			require.Equal(t, f.count(release) == 1, where == try, "a late success is given back")
		})
	}
}

// If an attempt returns just after the wait has ended, no work is left to goroutines, which end with a
// process that exits.
// Rule: none (time limits)
func TestEndOfTheWaitDuringAnAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		until := make(chan struct{})
		f.on(try, hangs(until, multilock.ErrHeld))
		f.show(node7(multilock.StateHeld))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		time.AfterFunc(time.Minute+time.Second/2, func() { close(until) })
		start := time.Now()
		_, err := multilock.Acquire(ctx, f, "nightly", multilock.Options{})
		require.ErrorIs(t, err, context.Canceled)
		require.NotContains(t, err.Error(), "did not answer")
		require.Equal(t, time.Minute+time.Second/2, time.Since(start))
		require.Equal(t, 1, f.count(closes))
	})
}

// Rule: none (time limits)
func TestEndedContextAsksForNothing(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := multilock.Acquire(ctx, f, "nightly", multilock.Options{})
		require.ErrorIs(t, err, context.Canceled)
		synctest.Wait()
		require.Zero(t, f.count(try))
		require.Equal(t, f.count(contend), f.count(closes))
	})
}

// An error of Close after the acquisition must not leave a lock without a holder.
// Rule: I4
func TestAcquiredLockOutranksAnErrorOfClose(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(closes, fails(errServer))
		lock, err := multilock.Acquire(t.Context(), f, "nightly", multilock.Options{})
		require.NoError(t, err)
		require.NoError(t, lock.Release(t.Context()))
	})
}

// errPasses is the error of a source for a full disk.
var errPasses = fmt.Errorf("no space: %w", multilock.ErrPassing)

// A waiter retries after a transient error at each step.
// Rule: none (waiting)
func TestWaiterWaitsForWhatPasses(t *testing.T) {
	for _, failing := range []step{contend, try, look, breaks} {
		runBubble(t, string(failing), func(t *testing.T, f *fake) {
			f.on(try, fails(multilock.ErrHeld))
			f.show(node7(multilock.StateDead))
			frees := func(context.Context) error {
				f.on(try, succeeds)
				return nil
			}
			f.on(breaks, frees)
			next := map[step]action{try: fails(multilock.ErrHeld), breaks: frees}[failing]
			if next == nil {
				next = succeeds
			}
			f.on(failing, inTurn(fails(errPasses), fails(errPasses), next))
			var told []error
			lock, err := multilock.Acquire(t.Context(), f, "nightly", multilock.Options{Trouble: func(err error) { told = append(told, err) }})
			require.NoError(t, err)
			require.Len(t, told, 2)
			require.ErrorIs(t, told[0], errPasses)
			require.NoError(t, lock.Release(t.Context()))
		})
	}
}

// Without a wait any error ends the attempt at once. For a waiter, an error that is not transient does so,
// and one of an attempt that may have acquired the lock.
// Rule: I4
func TestErrorsThatEndAContest(t *testing.T) {
	for name, c := range map[string]struct {
		acquire func(context.Context, multilock.Source, string, multilock.Terms) (*multilock.Lock, error)
		failing step
		err     error
	}{
		"no waiter":        {multilock.TryAcquire, try, errPasses},
		"blindly":          {multilock.TryOnce, try, errPasses},
		"not prepared":     {multilock.Acquire, contend, errServer},
		"does not pass":    {multilock.Acquire, try, errServer},
		"in doubt":         {multilock.Acquire, try, errors.Join(multilock.ErrUnsure, errPasses)},
		"not looked at":    {multilock.Acquire, look, errServer},
		"cannot be broken": {multilock.Acquire, breaks, errServer},
	} {
		runBubble(t, name, func(t *testing.T, f *fake) {
			f.on(try, fails(multilock.ErrHeld))
			f.show(node7(multilock.StateDead))
			f.on(c.failing, fails(c.err))
			_, err := c.acquire(t.Context(), f, "nightly", multilock.Options{})
			require.ErrorIs(t, err, c.err)
			require.NotErrorIs(t, err, multilock.ErrHeld)
			require.Equal(t, 1, f.count(c.failing))
			require.Equal(t, c.failing != contend, f.count(closes) == 1)
		})
	}
}

// At the end of the wait the last error is reported.
// Rule: none (messages)
func TestWaitThatEndsInTrouble(t *testing.T) {
	for _, failing := range []step{contend, try} {
		runBubble(t, string(failing), func(t *testing.T, f *fake) {
			f.on(failing, fails(errPasses))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := multilock.Acquire(ctx, f, "nightly", multilock.Options{})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, errPasses)
			require.NotErrorIs(t, err, multilock.ErrHeld)
			require.Less(t, f.count(failing), 200, "it pauses")
		})
	}
}

// An error is reported until a later step shows that it is over.
// Rule: none (messages)
func TestOnlyTroubleThatLastsIsTold(t *testing.T) {
	for name, lasts := range map[string]bool{"lasts": true, "has passed": false} {
		runBubble(t, name, func(t *testing.T, f *fake) {
			until := make(chan struct{})
			f.on(try, fails(multilock.ErrHeld))
			f.show(node7(multilock.StateHeld))
			then := action(succeeds)
			if lasts {
				then = hangs(until, nil)
			}
			f.on(look, inTurn(fails(errPasses), then))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := multilock.Acquire(ctx, f, "nightly", multilock.Options{})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, lasts, errors.Is(err, errPasses))
			require.Equal(t, !lasts, errors.Is(err, multilock.ErrHeld))
			close(until)
		})
	}
}

// A failed inspection is repeated after a pause, even if one is due at once.
// Rule: none (waiting)
func TestTroubleWithASuspect(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(try, fails(multilock.ErrHeld))
		f.show(node7(multilock.StateSuspect))
		f.on(look, inTurn(succeeds, fails(errPasses)))
		_ = waitFor(t, f, time.Minute, multilock.Options{})
		require.Less(t, f.count(look), 200)
	})
}

// frozen is an attempt that outlasts most of the validity of a TTL of 100 s: 80 s.
func frozen(context.Context) error {
	time.Sleep(75 * time.Second)
	return nil
}

// A contender that was frozen during the acquisition releases the lock and continues: the lock's validity
// is over, or almost, before the work begins.
// Rule: arrival, validity
func TestLockThatIsTooOldWhenItIsTaken(t *testing.T) {
	opt := multilock.Options{TTL: 100 * time.Second}
	for name, c := range map[string]struct {
		acquire func(context.Context, multilock.Source, string, multilock.Terms) (*multilock.Lock, error)
		frozen  int // attempts
		given   int // of the locks that those attempts acquired
	}{
		"waits":              {multilock.Acquire, 5, 5},
		"tries":              {multilock.TryAcquire, 2, 2},
		"tries in vain":      {multilock.TryAcquire, 3, 2},
		"has others to try":  {multilock.TryOnce, 1, 0},
		"of a time that was": {acquireTimed, 1, 0},
	} {
		runBubble(t, name, func(t *testing.T, f *fake) {
			f.on(try, inTurn(append(slices.Repeat([]action{frozen}, c.frozen), succeeds)...))
			lock, err := c.acquire(t.Context(), f, "nightly", opt)
			require.NoError(t, err)
			require.NoError(t, context.Cause(lock.Context()))
			require.Equal(t, c.given == c.frozen, lock.Remaining() > 70*time.Second)
			require.Equal(t, c.given, f.count(release))
			require.Equal(t, c.given, f.count(detach))
			for _, gap := range gaps(f.times(try)) {
				require.Equal(t, name == "waits", gap > 75*time.Second, "who waits pauses in between")
			}
			require.NoError(t, lock.Release(t.Context()))
		})
	}
}

// acquireTimed waits for a lock whose time the source sets.
func acquireTimed(ctx context.Context, f multilock.Source, name string, opt multilock.Terms) (*multilock.Lock, error) {
	return multilock.Acquire(ctx, timedFake{f.(*fake), 90 * time.Second}, name, opt)
}

// The source may stop answering just while a lock that came too late is released.
// Rule: none (time limits)
func TestGivingBackHangs(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		until := make(chan struct{})
		f.on(try, frozen)
		f.on(release, hangs(until, nil))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		_, err := multilock.Acquire(ctx, f, "nightly", multilock.Options{TTL: 100 * time.Second})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "did not answer")
		require.Zero(t, f.count(closes), "one more call would hang as well")
		close(until)
	})
}
