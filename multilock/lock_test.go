package multilock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
)

// Rule: release
func TestReleaseTwice(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Options{})
		require.NoError(t, lock.Release(t.Context()))
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrReleased)
		require.Equal(t, 1, f.count(release))

		require.ErrorIs(t, lock.Verify(t.Context()), multilock.ErrReleased)
		_, err := lock.Fence(t.Context())
		require.ErrorIs(t, err, multilock.ErrReleased)
		require.ErrorIs(t, lock.MarkJob(t.Context(), process.Group{}), multilock.ErrReleased)
		require.ErrorIs(t, lock.Detach(), multilock.ErrReleased)
		require.Zero(t, lock.Remaining())
	})
}

// Rule: release
func TestReleaseThatFailsMayBeRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(release, inTurn(fails(errServer), succeeds))
		lock := acquire(t, f, multilock.Options{})
		err := lock.Release(t.Context())
		require.ErrorIs(t, err, multilock.ErrUnsure)
		require.ErrorIs(t, err, errServer)
		require.NoError(t, lock.Release(t.Context()))
	})
}

// Of two concurrent removals of one lock, neither could distinguish the other's effect from a break. So the
// second release waits for the first, even if that was abandoned.
// Rule: release
func TestReleasesNeverOverlap(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		until := make(chan struct{})
		f.on(release, inTurn(hangs(until, nil), fails(multilock.ErrLost)))
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := lock.Release(ctx)
			require.ErrorIs(t, err, multilock.ErrUnsure)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
		}
		require.Equal(t, 1, f.count(release))
		close(until)
		require.NoError(t, lock.Release(t.Context()), "the first one succeeded in the end")
		require.Equal(t, 1, f.count(release))
	})
}

// Rule: record
func TestDetachLeavesTheLockHeld(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		require.NoError(t, lock.Detach())
		time.Sleep(2 * ttl)
		require.Zero(t, f.count(release))
		require.Zero(t, f.count(renew))
		require.Equal(t, 1, f.count(detach))
		require.True(t, isDone(lock))
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrReleased)
	})
}

// Rule: validity
func TestDetachedLockHasNoKeeper(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Detached{Options: multilock.Options{TTL: ttl}})
		require.Zero(t, f.claim.Heartbeat)
		require.Positive(t, lock.Remaining())
		time.Sleep(2 * ttl)
		require.Zero(t, f.count(renew))
		require.Zero(t, lock.Remaining())
		require.ErrorIs(t, lock.Verify(t.Context()), multilock.ErrLost)
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
	})
}

// Rule: none (context)
func TestLockContextKeepsValuesButNotTheLimitOfTheWait(t *testing.T) {
	type key struct{}
	bubble(t, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Second)
		defer cancel()
		lock, err := multilock.Acquire(ctx, f, "nightly", multilock.Options{TTL: ttl})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.False(t, isDone(lock))
		require.Equal(t, "value", lock.Context().Value(key{}))
		require.NoError(t, lock.Release(t.Context()))
	})
}

// Rule: fence
func TestFence(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		first, err := lock.Fence(t.Context())
		require.NoError(t, err)
		second, err := lock.Fence(t.Context())
		require.NoError(t, err)
		require.Greater(t, second, first)

		f.on(fence, fails(multilock.ErrUnsupported))
		_, err = lock.Fence(t.Context())
		require.ErrorIs(t, err, multilock.ErrUnsupported)
		require.False(t, isDone(lock))

		f.on(fence, fails(multilock.ErrLost))
		number, err := lock.Fence(t.Context())
		require.ErrorIs(t, err, multilock.ErrLost)
		require.Zero(t, number)
		require.ErrorIs(t, context.Cause(lock.Context()), multilock.ErrLost)
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
	})
}

// A number that took longer to draw than the lock was valid may be smaller than one that a later holder has
// already used.
// Rule: fence, validity
func TestFenceThatOutlastsTheTenureIsNotGivenOut(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(renew, fails(errServer))
		f.on(fence, func(context.Context) error {
			time.Sleep(2 * ttl)
			return nil
		})
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		number, err := lock.Fence(t.Context())
		require.ErrorIs(t, err, multilock.ErrLost)
		require.Zero(t, number)
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
	})
}

// Rule: job
func TestMarkJob(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.ForJob{Options: multilock.Options{TTL: ttl}})
		require.True(t, f.claim.Job)
		require.NoError(t, lock.MarkJob(t.Context(), process.Group{PGID: 4711}))

		until := make(chan struct{})
		f.on(mark, hangs(until, nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, lock.MarkJob(ctx, process.Group{PGID: 4711}), context.DeadlineExceeded)
		close(until)

		f.on(mark, fails(multilock.ErrLost))
		require.ErrorIs(t, lock.MarkJob(t.Context(), process.Group{PGID: 4711}), multilock.ErrLost)
		require.ErrorIs(t, context.Cause(lock.Context()), multilock.ErrLost)
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
	})
}

// Rule: record
func TestRecordSaysWhoHolds(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Options{User: "ada", Command: "rsync -a"})
		record := lock.Record()
		require.Equal(t, "nightly", record.Name)
		require.Equal(t, "ada", record.Holder.User)
		require.Equal(t, "rsync -a", record.Holder.Command)
		require.Equal(t, multilock.DefaultTTL, record.TTL)
		require.Equal(t, multilock.DefaultTTL/10, record.Heartbeat)
		require.NoError(t, lock.Release(t.Context()))
	})
}

// The time left for ending a job counts down to the moment at which others may acquire the lock, whether or
// not the lock is valid until then, and stays zero after that.
// Rule: validity
func TestGrace(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(renew, fails(errServer))
		start := time.Now()
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		require.LessOrEqual(t, lock.Grace(), ttl)
		require.Greater(t, lock.Grace(), lock.Remaining())
		<-lock.Context().Done()
		require.Zero(t, lock.Remaining())
		require.LessOrEqual(t, lock.Grace(), ttl-time.Since(start))
		require.Greater(t, lock.Grace(), ttl/6)
		time.Sleep(ttl)
		require.Zero(t, lock.Grace(), "this process slept")
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
	})
}

// A forced break ignores the TTL, so little time is left for the job.
// Rule: loss
func TestGraceOfALockThatWasBroken(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(renew, fails(multilock.ErrLost))
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		<-lock.Context().Done()
		require.Equal(t, ttl/5, lock.Grace())
		require.Error(t, lock.Release(t.Context()))
		require.Zero(t, lock.Grace())
	})
}

// Rule: loss
func TestVerifyPassesOnWhatTheSourceSays(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		require.False(t, lock.Timed())
		require.NoError(t, lock.Verify(t.Context()))
		f.on(renew, fails(errServer))
		require.ErrorIs(t, lock.Verify(t.Context()), errServer)
		f.on(renew, fails(multilock.ErrLost))
		require.ErrorIs(t, lock.Verify(t.Context()), multilock.ErrLost)
		require.ErrorIs(t, lock.Verify(t.Context()), multilock.ErrLost)
		require.Equal(t, 3, f.count(renew), "a loss is final")
		_, err := lock.Fence(t.Context())
		require.ErrorIs(t, err, multilock.ErrLost)
		require.ErrorIs(t, lock.MarkJob(t.Context(), process.Group{}), multilock.ErrLost)
		require.Zero(t, f.count(fence)+f.count(mark))
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
	})
}

// A release waits for an earlier one that is still running, even if its caller has no time limit.
// Rule: release
func TestPatientReleaseWaitsForAnEarlierOne(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		until := make(chan struct{})
		f.on(release, hangs(until, nil))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, lock.Release(ctx), multilock.ErrUnsure)
		time.AfterFunc(time.Minute, func() { close(until) })
		require.NoError(t, lock.Release(context.Background()))
		require.Equal(t, 1, f.count(release))
	})
}

// A lock that was released after its validity, because the source was slow, was not held for a while.
// Rule: release, validity
func TestReleaseThatOutlastsTheTenureIsALoss(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(release, func(context.Context) error {
			time.Sleep(ttl)
			return nil
		})
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		require.ErrorIs(t, lock.Release(context.Background()), multilock.ErrLost)
		require.ErrorIs(t, context.Cause(lock.Context()), multilock.ErrLost)
		require.ErrorIs(t, lock.Release(context.Background()), multilock.ErrReleased)
	})
}

// Rule: none (errors)
func TestDetachPassesOnWhatTheSourceSays(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(detach, fails(errServer))
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		require.ErrorIs(t, lock.Detach(), errServer)
		require.ErrorIs(t, lock.Detach(), multilock.ErrReleased)
	})
}

// Remaining and Grace follow from Deadline, and each renewal moves it.
// Rule: validity
func TestDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		first := lock.Deadline()
		require.Equal(t, first.Renewed, lock.Deadline().Renewed, "all who asked are told")
		require.InDelta(t, lock.Remaining(), -first.Until.Elapsed(), float64(time.Minute))
		require.InDelta(t, lock.Grace(), -first.Others.Elapsed(), float64(time.Minute))
		start := time.Now()
		<-first.Renewed
		require.LessOrEqual(t, time.Since(start), beat)
		second := lock.Deadline()
		require.Greater(t, second.Until.Shared(), first.Until.Shared())
		require.Equal(t, ttl/5, second.Others.Shared()-second.Until.Shared())

		f.on(renew, fails(errServer))
		<-lock.Context().Done()
		require.LessOrEqual(t, lock.Deadline().Until.Elapsed(), beat)
		require.NotNil(t, lock.Deadline().Renewed)
		require.Error(t, lock.Release(t.Context()))
	})
}

// A deferred Release after a signal releases the lock, though its context has ended.
// Rule: release
func TestReleaseWithAnEndedContext(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithCancel(t.Context())
		lock, err := multilock.Acquire(ctx, f, "nightly", multilock.Options{})
		require.NoError(t, err)
		cancel()
		require.NoError(t, lock.Release(ctx))
		require.Contains(t, f.steps(), release)
	})
}
