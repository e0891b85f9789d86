package s3_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/engine"
	"github.com/multilock/go/integration/s3lab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// TestCost counts requests, which are what a bucket costs.
func TestCost(t *testing.T) {
	g := s3lab.Start(t)
	proxy := s3lab.NewProxy(t, g.Address)
	src := open(t, proxy.Address, g.Place(prefix()), "")
	ctx := engine.Within(t)
	opt := multilock.Detached{Options: multilock.Options{TTL: time.Minute}} // no heartbeats in between
	require.NoError(t, multilock.Do(ctx, src, "nightly", opt, func(context.Context) error { return nil }))
	var lock *multilock.Lock
	type requests map[string]int
	for _, step := range []struct {
		name string
		want requests
		run  func() error
	}{
		{"acquire", requests{"GET": 1, "PUT": 1}, func() (err error) {
			lock, err = multilock.TryAcquire(ctx, src, "nightly", opt)
			return err
		}},
		{"heartbeat", requests{"PUT": 1}, func() error { return lock.Verify(ctx) }},
		{"fence", requests{"PUT": 1}, func() error {
			_, err := lock.Fence(ctx)
			return err
		}},
		{"be refused", requests{"GET": 1}, func() error {
			_, err := multilock.TryAcquire(ctx, src, "nightly", opt)
			require.ErrorIs(t, err, source.ErrHeld)
			return nil
		}},
		{"commit", requests{"PUT": 1}, func() error { return lock.Commit(ctx, source.Result{Name: "nightly", Attempt: 1}) }},
		{"release", requests{"PUT": 1}, func() error { return lock.Release(ctx) }},
		{"ask whether the group is empty", requests{"GET": 1}, func() error {
			empty, err := src.Empty(ctx)
			require.True(t, empty)
			return err
		}},
	} {
		before := proxy.Counts()
		require.NoError(t, step.run(), step.name)
		cost := requests{}
		for method, n := range proxy.Counts() {
			if n -= before[method]; n > 0 {
				cost[method] = n
			}
		}
		require.Equal(t, step.want, cost, step.name)
	}
}
