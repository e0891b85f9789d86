package postgres_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/engine"
	"github.com/multilock/go/integration/pglab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// TestCost counts requests, each of which costs a round trip.
func TestCost(t *testing.T) {
	s := pglab.Start(t, pglab.Options{})
	proxy := pglab.NewProxy(t, s.Address, 0)
	src := open(t, proxy.Address, schema(), "")
	ctx := within(t)
	opt := multilock.Detached{Options: multilock.Options{TTL: time.Minute}} // no heartbeats in between
	require.NoError(t, multilock.Do(ctx, src, "nightly", opt, func(context.Context) error { return nil }))
	var lock *multilock.Lock
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"acquire", func() (err error) {
			lock, err = multilock.TryAcquire(ctx, src, "nightly", opt)
			return err
		}},
		{"heartbeat", func() error { return lock.Verify(ctx) }},
		{"fence", func() error {
			_, err := lock.Fence(ctx)
			return err
		}},
		{"be refused", func() error {
			_, err := multilock.TryAcquire(ctx, src, "nightly", opt)
			require.ErrorIs(t, err, source.ErrHeld)
			return nil
		}},
		{"ask for the result", func() error {
			_, err := lock.Outcome(ctx)
			require.ErrorIs(t, err, source.ErrNoResult)
			return nil
		}},
		{"commit", func() error { return lock.Commit(ctx, source.Result{Name: "nightly", Attempt: 1}) }},
		{"release", func() error { return lock.Release(ctx) }},
		{"ask whether the group is empty", func() error {
			empty, err := src.Empty(ctx)
			require.True(t, empty)
			return err
		}},
	} {
		before := proxy.Requests()
		require.NoError(t, step.run(), step.name)
		require.Equal(t, 1, proxy.Requests()-before, step.name)
	}
	require.Equal(t, 1, proxy.Connections(), "sequential requests need one connection")
}

// TestFirstCycle: a new client first reads the properties of the server and the schema, and then needs
// two requests like any other.
func TestFirstCycle(t *testing.T) {
	s := pglab.Start(t, pglab.Options{})
	place := schema()
	makeSchema(t, open(t, s.Address, place, ""))
	proxy := pglab.NewProxy(t, s.Address, 0)
	require.NoError(t, multilock.Do(within(t), open(t, proxy.Address, place, ""), "nightly", multilock.Options{}, func(context.Context) error { return nil }))
	require.Equal(t, 3, proxy.Requests())
}

// TestWaiters: waiters are served in order of arrival, and while nothing happens they send no requests
// except for an occasional one for all of them. A handover costs the same however many wait.
func TestWaiters(t *testing.T) {
	cost := map[int]float64{}
	many := 200
	if testing.Short() {
		many = 50
	}
	s := pglab.Start(t, pglab.Options{})
	for _, size := range []int{5, many} {
		proxy, place := pglab.NewProxy(t, s.Address, 0), schema()
		waiting := func() int {
			n, _ := strconv.Atoi(s.Value("SELECT count(*) FROM " + place + ".entry WHERE key LIKE 'wait/%'"))
			return n
		}
		idle := func() {
			before, start := proxy.Requests(), time.Now()
			time.Sleep(9 * time.Second)
			require.LessOrEqual(t, proxy.Requests()-before, 1+int(time.Since(start)/(4*time.Second)), "waiters send no requests")
		}
		cost[size] = engine.Crowd{Source: open(t, proxy.Address, place, ""), Waiting: waiting, Requests: proxy.Requests, Idle: idle}.Serve(t, size)
		t.Logf("%d waiters: %.2f requests for each hand-over and release", size, cost[size])
	}
	require.InDelta(t, cost[5], cost[many], 0.8)
	require.Less(t, cost[many], 2.5)
}
