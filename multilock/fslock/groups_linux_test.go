package fslock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// Used groups are listed with the number of held locks; other entries of the base are not groups. Listing
// creates nothing.
// Rule: base
func TestGroupsAreListed(t *testing.T) {
	base := t.TempDir()
	src := open(t, fslock.Options{Base: base, Group: "b"})
	groups, err := src.Groups(t.Context())
	require.NoError(t, err)
	require.Empty(t, groups)
	require.Empty(t, namesIn(t, base))

	require.NoError(t, os.Mkdir(filepath.Join(base, "photos"), 0o700))
	for _, group := range []string{"a", "b"} {
		lock, err := multilock.TryAcquire(t.Context(), open(t, fslock.Options{Base: base, Group: group}), "x", multilock.Options{})
		require.NoError(t, err)
		_, err = lock.Fence(t.Context())
		require.NoError(t, err)
		if group == "b" {
			require.NoError(t, lock.Release(t.Context()))
			continue
		}
		defer lock.Release(t.Context())
	}
	groups, err = src.Groups(t.Context())
	require.NoError(t, err)
	require.Equal(t, []source.GroupSummary{{Name: "a", Held: 1}, {Name: "b"}}, groups)
}

// Rule: queue
func TestQueuesAreListed(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	queues, err := src.Queues(t.Context())
	require.NoError(t, err)
	require.Empty(t, queues)
	place, err := multilock.Enqueue(t.Context(), src, "x", multilock.Options{})
	require.NoError(t, err)
	queues, err = src.Queues(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"x"}, queues)
	place.Leave()
	queues, err = src.Queues(t.Context())
	require.NoError(t, err)
	require.Empty(t, queues)
}
