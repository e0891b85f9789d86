package multilock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
)

var errServer = errors.New("the server is away")

// Rule: loss
func TestKeeperTellsOfALossThatTheSourceKnows(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		broken := errors.New("somebody broke it")
		f.on(renew, inTurn(succeeds, fails(&multilock.LostError{Name: "nightly", Err: broken})))
		lock := acquire(t, f, multilock.Options{TTL: ttl})

		<-lock.Context().Done()
		var lost *multilock.LostError
		require.ErrorAs(t, context.Cause(lock.Context()), &lost)
		require.ErrorIs(t, lost, multilock.ErrLost)
		require.ErrorIs(t, lost, broken)
		require.Zero(t, lock.Remaining())
		require.ErrorIs(t, lock.Verify(t.Context()), multilock.ErrLost)
		time.Sleep(time.Hour)

		f.on(release, fails(multilock.ErrLost))
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrReleased)
		require.Equal(t, 2, f.count(renew), "a keeper has nothing to do after a loss")
	})
}

// Rule: validity
func TestTenureEndsWithoutRenewals(t *testing.T) {
	const ttl = 7 * time.Minute // it ends between two beats
	for name, hanging := range map[string]bool{"failing": false, "hanging": true} {
		runBubble(t, name, func(t *testing.T, f *fake) {
			until := make(chan struct{})
			f.on(renew, fails(errServer))
			if hanging {
				f.on(renew, hangs(until, nil))
			}
			start := time.Now()
			lock := acquire(t, f, multilock.Options{TTL: ttl})
			<-lock.Context().Done()

			require.InDelta(t, (ttl * 4 / 5).Seconds(), time.Since(start).Seconds(), 1, "others may take the lock after the ttl")
			var lost *multilock.LostError
			require.ErrorAs(t, context.Cause(lock.Context()), &lost)
			require.NoError(t, lost.Err, "the silence alone decided")
			require.GreaterOrEqual(t, lost.Silence, ttl/2)
			require.Contains(t, lost.Error(), "no renewal was confirmed for")
			require.ErrorIs(t, lock.Verify(t.Context()), multilock.ErrLost)
			time.Sleep(2 * ttl)
			require.Equal(t, hanging, f.count(renew) == 1, "one at a time")
			close(until)
			require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
			require.Equal(t, 1, f.count(release), "what is still there must be given back")
		})
	}
}

// Rule: validity
func TestTenureCountsFromTheStartOfARenewal(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		slow := ttl / 2
		f.on(renew, inTurn(func(context.Context) error {
			time.Sleep(slow)
			return nil
		}, fails(errServer)))
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		time.Sleep(beat + slow + time.Second)
		require.LessOrEqual(t, lock.Remaining(), ttl-ttl/5-slow)
		require.NoError(t, lock.Release(t.Context()))
	})
}

// Rule: validity
func TestHungRenewalBlocksNobody(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		until := make(chan struct{})
		f.on(renew, hangs(until, nil))
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		time.Sleep(2 * beat)
		start := time.Now()

		require.Positive(t, lock.Remaining())
		require.NoError(t, lock.Release(t.Context()))
		require.Zero(t, time.Since(start))
		require.ErrorIs(t, context.Cause(lock.Context()), multilock.ErrReleased)
		close(until)
	})
}

// Rule: none (time limits)
func TestVerifyGivesUpWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		until := make(chan struct{})
		f.on(renew, hangs(until, nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := lock.Verify(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, multilock.ErrLost)
		require.Contains(t, err.Error(), "did not answer")
		close(until)
		require.NoError(t, lock.Release(t.Context()))
	})
}

// Rule: release
func TestReleaseWaitsForTheKeeper(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		time.Sleep(ttl + time.Second)
		require.NoError(t, lock.Release(t.Context()))
		before := f.count(renew)
		time.Sleep(ttl)
		require.Equal(t, before, f.count(renew))
		require.Equal(t, release, f.steps()[len(f.steps())-1])
	})
}

// Rule: loss
func TestLateRecoveryDoesNotRestoreTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		until := make(chan struct{})
		f.on(renew, inTurn(hangs(until, nil), succeeds))
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		<-lock.Context().Done()
		close(until)
		before := f.count(renew)
		time.Sleep(ttl)

		require.Greater(t, f.count(renew), before+1, "somebody may still be at work under the lock")
		require.Zero(t, lock.Remaining())
		require.ErrorIs(t, lock.Verify(t.Context()), multilock.ErrLost)
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
	})
}

// A renewal that began before Release finds the lock gone afterwards. The release is the reason; the lock
// is not lost.
// Rule: release
func TestRenewalThatFindsTheLockReleasedIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		released := make(chan struct{})
		f.on(renew, hangs(released, multilock.ErrLost))
		f.on(release, func(context.Context) error {
			close(released)
			synctest.Wait() // the renewal's outcome is known before Release returns
			return nil
		})
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		time.Sleep(2 * beat)
		require.Equal(t, 1, f.count(renew))
		require.NoError(t, lock.Release(t.Context()))
		require.ErrorIs(t, context.Cause(lock.Context()), multilock.ErrReleased)
	})
}

// A heartbeat is due after a tenth of the TTL, and after half a minute at most. That counts from the start
// of the previous one, however long it takes, and for the first one from the acquisition, however long that
// took.
// Rule: heartbeat
func TestSlowRenewalsComeInTime(t *testing.T) {
	for ttl, beat := range map[time.Duration]time.Duration{100 * time.Second: 10 * time.Second, ttl: beat} {
		bubble(t, func(t *testing.T, f *fake) {
			slow := func(context.Context) error {
				time.Sleep(beat * 3 / 10)
				return nil
			}
			f.on(try, slow)
			f.on(renew, slow)
			start := time.Now()
			lock := acquire(t, f, multilock.Options{TTL: ttl})
			require.Equal(t, beat, f.claim.Heartbeat)
			time.Sleep(time.Hour)
			require.NoError(t, lock.Release(t.Context()))
			for _, gap := range gaps(append([]time.Time{start}, f.times(renew)...)) {
				require.InDelta(t, beat.Seconds(), gap.Seconds(), 0.5)
			}
		})
	}
}

// A release ends the context of a renewal in progress.
// Rule: release
func TestReleaseEndsTheContextOfARenewal(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		told := make(chan struct{})
		f.on(renew, func(ctx context.Context) error {
			<-ctx.Done()
			close(told)
			return ctx.Err()
		})
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		time.Sleep(beat + time.Second)
		require.NoError(t, lock.Release(t.Context()))
		<-told
	})
}
