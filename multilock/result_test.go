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

// changes are the calls that change a result, recordings all calls about a result.
func changes(lock *multilock.Lock) map[step]func(context.Context) error {
	return map[step]func(context.Context) error{
		commit: func(ctx context.Context) error { return lock.Commit(ctx, multilock.Result{Attempt: 1}) },
		forget: lock.Forget,
	}
}

func recordings(lock *multilock.Lock) map[step]func(context.Context) error {
	all := changes(lock)
	all[outcome] = func(ctx context.Context) error {
		_, err := lock.Outcome(ctx)
		return err
	}
	return all
}

// Rule: result
func TestCommitFillsInWhoseResultItIs(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Options{})
		require.NoError(t, lock.Commit(t.Context(), multilock.Result{Name: "another", Token: "theirs", Exit: 3, Attempt: 2}))
		found, err := lock.Outcome(t.Context())
		require.NoError(t, err)
		require.Equal(t, multilock.Result{Name: "nightly", Token: "mine", Exit: 3, Attempt: 2}, found)
		require.NoError(t, lock.Release(t.Context()))
	})
}

// Rule: loss, commit
func TestResultsOfALockThatIsNotHeld(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Options{})
		require.NoError(t, lock.Release(t.Context()))
		for what, call := range recordings(lock) {
			require.ErrorIs(t, call(t.Context()), multilock.ErrReleased, what)
			require.Zero(t, f.count(what))
		}
	})
}

// Rule: validity, commit
func TestResultsAfterTheTenure(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(renew, fails(errServer))
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		time.Sleep(ttl)
		for what, call := range recordings(lock) {
			require.ErrorIs(t, call(t.Context()), multilock.ErrLost, what)
			require.Zero(t, f.count(what))
		}
		_ = lock.Release(t.Context())
	})
}

// A report from the source that the lock is gone ends the lock.
// Rule: loss, commit
func TestResultsFindTheLockLost(t *testing.T) {
	for _, what := range []step{commit, forget, outcome} {
		runBubble(t, string(what), func(t *testing.T, f *fake) {
			f.on(what, fails(multilock.ErrLost))
			lock := acquire(t, f, multilock.Options{})
			var lost *multilock.LostError
			require.ErrorAs(t, recordings(lock)[what](t.Context()), &lost)
			require.True(t, isDone(lock))
			f.on(release, fails(multilock.ErrLost))
			require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
		})
	}
}

// A call that hangs when its context ends may have changed the result, or may still change it. A read that
// hangs has changed nothing.
// Rule: I4, commit
func TestResultsOfASourceThatHangs(t *testing.T) {
	for _, what := range []step{commit, forget, outcome} {
		runBubble(t, string(what), func(t *testing.T, f *fake) {
			until := make(chan struct{})
			f.on(what, hangs(until, nil))
			lock := acquire(t, f, multilock.Options{TTL: ttl})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := recordings(lock)[what](ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			if _, changing := changes(lock)[what]; changing {
				require.ErrorIs(t, err, multilock.ErrUnsure)
			} else {
				require.NotErrorIs(t, err, multilock.ErrUnsure)
			}
			close(until)
			require.NoError(t, lock.Release(t.Context()))
		})
	}
}

// An answer that comes just after the context ended still counts.
// Rule: I4, commit
func TestCommitThatSettlesInTime(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		ctx, cancel := context.WithCancel(t.Context())
		f.on(commit, func(context.Context) error {
			cancel()
			time.Sleep(100 * time.Millisecond)
			return nil
		})
		require.NoError(t, lock.Commit(ctx, multilock.Result{Attempt: 1}))
		require.NoError(t, lock.Release(t.Context()))
	})
}

// Rule: I4, commit
func TestResultsOfASourceThatFails(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Options{})
		for what, call := range recordings(lock) {
			f.on(what, fails(errServer))
			err := call(t.Context())
			require.ErrorIs(t, err, errServer, what)
			require.NotErrorIs(t, err, multilock.ErrUnsure, what)
		}
		require.False(t, isDone(lock))
		require.NoError(t, lock.Release(t.Context()))
	})
}

// Rule: none (options)
func TestResultsOfASourceThatKeepsNone(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.plain = true
		lock := acquire(t, f, multilock.Options{})
		for what, call := range recordings(lock) {
			require.ErrorIs(t, call(t.Context()), multilock.ErrUnsupported, what)
		}
		require.NoError(t, lock.Release(t.Context()))
	})
}

// Rule: result
func TestResultOK(t *testing.T) {
	require.True(t, multilock.Result{}.OK())
	for _, r := range []multilock.Result{{Exit: 1}, {Signal: "killed"}, {Foreign: "torn"}} {
		require.False(t, r.OK())
	}
}

// timedFake has leases that end by time, whatever their renewals report.
type timedFake struct {
	*fake
	lasts time.Duration
}

func (f timedFake) Contend(ctx context.Context, name string, claim source.Claim, p multilock.StalePolicy) (source.Contender, error) {
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

// The source decides when a timed lock is over. The options' TTL does not matter, longer or shorter, and
// successful renewals do not extend it.
// Rule: none (docs/internals/cooking.md)
func TestTimedLockEndsAtItsTime(t *testing.T) {
	for _, opt := range []multilock.Options{{}, {TTL: time.Second}, {TTL: time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			const lasts = 10 * time.Minute
			lock, err := multilock.TryAcquire(t.Context(), timedFake{newFake(), lasts}, "nightly", opt)
			require.NoError(t, err)
			require.LessOrEqual(t, lock.Remaining(), lasts)
			require.Equal(t, lock.Deadline().Until, lock.Deadline().Others)
			require.InDelta(t, lock.Remaining(), -lock.Deadline().Until.Elapsed(), float64(time.Minute))
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

// The time may be much shorter than the heartbeat interval of the options.
// Rule: none (docs/internals/cooking.md)
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

// A detached lock has no keeper that could cancel its context in time, but still knows that it is over.
// Rule: none (docs/internals/cooking.md)
func TestTimedLockDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := timedFake{newFake(), time.Minute}
		lock, err := multilock.TryAcquire(t.Context(), f, "nightly", multilock.Detached{})
		require.NoError(t, err)
		require.NoError(t, lock.Verify(t.Context()))
		time.Sleep(time.Minute)
		require.Zero(t, lock.Remaining())
		require.ErrorIs(t, lock.Verify(t.Context()), multilock.ErrOver)
		require.NoError(t, lock.Detach())
	})
}
