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

func TestKeeperRenewsEveryTenthOfTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		lock := acquire(t, f, multilock.Options{TTL: 100 * time.Second})
		time.Sleep(10 * time.Minute)
		require.NoError(t, lock.Release(t.Context()))

		renewals := f.times(renew)
		require.GreaterOrEqual(t, len(renewals), 59)
		for _, gap := range gaps(renewals) {
			require.LessOrEqual(t, gap, 10*time.Second)
		}
	})
}

func TestKeeperOfALongTTLRenewsEveryHalfMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		lock := acquire(t, f, multilock.Options{TTL: 24 * time.Hour})
		time.Sleep(time.Hour)
		require.False(t, isDone(lock))
		require.NoError(t, lock.Release(t.Context()))
		require.GreaterOrEqual(t, f.count(renew), 119)
		require.Equal(t, beat, f.claim.Heartbeat)
	})
}

func TestKeeperTellsOfALossThatTheSourceKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
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

		f.on(release, fails(multilock.ErrLost))
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrReleased)
		require.Equal(t, 2, f.count(renew), "a keeper has nothing to do after a loss")
	})
}

func TestTenureEndsWithoutRenewals(t *testing.T) {
	never := make(chan struct{})
	for name, away := range map[string]action{"failing": fails(errServer), "hanging": hangs(never, nil)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				until := make(chan struct{})
				if name == "hanging" {
					away = hangs(until, nil)
				}
				f := newFake()
				f.on(renew, away)
				start := time.Now()
				lock := acquire(t, f, multilock.Options{TTL: ttl})
				<-lock.Context().Done()

				require.LessOrEqual(t, time.Since(start), ttl-ttl/5, "others may take the lock after the ttl")
				require.Greater(t, time.Since(start), ttl/2)
				var lost *multilock.LostError
				require.ErrorAs(t, context.Cause(lock.Context()), &lost)
				require.NoError(t, lost.Err, "the silence alone decided")
				require.GreaterOrEqual(t, lost.Silence, ttl/2)
				require.Contains(t, lost.Error(), "no renewal was confirmed for")
				require.ErrorIs(t, lock.Verify(t.Context()), multilock.ErrLost)
				close(until)
				require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
				require.Equal(t, 1, f.count(release), "what is still there must be given back")
			})
		})
	}
}

func TestTenureCountsFromTheStartOfARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
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

func TestOnlyOneRenewalAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		until := make(chan struct{})
		f.on(renew, hangs(until, nil))
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		time.Sleep(3 * ttl)
		require.Equal(t, 1, f.count(renew))
		close(until)
		require.Error(t, lock.Release(t.Context()))
	})
}

func TestHungRenewalBlocksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
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

func TestVerifyGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
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

func TestReleaseWaitsForTheKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		time.Sleep(ttl + time.Second)
		require.NoError(t, lock.Release(t.Context()))
		before := f.count(renew)
		time.Sleep(ttl)
		require.Equal(t, before, f.count(renew))
		require.Equal(t, release, f.steps()[len(f.steps())-1])
	})
}

func TestLateRecoveryDoesNotRestoreTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
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

// A renewal that began before Release finds the lock gone after it. That is what
// Release did, and no loss.
func TestRenewalThatFindsTheLockReleasedIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
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

// The beat is counted from the start of a sign of life, however long it takes, and of
// the first one from the acquisition, however long that took.
func TestSlowRenewalsComeInTime(t *testing.T) {
	for ttl, beat := range map[time.Duration]time.Duration{100 * time.Second: 10 * time.Second, ttl: beat} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			slow := func(context.Context) error {
				time.Sleep(beat * 3 / 10)
				return nil
			}
			f.on(try, slow)
			f.on(renew, slow)
			start := time.Now()
			lock := acquire(t, f, multilock.Options{TTL: ttl})
			time.Sleep(time.Hour)
			require.NoError(t, lock.Release(t.Context()))
			for _, gap := range gaps(append([]time.Time{start}, f.times(renew)...)) {
				require.InDelta(t, beat.Seconds(), gap.Seconds(), 0.5)
			}
		})
	}
}

// The tenure of this lock ends between two beats.
func TestTenureEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		until := make(chan struct{})
		f.on(renew, hangs(until, errServer))
		start := time.Now()
		lock := acquire(t, f, multilock.Options{TTL: 7 * time.Minute})
		<-lock.Context().Done()
		require.InDelta(t, (7 * time.Minute * 4 / 5).Seconds(), time.Since(start).Seconds(), 1)
		close(until)
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
	})
}

func TestKeeperEndsWithALossThatTheSourceKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.on(renew, fails(&multilock.LostError{Name: "nightly", Err: errServer}))
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		time.Sleep(time.Hour)
		require.Equal(t, 1, f.count(renew))
		f.on(release, fails(multilock.ErrLost))
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
	})
}

// A renewal that is under way is told when nobody wants it any more.
func TestReleaseEndsTheContextOfARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
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
