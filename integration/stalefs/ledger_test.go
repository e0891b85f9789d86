//go:build linux

package stalefs_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// A host that has cached the absence of the directory of results sees the first result of another
// host.
// Rule: outcome, readers, I7
func TestFirstResultIsSeen(t *testing.T) {
	c := newCluster(t, 2, patient)
	place := c.newPlace(t)
	writer, reader := c.results(t, c.hosts[0], place), c.results(t, c.hosts[1], place)
	for _, name := range []string{"first", "second"} {
		_, err := reader.Result(t.Context(), name)
		require.ErrorIs(t, err, multilock.ErrNoResult)
		lock, err := multilock.TryAcquire(t.Context(), writer, name, multilock.Options{})
		require.NoError(t, err)
		require.NoError(t, lock.Commit(t.Context(), multilock.Result{Attempt: 1}))
		require.NoError(t, lock.Release(t.Context()))
		_, err = reader.Result(t.Context(), name)
		require.NoError(t, err)
	}
}

// A holder that has seen that its job has no result sees a result that a holder on another host has
// committed since.
// Rule: outcome, I7
func TestLaterResultIsLearned(t *testing.T) {
	c := newCluster(t, 2, patient)
	place := c.newPlace(t)
	writer, reader := c.results(t, c.hosts[0], place), c.results(t, c.hosts[1], place)
	hold := func(src *fslock.Source) *multilock.Lock {
		lock, err := multilock.TryAcquire(t.Context(), src, "job", multilock.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = lock.Release(context.WithoutCancel(t.Context())) })
		return lock
	}
	first := hold(reader)
	_, err := first.Outcome(t.Context())
	require.ErrorIs(t, err, multilock.ErrNoResult)
	require.NoError(t, first.Release(t.Context()))

	second := hold(writer)
	done := multilock.Result{By: second.Record().Holder.Identity, Attempt: 1, Final: true, Start: time.Now()}
	require.NoError(t, second.Commit(t.Context(), done))
	require.NoError(t, second.Release(t.Context()))

	third := hold(reader)
	result, err := third.Outcome(t.Context())
	require.NoError(t, err)
	require.Empty(t, result.Foreign)
	require.Equal(t, done.By, result.By)
}

// Current asks the server, so a host sees that another host has removed a result or committed a new
// one, under whichever lock.
// Rule: readers
func TestCurrentResult(t *testing.T) {
	c := newCluster(t, 2, patient)
	place := c.newPlace(t)
	writer, reader := c.results(t, c.hosts[0], place), c.results(t, c.hosts[1], place)
	lock, err := multilock.TryAcquire(t.Context(), writer, "job", multilock.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = lock.Release(context.WithoutCancel(t.Context())) })
	for attempt := 1; attempt < 4; attempt++ {
		done := multilock.Result{By: lock.Record().Holder.Identity, Attempt: attempt, Final: true, Start: time.Now()}
		require.NoError(t, lock.Commit(t.Context(), done))
		result, err := reader.Current(t.Context(), "job")
		require.NoError(t, err)
		require.Equal(t, attempt, result.Attempt)
		_, err = reader.Result(t.Context(), "job")
		require.NoError(t, err)
		require.NoError(t, lock.Forget(t.Context()))
		_, err = reader.Current(t.Context(), "job")
		require.ErrorIs(t, err, multilock.ErrNoResult)
	}
}

// results opens a place's source on a host, as a process there does.
func (c *cluster) results(t testing.TB, h *host, place string) *fslock.Source {
	t.Helper()
	src, err := fslock.Open(fslock.Options{Base: h.on(place), Self: h.identity(t)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = src.Close() })
	return src
}

// A holder is suspended after it has read that its job has no result. Another host breaks the lock,
// runs the job and commits, or still holds the lock. When the holder resumes, it does not trust
// what it has read, although its client has the whole lock cached and it has sent no heartbeat
// since.
// Rule: outcome, stopped, I7
func TestOutcomeWhileAnotherHostCommits(t *testing.T) {
	for left, commits := range map[string]bool{"the successor is done": true, "the successor holds the lock": false} {
		t.Run(left, func(t *testing.T) {
			c := newCluster(t, 2, patient)
			place := c.newPlace(t)
			other := c.results(t, c.hosts[1], place)
			faulty := faultfs.New(vfs.OS{}, nil)
			src := c.open(t, c.hosts[0], place, faulty)
			t.Cleanup(func() { _ = src.Close() })
			lock, err := multilock.TryAcquire(t.Context(), src, "job", multilock.Options{TTL: time.Hour})
			require.NoError(t, err)
			t.Cleanup(func() { _ = lock.Detach() })
			var once sync.Once
			faulty.Inject(func(op faultfs.Op) error {
				if op.Phase == faultfs.Before && op.Kind == "statname" && strings.HasSuffix(op.Real, "/job.locked") {
					once.Do(func() { succeed(t, other, commits) })
				}
				return nil
			})
			_, err = lock.Outcome(t.Context())
			require.ErrorIs(t, err, multilock.ErrLost)
			require.NotErrorIs(t, err, multilock.ErrNoResult)
		})
	}
}

// succeed takes the lock away from a live holder.
func succeed(t *testing.T, src *fslock.Source, commits bool) {
	t.Helper()
	_, err := multilock.Break(t.Context(), src, "job", multilock.BreakOptions{Alive: true})
	require.NoError(t, err)
	next, err := multilock.TryAcquire(t.Context(), src, "job", multilock.Options{TTL: time.Hour})
	require.NoError(t, err)
	t.Cleanup(func() { _ = next.Release(context.WithoutCancel(t.Context())) })
	if commits {
		require.NoError(t, next.Commit(t.Context(), multilock.Result{Attempt: 1, Final: true}))
		require.NoError(t, next.Release(t.Context()))
	}
}
