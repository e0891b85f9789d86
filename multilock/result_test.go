package multilock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
)

// changes are the calls that change a result, recordings all that deal with one.
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

// The source's word that the lock is gone ends the lock.
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

// A call that hangs when its context ends may have changed the result, or may do
// so later. A question that hangs has changed nothing.
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

// An answer that comes just after its context ended is an answer.
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

func TestResultOK(t *testing.T) {
	require.True(t, multilock.Result{}.OK())
	for _, r := range []multilock.Result{{Exit: 1}, {Signal: "killed"}, {Foreign: "torn"}} {
		require.False(t, r.OK())
	}
}
