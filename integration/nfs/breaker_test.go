package nfs_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// succession is a lock that changes hands while a slow breaker on another host
// has the old one in mind.
func succession(t *testing.T, p place, others []host, meanwhile func()) (successor source.Lease) {
	t.Helper()
	first, second := p.source(t, others[0]), p.source(t, others[1])
	plant(t, first, "job", long)
	meanwhile()
	_, err := multilock.Break(within(t), second, "job", multilock.Want{Alive: true})
	require.NoError(t, err)
	return plant(t, second, "job", long)
}

// A breaker that removes the lock file by its path removes whatever lock is
// there by then: the kernel has the old directory's handle, is told ESTALE, and
// walks the path again.
func TestSlowBreakerByPath(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		path := p.on(h, fslock.DefaultGroup, "job", "job.locked")
		successor := succession(t, p, others, func() {
			require.NoError(t, h.inside(func() error {
				_, err := os.ReadFile(path)
				return err
			}))
		})
		require.NoError(t, h.inside(func() error { return unix.Unlink(path) }))
		require.Empty(t, p.record(t, "job").Token, "the successor's lock is still there: nothing is shown")
		require.ErrorIs(t, successor.Renew(within(t)), multilock.ErrLost)
	})
}

// The lock goes by the descriptor of the directory that was judged. That leads
// to the old lock or to nothing.
func TestSlowBreakerByDescriptor(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		observer, err := p.source(t, h).Observe(within(t), "job", multilock.Patience{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = observer.Close() })
		successor := succession(t, p, others, func() {
			seen, err := observer.Look(within(t))
			require.NoError(t, err)
			require.Equal(t, multilock.StateHeld, seen.State)
		})
		require.NoError(t, observer.Force(within(t)))
		require.Equal(t, successor.Record().Token, p.record(t, "job").Token)
		require.NoError(t, successor.Renew(within(t)))
	})
}

// stoppedBreaker is a waiter that found a silent holder dead, and is stopped
// between its last look and the removal.
func stoppedBreaker(t *testing.T, p place, h host, name string) (breaker *actor, goOn func()) {
	t.Helper()
	breaker = startActor(t, h, order{Do: "open", Path: p.on(h), StopAt: name + ".locked"})
	breaker.tell(t, order{Do: "acquire", Name: name, TTL: long})
	return breaker, breaker.awaitStop(t)
}

// While a breaker stands still another one breaks the lock and takes it. The
// first one goes on and does no harm.
func TestBreakerStopsWhileAnotherTakesTheLock(t *testing.T) {
	eachVersionAtLength(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		plant(t, p.source(t, others[0]), "job", shortTTL)
		breaker, goOn := stoppedBreaker(t, p, h, "job")
		successor := acquire(t, p.source(t, others[1]), "job", longOptions())
		goOn()
		require.Equal(t, successor.Record().Token, newActor(t, h, p).must(t, order{Do: "look", Name: "job"}).Token)
		require.NoError(t, successor.Verify(within(t)))
		require.NoError(t, successor.Release(within(t)))
		require.NotEmpty(t, breaker.hear(t).Token)
		breaker.must(t, order{Do: "release"})
		p.requireEmpty(t)
	})
}

// The holder comes back to life while the breaker stands still. That breaks a
// living lock, as every lease can be: its holder was silent for its whole TTL, so
// it does not believe in the lock any more, and its next sign of life tells it.
func TestHolderWakesWhileTheBreakerStops(t *testing.T) {
	eachVersionAtLength(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		lease := plant(t, p.source(t, others[0]), "job", shortTTL)
		breaker, goOn := stoppedBreaker(t, p, h, "job")
		require.Greater(t, lease.Since().Elapsed(), shortTTL)
		require.NoError(t, lease.Renew(within(t)))
		goOn()
		require.NotEmpty(t, breaker.hear(t).Token)
		require.ErrorIs(t, lease.Renew(within(t)), multilock.ErrLost)
		require.ErrorIs(t, lease.Release(within(t)), multilock.ErrLost)
		breaker.must(t, order{Do: "verify"})
	})
}
