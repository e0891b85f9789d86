//go:build linux

package stalefs_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/integration/stalefs"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// A FUSE mount is served by a program whose options are not visible, so the test result of one
// mount does not apply to the next mount at the same place. Old results are removed.
// Rule: fs-test
func TestEachMountIsTested(t *testing.T) {
	c := newCluster(t, 0, stalefs.Options{})
	path := t.TempDir()
	var told unix.Statx_t
	require.NoError(t, unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_MNT_ID_UNIQUE, &told))
	if told.Mask&unix.STATX_MNT_ID_UNIQUE == 0 {
		t.Skip("this kernel has no unique mount IDs")
	}
	marks := func() (found []string) {
		t.Helper()
		mount, err := c.server.Mount(path, stalefs.Options{})
		require.NoError(t, err)
		src, err := fslock.Open(fslock.Options{Base: path})
		require.NoError(t, err)
		lock, err := multilock.TryAcquire(t.Context(), src, "job", multilock.Options{})
		require.NoError(t, err)
		require.NoError(t, lock.Release(t.Context()))
		require.NoError(t, src.Close())
		require.Eventually(t, func() bool { return mount.Unmount() == nil }, time.Minute, 5*time.Millisecond)
		found, err = filepath.Glob(filepath.Join(c.stored, ".multilock", "fs-*"))
		require.NoError(t, err)
		return found
	}
	first := marks()
	require.Len(t, first, 1)
	second := marks()
	require.Len(t, second, 2)
	old := time.Now().Add(-25 * time.Hour)
	require.NoError(t, os.Chtimes(first[0], old, old))
	third := marks()
	require.Len(t, third, 2)
	require.NotContains(t, third, first[0])
}
