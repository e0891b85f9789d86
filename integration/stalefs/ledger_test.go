//go:build linux

package stalefs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// A host that has seen that there was no place for results is shown another host's
// first one.
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

// results opens the results in a place on a host, as a process there would.
func (c *cluster) results(t testing.TB, h *host, place string) *fslock.Source {
	t.Helper()
	src, err := fslock.Open(fslock.Options{Base: h.on(place), Self: h.identity(t)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = src.Close() })
	return src
}
