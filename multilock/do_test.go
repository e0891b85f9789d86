package multilock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
)

var errWork = errors.New("the disk is full")

func TestDoHoldsTheLockAndReleasesIt(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		var ended <-chan struct{}
		err := multilock.Do(t.Context(), f, "nightly", multilock.Options{}, func(ctx context.Context) error {
			ended = ctx.Done()
			require.NoError(t, ctx.Err())
			require.Zero(t, f.count(release))
			return nil
		})
		require.NoError(t, err)
		<-ended
		require.Equal(t, 1, f.count(release))
	})
}

func TestDoWithoutTheLockDoesNotWork(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(try, fails(errServer))
		err := multilock.Do(t.Context(), f, "nightly", multilock.Options{}, func(context.Context) error {
			t.Error("it worked without the lock")
			return nil
		})
		require.ErrorIs(t, err, errServer)
	})
}

func TestDoJoinsTheErrors(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(release, fails(errServer))
		err := multilock.Do(t.Context(), f, "nightly", multilock.Options{}, func(context.Context) error { return errWork })
		require.ErrorIs(t, err, errWork)
		require.ErrorIs(t, err, errServer)
		require.ErrorIs(t, err, multilock.ErrUnsure)
	})
}

func TestDoCancelsTheWorkWhenTheLockIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(renew, fails(multilock.ErrLost))
		f.on(release, fails(multilock.ErrLost))
		err := multilock.Do(t.Context(), f, "nightly", multilock.Options{}, func(ctx context.Context) error {
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), multilock.ErrLost)
			return errWork
		})
		require.ErrorIs(t, err, errWork)
		var lost *multilock.LostError
		require.ErrorAs(t, err, &lost)
	})
}

func TestDoReleasesAfterItsContextEnded(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithCancel(t.Context())
		err := multilock.Do(ctx, f, "nightly", multilock.Options{}, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return context.Cause(ctx)
		})
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, multilock.ErrUnsure)
		require.Equal(t, 1, f.count(release))
	})
}

// A panic that somebody recovers must not leave a lock that is renewed for ever.
func TestDoReleasesWhenTheWorkPanics(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		require.PanicsWithValue(t, "no more", func() {
			_ = multilock.Do(t.Context(), f, "nightly", multilock.Options{}, func(context.Context) error { panic("no more") })
		})
		require.Equal(t, 1, f.count(release))
	})
}
