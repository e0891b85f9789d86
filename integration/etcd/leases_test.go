package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/integration/engine"
	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/etcdlock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// lifeOf returns the lease of a lock's heartbeat key.
func lifeOf(t *testing.T, c *etcdlab.Cluster, prefix, name string) (lease clientv3.LeaseID, there bool) {
	t.Helper()
	resp, err := c.Client.Get(within(t), prefix+"/life//"+name)
	require.NoError(t, err)
	if len(resp.Kvs) == 0 {
		return 0, false
	}
	return clientv3.LeaseID(resp.Kvs[0].Lease), true
}

func hold(t *testing.T, src *etcdlock.Source, name string, opt multilock.Options) *multilock.Lock {
	t.Helper()
	// No heartbeats except those that the test sends.
	lock, err := multilock.TryAcquire(within(t), src, name, multilock.Detached{Options: opt})
	require.NoError(t, err)
	return lock
}

// TestRevival: a lock whose lease the server has lost gets a new lease with the next heartbeat. The new
// lease lasts as long as the holder trusts its lock, so it must not be a spare lease with less time
// left.
func TestRevival(t *testing.T) {
	t.Parallel()
	c := etcdlab.Start(t, 1)
	place := prefix()
	src := open(t, c.Hosts(), place, "")
	ctx := within(t)
	opt := multilock.Options{TTL: 8 * time.Second}
	lock, spare := hold(t, src, "nightly", opt), hold(t, src, "other", opt)
	old, _ := lifeOf(t, c, place, "other")
	require.NoError(t, spare.Release(ctx)) // its lease is kept as a spare
	time.Sleep(1500 * time.Millisecond)

	first, _ := lifeOf(t, c, place, "nightly")
	_, err := c.Client.Revoke(ctx, first)
	require.NoError(t, err)
	_, there := lifeOf(t, c, place, "nightly")
	require.False(t, there)
	require.NoError(t, lock.Verify(ctx))
	second, there := lifeOf(t, c, place, "nightly")
	require.True(t, there)
	require.NotEqual(t, first, second)
	require.NotEqual(t, old, second)
	left, err := c.Client.TimeToLive(ctx, second)
	require.NoError(t, err)
	require.GreaterOrEqual(t, left.TTL, int64(8), "the lease outlasts the holder's trust in its lock")

	// A heartbeat on a foreign lease does not count: its key vanishes when that lease ends.
	foreign, err := c.Client.Grant(ctx, 60)
	require.NoError(t, err)
	_, err = c.Client.Put(ctx, place+"/life//nightly", "", clientv3.WithLease(foreign.ID))
	require.NoError(t, err)
	_, err = c.Client.Revoke(ctx, second)
	require.NoError(t, err)
	require.NoError(t, lock.Verify(ctx))
	third, _ := lifeOf(t, c, place, "nightly")
	require.NotEqual(t, foreign.ID, third)

	// A lock that was broken meanwhile is lost.
	require.NoError(t, force(ctx, src, "nightly"))
	require.ErrorIs(t, lock.Verify(ctx), source.ErrLost)
	require.ErrorIs(t, lock.Release(ctx), source.ErrLost)
}

// TestHalfBroken: a process that breaks a lock by force may die or pause before it revokes the holder's
// lease, and an administrator may remove the lock's key. The holder learns that its lock is lost, even
// if its watch was cut off. When the old lease is revoked later, no other lock depends on it.
func TestHalfBroken(t *testing.T) {
	t.Parallel()
	c := etcdlab.Start(t, 1)
	proxy := etcdlab.NewProxy(t, c.Members[0].Client, 0)
	place := prefix()
	src := open(t, proxy.Address, place, "")
	ctx := within(t)
	for _, deaf := range []bool{false, true} {
		lock := hold(t, src, "nightly", multilock.Options{TTL: time.Hour})
		old, _ := lifeOf(t, c, place, "nightly")
		require.NoError(t, lock.Verify(ctx))
		hear := func() {}
		if deaf {
			hear = proxy.Deafen()
		}
		resp, err := c.Client.Txn(ctx).Then(clientv3.OpDelete(place+"/lock//nightly"), clientv3.OpDelete(place+"/life//nightly")).Commit()
		require.NoError(t, err)
		if deaf { // the watch cannot report compacted revisions
			_, err = c.Client.Compact(ctx, resp.Header.Revision)
			require.NoError(t, err)
		}
		hear()
		require.Eventually(t, func() bool { return errors.Is(lock.Verify(ctx), source.ErrLost) }, watchdog, 10*time.Millisecond)
		require.ErrorIs(t, lock.Release(ctx), source.ErrLost)

		next := hold(t, src, "nightly", multilock.Options{TTL: time.Hour})
		_, err = c.Client.Revoke(ctx, old) // the paused breaker resumes
		require.NoError(t, err)
		require.NoError(t, next.Verify(ctx))
		_, there := lifeOf(t, c, place, "nightly")
		require.True(t, there)
		require.NoError(t, next.Release(ctx))
	}
}

func force(ctx context.Context, src *etcdlock.Source, name string) error {
	o, err := src.Observe(ctx, name, source.StalePolicy{})
	if err != nil {
		return err
	}
	defer o.Close()
	if _, err := o.Look(ctx); err != nil {
		return err
	}
	return o.Force(ctx)
}

// TestAnswersThatSayNothing: a broken connection or a cancellation does not show whether a release took
// place. The lock is released once, and the caller gets the true result.
func TestAnswersThatSayNothing(t *testing.T) {
	t.Parallel()
	c := etcdlab.Start(t, 1)
	proxy := etcdlab.NewProxy(t, c.Members[0].Client, 0)
	src := open(t, proxy.Address, prefix(), "")
	for _, what := range []engine.Outcome{engine.Broken, engine.Denied, engine.Lost} {
		lock := hold(t, src, "nightly", multilock.Options{})
		proxy.Inject(func(n int, _ string) engine.Outcome {
			if n == 0 {
				return what
			}
			return engine.Done
		})
		require.NoError(t, lock.Release(within(t)))
		proxy.Inject(nil)
	}
}

// TestCompaction: a waiter is cut off while the lock is released and the store is compacted. Its watch
// cannot report the release any more, so it asks.
func TestCompaction(t *testing.T) {
	t.Parallel()
	c := etcdlab.Start(t, 1)
	proxy := etcdlab.NewProxy(t, c.Members[0].Client, 0)
	place := prefix()
	ctx := within(t)
	lock := hold(t, open(t, c.Hosts(), place, ""), "nightly", multilock.Options{TTL: time.Hour})
	waiting := open(t, proxy.Address, place, "")
	follower := waiting.Follow(time.Now())
	defer follower.Close()
	_, err := follower.Next(ctx)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		next, err := multilock.Acquire(ctx, waiting, "nightly", multilock.Options{TTL: time.Hour})
		if err == nil {
			err = next.Release(ctx)
		}
		done <- err
	}()
	require.Eventually(t, func() bool { return c.Count(t, place+"/wait/") == 1 }, watchdog, 10*time.Millisecond)
	time.Sleep(500 * time.Millisecond) // until its watch begins
	hear := proxy.Deafen()
	require.NoError(t, lock.Release(ctx))
	require.NoError(t, open(t, c.Hosts(), place, "").Record(ctx, []source.Event{{Time: time.Now(), Name: "nightly", What: source.EventBroke}}))
	resp, err := c.Client.Put(ctx, "something", "else")
	require.NoError(t, err)
	_, err = c.Client.Compact(ctx, resp.Header.Revision)
	require.NoError(t, err)
	hear()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("the waiter did not notice the release")
	}
	require.Eventually(t, func() bool { // a follower of the history recovers, too
		events, err := follower.Next(ctx)
		return err == nil && len(events) == 1
	}, 20*time.Second, 50*time.Millisecond)
}

// TestLongSilence: if the stale policy allows more than the TTL, a waiter watches a lock without a
// heartbeat for that long, although it sends no other requests.
func TestLongSilence(t *testing.T) {
	t.Parallel()
	c := etcdlab.Start(t, 1)
	place := prefix()
	ctx := within(t)
	far := process.Identity{Host: "far", Machine: "away", Boot: "b", PID: 7, Start: 9}
	holder, err := etcdlock.Open(etcdlock.Options{Place: etcdlock.Place{URL: c.URL(place)}, Self: far})
	require.NoError(t, err)
	defer holder.Close()
	hold(t, holder, "nightly", multilock.Options{TTL: 2 * time.Second})
	start := time.Now()
	opt := multilock.Options{TTL: time.Minute}
	opt.StalePolicy.MaxAge = 8 * time.Second
	lock, err := multilock.Acquire(ctx, open(t, c.Hosts(), place, ""), "nightly", opt)
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(start), 8*time.Second)
	require.NoError(t, lock.Release(ctx))
}

// TestForeignTicket: an error names a foreign key among the tickets, because the key would block the
// lock for ever.
func TestForeignTicket(t *testing.T) {
	t.Parallel()
	c := etcdlab.Start(t, 1)
	place := prefix()
	key := place + "/wait//nightly/junk"
	_, err := c.Client.Put(within(t), key, "junk")
	require.NoError(t, err)
	_, err = multilock.TryAcquire(within(t), open(t, c.Hosts(), place, ""), "nightly", multilock.Options{})
	require.ErrorIs(t, err, source.ErrHeld)
	require.ErrorContains(t, err, fmt.Sprintf("remove %q", key))
}

// TestWaitsThroughAnOutage: an outage of most members that is longer than an operation's timeout
// neither ends a wait nor costs a waiter its place in the queue.
func TestWaitsThroughAnOutage(t *testing.T) {
	t.Parallel()
	c := etcdlab.Start(t, 3)
	place := prefix()
	ctx := within(t)
	lock := hold(t, open(t, c.Hosts(), place, ""), "nightly", multilock.Options{TTL: time.Hour})
	waiting, err := etcdlock.Open(etcdlock.Options{Place: etcdlock.Place{URL: c.URL(place), Timeout: time.Second}})
	require.NoError(t, err)
	defer waiting.Close()
	passing := make(chan error, 1000)
	done := make(chan error, 1)
	go func() {
		next, err := multilock.Acquire(ctx, waiting, "nightly", multilock.Options{TTL: time.Minute, Trouble: func(err error) {
			select {
			case passing <- err:
			default:
			}
		}})
		if err == nil {
			err = next.Release(ctx)
		}
		done <- err
	}()
	require.Eventually(t, func() bool { return c.Count(t, place+"/wait/") == 1 }, watchdog, 10*time.Millisecond)
	c.Kill(c.Members[0])
	c.Kill(c.Members[1])
	select {
	case err := <-passing:
		require.ErrorIs(t, err, source.ErrPassing)
	case err := <-done:
		t.Fatal("it gave up: ", err)
	case <-time.After(30 * time.Second):
		t.Fatal("the waiter did not notice the outage")
	}
	time.Sleep(3 * time.Second)
	c.Restart(c.Members[:2]...)
	c.Ready()
	require.NoError(t, lock.Release(ctx))
	require.NoError(t, <-done)
}
