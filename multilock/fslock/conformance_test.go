package fslock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	locktest.Run(t, fixture(fslock.Options{}))
}

func TestConformanceWithLegacyPeers(t *testing.T) {
	t.Parallel()
	locktest.Run(t, fixture(fslock.Options{LegacyPeers: true}))
}

// A breaker that ended between its two removals leaves the directory: only the
// file says who holds the lock.
func TestLockWithoutItsFileIsLost(t *testing.T) {
	base := t.TempDir()
	src, err := fslock.Open(fslock.Options{Base: base})
	require.NoError(t, err)
	lock, err := multilock.TryAcquire(t.Context(), src, "nightly", multilock.Options{})
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(base, fslock.DefaultGroup, "nightly", "nightly.locked")))
	require.ErrorIs(t, lock.Verify(t.Context()), source.ErrLost)
	require.ErrorIs(t, lock.Release(t.Context()), source.ErrLost)
	require.NoError(t, src.Close())
}

// fixture makes places in directories of their own.
func fixture(opt fslock.Options) locktest.Fixture {
	return fslocktest.Fixture(func(t testing.TB) func() fslock.Options {
		opt := opt
		opt.Base = t.TempDir()
		return func() fslock.Options { return opt }
	})
}
