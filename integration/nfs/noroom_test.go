package nfs_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
)

// On a full share no lock can be acquired. The error says why, and nothing is left behind. Held
// locks can still be renewed, released and broken.
// Rule: stage, I4
func TestFullShare(t *testing.T) {
	eachVersionAtLength(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		src, other := p.source(t, h), p.source(t, others[0])
		lock := try(t, src, "held", longOptions())
		plant(t, other, "abandoned", 5*time.Second)
		lab(t, "server", "full", "on")
		t.Cleanup(func() { lab(t, "server", "full", "off") })

		_, err := multilock.TryAcquire(within(t), src, "job", longOptions())
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.NotErrorIs(t, err, multilock.ErrHeld)
		require.ErrorContains(t, err, "free some space")
		require.Empty(t, p.entries(t, ".multilock", "staging"))

		require.NoError(t, lock.Verify(within(t)))
		require.Eventually(t, func() bool { // fails until the TTL is over; the server's clock still works there
			_, err := multilock.Break(within(t), src, "abandoned", multilock.BreakOptions{})
			return err == nil
		}, time.Minute, time.Second)
		require.NoError(t, lock.Release(within(t)))
		p.requireEmpty(t)

		lab(t, "server", "full", "off")
		require.NoError(t, try(t, src, "job", longOptions()).Release(within(t)))
	})
}

// readOnly exports the share read-only.
func readOnly(t testing.TB) {
	t.Helper()
	lab(t, "exportfs", "-o", "ro,no_root_squash,no_subtree_check,insecure,fsid=1", "10.0.0.0/24:/export")
	t.Cleanup(func() { lab(t, "server", "export", "sync") })
}

// On a read-only export no lock can be acquired, and held locks can be inspected.
// Rule: server-clock
func TestReadOnlyExport(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		lock := try(t, p.source(t, others[0]), "held", longOptions())
		before := p.entries(t)
		readOnly(t)
		src := p.source(t, h)
		_, err := multilock.TryAcquire(within(t), src, "job", longOptions())
		require.ErrorIs(t, err, syscall.EROFS)
		require.NotErrorIs(t, err, multilock.ErrHeld)
		require.ErrorContains(t, err, "read-only")
		seen, err := multilock.Inspect(within(t), src, "held", multilock.StalePolicy{})
		require.NoError(t, err)
		require.Equal(t, multilock.StateSuspect, seen.State)
		require.Contains(t, seen.Why, "the server's clock cannot be read from here (read-only file system)")
		require.Equal(t, lock.Record().Token, seen.Record.Token)
		require.Equal(t, before, p.entries(t))
		lab(t, "server", "export", "sync")
		require.NoError(t, lock.Verify(within(t)))
	})
}
