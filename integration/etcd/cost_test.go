package etcd_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/engine"
	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

func TestCost(t *testing.T) {
	c := etcdlab.Start(t, 1)
	proxy := etcdlab.NewProxy(t, c.Members[0].Client, 0)
	src := open(t, proxy.Address, prefix(), "")
	ctx := within(t)
	opt := multilock.Detached{Options: multilock.Options{TTL: time.Minute}} // no heartbeats in between
	var lock *multilock.Lock
	released := false
	for _, step := range []struct {
		name string
		want etcdlab.Counts
		run  func() error
	}{
		{"acquire again", etcdlab.Counts{"Txn": 1}, func() (err error) {
			lock, err = multilock.TryAcquire(ctx, src, "nightly", opt)
			return err
		}},
		{"the first heartbeat", etcdlab.Counts{"LeaseKeepAlive": 1, "Watch": 1}, func() error {
			err := lock.Verify(ctx)
			require.Eventually(t, func() bool { return proxy.Counts()["Watch"] == 1 }, watchdog, time.Millisecond)
			return err
		}},
		{"heartbeats", etcdlab.Counts{"LeaseKeepAlive": 20}, func() error {
			for range 20 {
				if err := lock.Verify(ctx); err != nil {
					return err
				}
			}
			return nil
		}},
		{"fence", etcdlab.Counts{"Txn": 1}, func() error {
			_, err := lock.Fence(ctx)
			return err
		}},
		{"be refused", etcdlab.Counts{"Txn": 1, "LeaseGrant": 1}, func() error {
			_, err := multilock.TryAcquire(ctx, src, "nightly", opt)
			require.ErrorIs(t, err, source.ErrHeld)
			return nil
		}},
		{"release", etcdlab.Counts{"Txn": 1}, func() error {
			released = true
			return lock.Release(ctx)
		}},
		{"ask whether the group is empty", etcdlab.Counts{"Txn": 1}, func() error {
			empty, err := src.Empty(ctx)
			require.True(t, empty)
			return err
		}},
	} {
		if lock == nil { // the very first attempt also requests a lease
			require.NoError(t, multilock.Do(ctx, src, "nightly", opt, func(context.Context) error { return nil }))
		}
		before := proxy.Counts()
		require.NoError(t, step.run(), step.name)
		cost := proxy.Counts().Since(before)
		if released { // this ends the watch, and etcd's client may report that later or never
			delete(cost, "Watch")
		}
		require.Equal(t, step.want, cost, step.name)
	}
}

// TestFarAwayCycle: a lock costs two round trips, and so does the first one.
func TestFarAwayCycle(t *testing.T) {
	const latency = 200 * time.Millisecond
	c := etcdlab.Start(t, 1)
	src := open(t, etcdlab.NewProxy(t, c.Members[0].Client, latency).Address, prefix(), "")
	_, err := src.Names(within(t)) // connects
	require.NoError(t, err)
	quickest := time.Hour
	for range 5 {
		start := time.Now()
		require.NoError(t, multilock.Do(within(t), src, "nightly", multilock.Options{}, func(context.Context) error { return nil }))
		quickest = min(quickest, time.Since(start))
	}
	require.GreaterOrEqual(t, quickest, 2*latency)
	require.Less(t, quickest, 3*latency)
}

// TestWaiters: waiters are served in order of arrival and send no requests while nothing happens, and a
// handover costs the same however many wait.
func TestWaiters(t *testing.T) {
	cost := map[int]float64{}
	many := 200
	if testing.Short() {
		many = 50
	}
	for _, size := range []int{5, many} {
		c := etcdlab.Start(t, 1)
		proxy, place := etcdlab.NewProxy(t, c.Members[0].Client, 0), prefix()
		idle := func() {
			before := proxy.Counts()
			time.Sleep(3 * time.Second)
			require.Zero(t, proxy.Counts().Since(before).All(), "waiters send no requests")
		}
		cost[size] = engine.Crowd{
			Source: open(t, proxy.Address, place, ""), Waiting: func() int { return c.Count(t, place+"/wait/") },
			Requests: func() int { return proxy.Counts().All() }, Idle: idle,
		}.Serve(t, size)
		t.Logf("%d waiters: %.1f requests for each hand-over, watches included", size, cost[size])
	}
	require.InDelta(t, cost[5], cost[many], 4)
}
