package multilock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// If work acquired its own lock again, it would wait for its own release.
// Rule: none (reentrancy)
func TestNestedDoIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		inner := func(ctx context.Context, name string) error {
			return multilock.Do(ctx, f, name, multilock.Options{}, func(context.Context) error { return nil })
		}
		err := multilock.Do(t.Context(), f, "nightly", multilock.Options{}, func(ctx context.Context) error {
			require.NoError(t, inner(ctx, "other"))
			return multilock.Do(ctx, f, "other", multilock.Options{}, func(ctx context.Context) error { return inner(ctx, "nightly") })
		})
		require.ErrorIs(t, err, multilock.ErrSelfWait)
		require.ErrorContains(t, err, `lock "nightly"`)

		lock, err := multilock.Acquire(t.Context(), f, "nightly", multilock.Options{})
		require.NoError(t, err)
		require.ErrorIs(t, inner(lock.Context(), "nightly"), multilock.ErrSelfWait)
		later := context.WithoutCancel(lock.Context())
		require.NoError(t, lock.Release(t.Context()))
		require.NoError(t, inner(later, "nightly"), "it was released")
	})
}

// A wait ends at once if Refuse rejects the holder.
// Rule: none (waiting)
func TestRefuseEndsAWait(t *testing.T) {
	bubble(t, func(t *testing.T, f *fake) {
		f.on(try, fails(multilock.ErrHeld))
		f.show(node7(multilock.StateHeld))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		_, err := multilock.Acquire(ctx, f, "nightly", multilock.Options{Refuse: func(r source.Record) error {
			require.Equal(t, "node7", r.Holder.Host)
			return multilock.ErrSelfWait
		}})
		require.ErrorIs(t, err, multilock.ErrSelfWait)
		require.Less(t, time.Since(start), time.Second)
	})
}
