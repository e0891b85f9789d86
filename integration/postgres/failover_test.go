package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/pglab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/pglock"
	"github.com/multilock/go/multilock/source"
)

func hold(t *testing.T, src *pglock.Source, name string, ttl time.Duration) *multilock.Lock {
	t.Helper()
	lock, err := multilock.TryAcquire(within(t), src, name, multilock.Detached{Options: multilock.Options{TTL: ttl}}) // no heartbeats except those that the test sends
	require.NoError(t, err)
	return lock
}

// TestStandby: a server that takes no writes is reported at once, and skipped if there is another
// server.
func TestStandby(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	_, err := multilock.TryAcquire(within(t), open(t, p.second.Address, schema(), ""), "nightly", multilock.Options{})
	require.ErrorContains(t, err, "this server is a standby, which takes no writes (name the primary; or all servers")
	src := open(t, p.second.Address+","+p.first.Address, schema(), "")
	require.NoError(t, hold(t, src, "nightly", long).Release(within(t)))
}

// TestSynchronousStandby: after a failover to a synchronous standby, everything that was confirmed is
// there, and the holder keeps its lock.
func TestSynchronousStandby(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	both, place := p.first.Address+","+p.second.Address, schema()
	lock := hold(t, open(t, both, place, ""), "nightly", long)
	require.NoError(t, lock.Commit(within(t), source.Result{Name: "nightly", Attempt: 1}))
	before, err := lock.Fence(within(t))
	require.NoError(t, err)
	p.first.Kill()
	p.second.Promote()
	p.second.WaitFor("")
	require.NoError(t, lock.Verify(within(t)))
	other := open(t, both, place, "")
	_, err = multilock.TryAcquire(within(t), other, "nightly", multilock.Options{})
	require.ErrorIs(t, err, source.ErrHeld)
	_, err = lock.Outcome(within(t))
	require.NoError(t, err)
	after, err := lock.Fence(within(t))
	require.NoError(t, err)
	require.Greater(t, after, before)
	require.NoError(t, lock.Release(within(t)))
}

// TestLaggingStandby shows the documented limit: an asynchronous standby lacks the latest commits.
// After a failover another process may hold the lock; the old holder learns it with its next heartbeat,
// and cannot record anything.
func TestLaggingStandby(t *testing.T) {
	t.Parallel()
	first := pglab.Start(t, pglab.Options{})
	place := schema()
	early := hold(t, open(t, first.Address, place, ""), "early", long)
	second := first.Standby(t)
	both := first.Address + "," + second.Address
	src := open(t, both, place, "")
	require.Eventually(t, func() bool {
		return second.Value("SELECT count(*) FROM "+place+".entry WHERE key LIKE 'lock/%'") == "1"
	}, watchdog, 20*time.Millisecond)
	findings := map[string]source.Severity{}
	for _, f := range src.Examine(within(t)) {
		findings[f.Subject] = f.Severity
	}
	require.Equal(t, source.SeverityWarning, findings["standbys"], "doctor warns about the standby")
	first.Cut(second)
	late := hold(t, src, "late", long)
	first.Kill()
	second.Promote()

	next, err := multilock.TryAcquire(within(t), open(t, both, place, ""), "late", multilock.Options{TTL: long})
	require.NoError(t, err)
	require.ErrorIs(t, late.Commit(within(t), source.Result{Name: "late", Attempt: 1}), source.ErrLost)
	require.ErrorIs(t, late.Verify(within(t)), source.ErrLost)
	require.NoError(t, next.Release(within(t)))
	_, err = multilock.TryAcquire(within(t), open(t, both, place, ""), "early", multilock.Options{})
	require.ErrorIs(t, err, source.ErrHeld)
	_ = early
}
