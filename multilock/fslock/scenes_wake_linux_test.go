package fslock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// A waiter on the holder's host is woken by the kernel when another process
// releases: it gets the lock though it would not ask again for an hour.
func TestReleaseByAnotherProcessWakesAWaiter(t *testing.T) {
	base := fresh(t)
	holder := newNeighbour(t, setting{}, order{Base: base})
	holder.must(t, order{Do: "acquire", Name: "job", TTL: long})
	src := open(t, fslock.Options{Base: base})
	c, err := src.Contend(t.Context(), "job", claim(self(t), long, time.Minute), source.Patience{})
	require.NoError(t, err)
	defer c.Close()

	_, err = c.Try(t.Context())
	require.ErrorIs(t, err, source.ErrHeld)
	wake := c.Wake()
	require.NotNil(t, wake)
	_, err = c.Try(t.Context())
	require.ErrorIs(t, err, source.ErrHeld)
	holder.must(t, order{Do: "release"})
	select {
	case <-wake:
	case <-time.After(watchdog):
		require.FailNow(t, "nothing woke the waiter")
	}

	lease, err := c.Try(t.Context())
	require.NoError(t, err)
	require.NoError(t, lease.Release(t.Context()))
}

// The whole way: a waiter with a pause of an hour between two attempts.
func TestWaiterWithAnHourBetweenAttemptsIsHandedTheLock(t *testing.T) {
	base := fresh(t)
	holder := newNeighbour(t, setting{}, order{Base: base})
	holder.must(t, order{Do: "acquire", Name: "job", TTL: long})
	src := open(t, fslock.Options{Base: base})
	type outcome struct {
		lock *multilock.Lock
		err  error
	}
	got := make(chan outcome, 1)
	ctx := within(t)
	go func() {
		lock, err := multilock.Acquire(ctx, src, "job", multilock.Options{Poll: time.Hour})
		got <- outcome{lock, err}
	}()
	holder.must(t, order{Do: "release"})
	o := <-got
	require.NoError(t, o.err)
	require.NoError(t, o.lock.Release(t.Context()))
}
