package nfs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// The lock also works between other kinds of mounts: an older version of NFS, a client that shares
// no cache with other mounts on its host, and two mounts on one host with separate caches.
// Rule: I1, I7, fence
func TestOtherMounts(t *testing.T) {
	needLab(t)
	if testing.Short() {
		t.Skip("boots two more hosts")
	}
	one := addHost(t, "mounts", "4.2", "hard,nosharecache")
	lab(t, "host", "mount", one.name, "/second", "vers=4.2,hard,nosharecache")
	two := host{one.name, one.version, "/second"}
	for name, pair := range map[string][2]host{
		"v4.0":                  {addHost(t, "old", "4.0", "hard"), hosts()[0]},
		"nosharecache":          {one, hosts()[0]},
		"two mounts of a host":  {one, two},
		"the same, other order": {two, one},
	} {
		t.Run(name, func(t *testing.T) { handOver(t, newPlace(t), pair[0], pair[1]) })
	}
}

// handOver passes a lock, its fencing number and its result from one mount to the other and back.
func handOver(t *testing.T, p place, a, b host) {
	t.Helper()
	sources := []multilock.Source{p.source(t, a), p.source(t, b)}
	var last uint64
	for attempt := 1; attempt <= 4; attempt++ {
		here, there := sources[attempt%2], sources[(attempt+1)%2]
		requireFree(t, there)
		lock := try(t, here, "job", longOptions())
		requireHeldBy(t, there, "job", lock.Record().Token)
		number, err := lock.Fence(within(t))
		require.NoError(t, err)
		require.Greater(t, number, last)
		last = number
		result, err := lock.Outcome(within(t))
		if attempt == 1 {
			require.ErrorIs(t, err, source.ErrNoResult)
		} else {
			require.NoError(t, err)
			require.Equal(t, attempt-1, result.Attempt)
		}
		require.NoError(t, lock.Commit(within(t), source.Result{
			Name: "job", Token: lock.Record().Token, By: process.Identity{Host: a.name}, Attempt: attempt,
		}))
		require.NoError(t, lock.Release(within(t)))
	}
	lease := plant(t, sources[0], "job", long)
	_, err := multilock.Break(within(t), sources[1], "job", multilock.BreakOptions{Alive: true})
	require.NoError(t, err)
	require.ErrorIs(t, lease.Renew(within(t)), source.ErrLost)
	require.NoError(t, try(t, sources[1], "job", longOptions()).Release(within(t)))
	p.requireEmpty(t)
}

// requireFree inspects a free lock, so that the client has cached its absence before another one
// acquires it.
func requireFree(t *testing.T, src multilock.Source) {
	t.Helper()
	seen, err := multilock.Inspect(within(t), src, "job", multilock.StalePolicy{})
	require.NoError(t, err)
	require.Equal(t, source.StateFree, seen.State)
}
