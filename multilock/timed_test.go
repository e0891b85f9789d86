package multilock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
)

// timedFake gives leases that end by time, whatever their renewals say.
type timedFake struct {
	*fake
	lasts time.Duration
}

func (f timedFake) Contend(ctx context.Context, name string, claim source.Claim, p multilock.Patience) (source.Contender, error) {
	c, err := f.fake.Contend(ctx, name, claim, p)
	return timedContender{c, f.lasts}, err
}

type timedContender struct {
	source.Contender
	lasts time.Duration
}

func (c timedContender) Try(ctx context.Context) (source.Lease, error) {
	lease, err := c.Contender.Try(ctx)
	if err != nil {
		return nil, err
	}
	return timedLease{lease, lease.Since().Add(c.lasts)}, nil
}

type timedLease struct {
	source.Lease
	ends boottime.Instant
}

func (l timedLease) Ends() boottime.Instant { return l.ends }

// The source says when a timed lock is over. The options' TTL has no part in it,
// whether it is longer or shorter, and renewals that succeed prolong nothing.
func TestTimedLockEndsAtItsTime(t *testing.T) {
	for _, opt := range []multilock.Options{{}, {TTL: time.Second}, {TTL: time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			const lasts = 10 * time.Minute
			lock, err := multilock.TryAcquire(t.Context(), timedFake{newFake(), lasts}, "nightly", opt)
			require.NoError(t, err)
			require.LessOrEqual(t, lock.Remaining(), lasts)
			require.Equal(t, lock.Belief().Until, lock.Belief().Others)
			require.InDelta(t, lock.Remaining(), -lock.Belief().Until.Elapsed(), float64(time.Minute))
			require.True(t, lock.Timed())
			start := time.Now()
			time.Sleep(lasts / 2)
			require.NoError(t, lock.Verify(t.Context()))
			require.NoError(t, lock.Context().Err())
			<-lock.Context().Done()
			require.LessOrEqual(t, time.Since(start), lasts, "it was told too late")
			require.Greater(t, time.Since(start), lasts-time.Minute)
			var lost *multilock.LostError
			require.ErrorAs(t, context.Cause(lock.Context()), &lost)
			require.ErrorIs(t, lost, multilock.ErrOver)
			require.ErrorIs(t, lost, multilock.ErrLost)
			require.ErrorIs(t, lock.Verify(t.Context()), multilock.ErrOver)
			require.Zero(t, lock.Remaining())
			require.Zero(t, lock.Grace())
			require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrOver)
			require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrReleased)
		})
	}
}

// A time may be much shorter than the beat that the options make.
func TestShortTimeEndsInTime(t *testing.T) {
	for _, lasts := range []time.Duration{100 * time.Millisecond, 2 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			lock, err := multilock.TryAcquire(t.Context(), timedFake{newFake(), lasts}, "nightly", multilock.Options{TTL: time.Hour})
			require.NoError(t, err)
			<-lock.Context().Done()
			require.LessOrEqual(t, time.Since(start), lasts+5*time.Millisecond)
			require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrOver)
		})
	}
}

// A detached lock has nobody who could cancel its context in time, and still knows.
func TestTimedLockDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := timedFake{newFake(), time.Minute}
		lock, err := multilock.TryAcquire(t.Context(), f, "nightly", multilock.Options{Detached: true})
		require.NoError(t, err)
		require.NoError(t, lock.Verify(t.Context()))
		time.Sleep(time.Minute)
		require.Zero(t, lock.Remaining())
		require.ErrorIs(t, lock.Verify(t.Context()), multilock.ErrOver)
		require.NoError(t, lock.Detach())
	})
}
