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

var errBroken = errors.New("somebody broke it")

func lostBecause(why error) *multilock.LostError {
	return &multilock.LostError{Name: "nightly", Err: why}
}

// outlasts is a call that returns after the end of the validity.
func outlasts(next error) action {
	return func(context.Context) error {
		time.Sleep(ttl)
		return next
	}
}

// requireLost checks that an error is a loss, and its reason.
func requireLost(t *testing.T, err, why error) {
	t.Helper()
	var lost *multilock.LostError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, why, lost.Err)
}

// The first reason that the source gives is kept.
// Rule: loss
func TestFirstReasonOfALossStays(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(renew, fails(lostBecause(errBroken)))
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		requireLost(t, lock.Verify(t.Context()), errBroken)
		time.Sleep(2 * ttl)
		requireLost(t, lock.Verify(t.Context()), errBroken)
		f.on(release, fails(lostBecause(errServer)))
		requireLost(t, lock.Release(t.Context()), errBroken)
		requireLost(t, context.Cause(lock.Context()), errBroken)
	})
}

// A missed deadline is only the reason until the source has reported another one.
// Rule: loss
func TestReasonOfTheSourceOutranksSilence(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(renew, fails(errServer))
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		time.Sleep(2 * ttl)
		requireLost(t, lock.Verify(t.Context()), nil)
		f.on(release, fails(lostBecause(errBroken)))
		requireLost(t, lock.Release(t.Context()), errBroken)
	})
}

// Rule: loss
func TestLossWithoutAReason(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(renew, fails(lostBecause(nil)))
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		var lost *multilock.LostError
		require.ErrorAs(t, lock.Verify(t.Context()), &lost)
		require.Error(t, lost.Err, "it was not silence")
		f.on(release, fails(multilock.ErrLost))
		require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
	})
}

// A heartbeat that is confirmed after the lock's validity comes too late, whether or not a keeper has
// noticed.
// Rule: validity, loss
func TestVerificationThatOutlastsTheTenure(t *testing.T) {
	opt := multilock.Options{TTL: ttl}
	for _, terms := range []multilock.Terms{opt, multilock.Detached{Options: opt}} {
		bubble(t, func(t *testing.T, f *fake) {
			f.on(renew, outlasts(nil))
			lock := acquire(t, f, terms)
			requireLost(t, lock.Verify(context.Background()), nil)
			requireLost(t, lock.Release(context.Background()), nil)
			time.Sleep(ttl) // meanwhile the keeper renews as well
		})
	}
}

// A verification during the release reports the release, not a loss.
// Rule: release
func TestVerificationDuringTheRelease(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		until := make(chan struct{})
		f.on(renew, hangs(until, multilock.ErrLost))
		verified := make(chan error)
		go func() { verified <- lock.Verify(context.Background()) }()
		synctest.Wait()
		require.NoError(t, lock.Release(t.Context()))
		close(until)
		require.ErrorIs(t, <-verified, multilock.ErrReleased)
		require.ErrorIs(t, context.Cause(lock.Context()), multilock.ErrReleased)
	})
}

// A lock without renewals has no deadline for the work under it.
// Rule: validity
func TestLateReleaseOfADetachedLock(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		lock := acquire(t, f, multilock.Detached{Options: multilock.Options{TTL: ttl}})
		time.Sleep(2 * ttl)
		require.NoError(t, lock.Release(t.Context()))
	})
}

// A source may report that this very lock was released before: by a release whose reply came late, or by
// another process with its token.
// Rule: release
func TestSourceSaysThatItWasReleased(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(release, fails(multilock.ErrReleased))
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		err := lock.Release(t.Context())
		require.ErrorIs(t, err, multilock.ErrReleased)
		require.NotErrorIs(t, err, multilock.ErrUnsure)
		require.Equal(t, 1, f.count(release))
	})
}

// The result of an abandoned release is the result of the next one, which only repeats a failed one.
// Rule: release
func TestAnswerOfAnEarlierRelease(t *testing.T) {
	for answer, calls := range map[error]int{lostBecause(errBroken): 1, multilock.ErrReleased: 1, errServer: 2} {
		bubble(t, func(t *testing.T, f *fake) {
			lock := acquire(t, f, multilock.Options{TTL: ttl})
			until := make(chan struct{})
			f.on(release, inTurn(hangs(until, answer), succeeds))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.ErrorIs(t, lock.Release(ctx), multilock.ErrUnsure)
			close(until)
			err := lock.Release(t.Context())
			require.NotErrorIs(t, err, errServer)
			require.Equal(t, errors.Is(answer, multilock.ErrLost), errors.Is(err, multilock.ErrLost))
			require.Equal(t, errors.Is(answer, multilock.ErrReleased), errors.Is(err, multilock.ErrReleased))
			require.Equal(t, calls, f.count(release))
		})
	}
}

// Rule: none (errors)
func TestBreakByForceThatFails(t *testing.T) {
	f := newFake()
	f.show(node7(multilock.StateHeld))
	f.on(force, fails(errServer))
	_, err := multilock.Break(t.Context(), f, "nightly", multilock.BreakOptions{Alive: true})
	require.ErrorIs(t, err, errServer)
	_, err = multilock.Break(t.Context(), f, "nightly", multilock.BreakOptions{Alive: true, Token: "six"})
	require.ErrorContains(t, err, "another acquisition")
}

// Later events, and late replies, do not replace a reason either.
// Rule: loss
func TestReasonOutlastsTheTenure(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(renew, outlasts(nil))
		f.on(fence, fails(lostBecause(errBroken)))
		lock := acquire(t, f, multilock.Options{TTL: ttl})
		verified := make(chan error)
		go func() { verified <- lock.Verify(context.Background()) }()
		synctest.Wait()
		_, err := lock.Fence(t.Context())
		requireLost(t, err, errBroken)
		requireLost(t, <-verified, errBroken)
		requireLost(t, lock.Release(t.Context()), errBroken)
		time.Sleep(ttl)
	})
}
