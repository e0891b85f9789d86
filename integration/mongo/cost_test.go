package mongo_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/engine"
	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

// TestCost counts commands. Before its first command, a source asks what the server is.
func TestCost(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	src := l.open(l.collection(), "")
	ctx := within(t)
	var lock *multilock.Lock
	var lease source.Lease
	opt := multilock.Detached{Options: multilock.Options{TTL: long}} // no heartbeats in between
	for _, step := range []struct {
		name string
		want mongolab.Counts
		run  func() error
	}{
		{"the first look", mongolab.Counts{"buildInfo": 1, "hello": 1, "listCollections": 1, "find": 1}, func() error {
			_, err := multilock.Inspect(ctx, src, "nightly", multilock.StalePolicy{})
			return err
		}},
		{"the first lock", mongolab.Counts{"createIndexes": 1, "update": 2}, func() error {
			return multilock.Do(ctx, src, "nightly", opt, ignore)
		}},
		{"acquire", mongolab.Counts{"update": 1}, func() (err error) {
			lock, err = multilock.TryAcquire(ctx, src, "nightly", opt)
			return err
		}},
		{"heartbeat", mongolab.Counts{"update": 1}, func() error { return lock.Verify(ctx) }},
		{"fence", mongolab.Counts{"findAndModify": 1}, func() error {
			_, err := lock.Fence(ctx)
			return err
		}},
		{"commit", mongolab.Counts{"update": 1}, func() error { return lock.Commit(ctx, result(lock, 0)) }},
		{"outcome", mongolab.Counts{"findAndModify": 1}, func() error {
			_, err := lock.Outcome(ctx)
			return err
		}},
		{"result", mongolab.Counts{"find": 1}, func() error {
			_, err := src.Result(ctx, "nightly")
			return err
		}},
		{"revision", mongolab.Counts{"aggregate": 1}, func() error {
			_, err := src.Revision(ctx)
			return err
		}},
		{"empty", mongolab.Counts{"find": 1}, func() error {
			_, err := src.Empty(ctx)
			return err
		}},
		{"refusal that names the holder", mongolab.Counts{"update": 1, "find": 1, "hello": 1}, func() error {
			_, err := multilock.TryAcquire(ctx, src, "nightly", opt)
			require.ErrorIs(t, err, multilock.ErrHeld)
			return nil
		}},
		{"refusal that does not", mongolab.Counts{"update": 1}, func() error {
			_, err := multilock.TryOnce(ctx, src, "nightly", opt)
			require.ErrorIs(t, err, multilock.ErrHeld)
			return nil
		}},
		{"release", mongolab.Counts{"update": 1}, func() error { return lock.Release(ctx) }},
		{"a lock of the dead", mongolab.Counts{"update": 1}, func() error {
			dead := engine.Dead(t)
			c := claim(long)
			c.Holder.Identity = dead
			lease = leased(t, src, "nightly", c)
			return nil
		}},
		{"take it over", mongolab.Counts{"update": 4, "find": 2}, func() error { // refused, inspected, broken, logged, acquired
			next, err := multilock.TryAcquire(ctx, src, "nightly", opt)
			lock = next
			return err
		}},
		{"lose it", mongolab.Counts{"update": 1}, func() error {
			require.ErrorIs(t, lease.Renew(ctx), multilock.ErrLost)
			return nil
		}},
	} {
		before := l.server.Counts()
		require.NoError(t, step.run(), step.name)
		require.Equal(t, step.want, l.server.Counts().Since(before), step.name)
	}
	require.NoError(t, lock.Release(ctx))
}

func ignore(context.Context) error { return nil }

// BenchmarkLock measures the embedded server, or a real one if it is named.
func BenchmarkLock(b *testing.B) { locktest.Benchmark(b, fixture(mongolab.Options{}, "")) }
