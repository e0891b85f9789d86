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

// lifeOf returns the lease of a lock's heartbeat, if there is one.
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
	// No heartbeats but those that the test asks for.
	lock, err := multilock.TryAcquire(within(t), src, name, multilock.Detached{Options: opt})
	require.NoError(t, err)
	return lock
}

// TestRevival: a lock whose lease the server has lost has a new one with the next heartbeat,
// which lasts as long as its holder believes: it is none that was kept alive some time ago.
func TestRevival(t *testing.T) {
	t.Parallel()
	c := etcdlab.Start(t, 1)
	place := prefix()
	src := open(t, c.Hosts(), place, "")
	ctx := within(t)
	opt := multilock.Options{TTL: 8 * time.Second}
	lock, spare := hold(t, src, "nightly", opt), hold(t, src, "other", opt)
	old, _ := lifeOf(t, c, place, "other")
	require.NoError(t, spare.Release(ctx)) // its lease is kept for others
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
	require.GreaterOrEqual(t, left.TTL, int64(8), "it outlasts the belief in the lock")

	// A heartbeat on another lease is none: it goes when that lease does.
	foreign, err := c.Client.Grant(ctx, 60)
	require.NoError(t, err)
	_, err = c.Client.Put(ctx, place+"/life//nightly", "", clientv3.WithLease(foreign.ID))
	require.NoError(t, err)
	_, err = c.Client.Revoke(ctx, second)
	require.NoError(t, err)
	require.NoError(t, lock.Verify(ctx))
	third, _ := lifeOf(t, c, place, "nightly")
	require.NotEqual(t, foreign.ID, third)

	// Broken meanwhile, it is lost.
	require.NoError(t, force(ctx, src, "nightly"))
	require.ErrorIs(t, lock.Verify(ctx), source.ErrLost)
	require.ErrorIs(t, lock.Release(ctx), source.ErrLost)
}

// TestHalfBroken: who breaks a lock by force may die, or stand still, before he ends the lease of
// its holder, and a person may remove its key. The holder is told of it, also when he could not
// hear; and whenever the lease is ended then, no other lock hangs on it.
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
		if deaf { // nor can he be told what was compacted
			_, err = c.Client.Compact(ctx, resp.Header.Revision)
			require.NoError(t, err)
		}
		hear()
		require.Eventually(t, func() bool { return errors.Is(lock.Verify(ctx), source.ErrLost) }, watchdog, 10*time.Millisecond)
		require.ErrorIs(t, lock.Release(ctx), source.ErrLost)

		next := hold(t, src, "nightly", multilock.Options{TTL: time.Hour})
		_, err = c.Client.Revoke(ctx, old) // the one that stood still goes on
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

// TestAnswersThatSayNothing: that the connection of a release breaks, or that it seems to have
// been canceled, says nothing of it. It is carried out once, and told as what it was.
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

// TestCompaction: who waits, and was cut off while the lock was released and the store
// compacted, cannot be told of it any more, and asks.
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
	time.Sleep(500 * time.Millisecond) // its watch begins
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
		t.Fatal("nobody told it")
	}
	require.Eventually(t, func() bool { // and who follows the history
		events, err := follower.Next(ctx)
		return err == nil && len(events) == 1
	}, 20*time.Second, 50*time.Millisecond)
}

// TestLongSilence: with a longer patience than the TTL a lock without a heartbeat is watched
// for as long, also by who waits and otherwise asks for nothing.
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

// TestForeignTicket: what somebody has put among the tickets is named, for it would stand in the
// way for ever.
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

// TestWaitsThroughAnOutage: that most members are away for longer than an operation may take
// does not end a wait, nor does it take anybody's place in the line.
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
		t.Fatal("it does not notice")
	}
	time.Sleep(3 * time.Second)
	c.Restart(c.Members[:2]...)
	c.Ready()
	require.NoError(t, lock.Release(ctx))
	require.NoError(t, <-done)
}
