package fslock_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
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
	require.ErrorIs(t, lock.Verify(t.Context()), multilock.ErrLost)
	require.ErrorIs(t, lock.Release(t.Context()), multilock.ErrLost)
	require.NoError(t, src.Close())
}

// fixture makes places in directories of their own, and demands that a test
// leaves nothing in the staging directory.
func fixture(opt fslock.Options) locktest.Fixture {
	return locktest.Fixture{
		Fences: true, Marks: true, Deaths: true,
		Odd:     []string{"tab\tand\nnewline", "\xff\xfe not utf-8", strings.Repeat("\u20ac", 82)},
		Refused: []string{".", "..", "a/b", "/", "nul\x00byte", strings.Repeat("x", 256)},
		Place: func(t testing.TB) func() multilock.Source {
			opt := opt
			opt.Base = t.TempDir()
			requireNoLeftovers(t, opt)
			return func() multilock.Source {
				src, err := fslock.Open(opt)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, src.Close()) })
				return src
			}
		},
	}
}

func requireNoLeftovers(t testing.TB, opt fslock.Options) {
	t.Cleanup(func() {
		src, err := fslock.Open(opt)
		require.NoError(t, err)
		defer src.Close()
		left, err := src.Leftovers(context.Background())
		require.NoError(t, err)
		require.Empty(t, left)
	})
}
