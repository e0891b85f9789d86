//go:build linux || darwin || freebsd

package vfs_test

import (
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/vfs"
)

// A closed descriptor must never be used again: its number may soon refer to something else, in this package
// to another lock's directory.
func TestClosedDirectoryIsNeverUsed(t *testing.T) {
	mine, others := t.TempDir(), t.TempDir()
	dir, err := vfs.OS{}.OpenDir(mine)
	require.NoError(t, err)
	require.NoError(t, dir.Mkdir("a", 0o777))
	require.NoError(t, dir.Close())
	other, err := vfs.OS{}.OpenDir(others) // gets the number
	require.NoError(t, err)

	require.ErrorIs(t, dir.Mkdir("b", 0o777), fs.ErrClosed)
	require.ErrorIs(t, dir.Rename("a", other, "a"), fs.ErrClosed)
	require.ErrorIs(t, other.Rename("a", dir, "a"), fs.ErrClosed)
	_, err = dir.Stat()
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, dir.List(nil), fs.ErrClosed)
	_, err = dir.Create("c", 0o666)
	require.ErrorIs(t, err, fs.ErrClosed)
	require.ErrorIs(t, dir.Close(), fs.ErrClosed)

	require.NoError(t, other.List(func(name string) bool { t.Error(name); return true }))
	require.NoError(t, other.Close())
}

// A call in progress keeps the number from being reused.
func TestDirectoryIsClosedByItsLastUser(t *testing.T) {
	dir, err := vfs.OS{}.OpenDir(t.TempDir())
	require.NoError(t, err)
	fd, err := dir.Pin()
	require.NoError(t, err)
	require.NoError(t, dir.Close())
	var s unix.Stat_t
	require.NoError(t, unix.Fstat(fd, &s), "it is in use")
	other, err := os.Open(t.TempDir())
	require.NoError(t, err)
	require.NotEqual(t, fd, int(other.Fd()))
	dir.Unpin()
	require.ErrorIs(t, unix.Fstat(fd, &s), unix.EBADF)
	require.NoError(t, other.Close())
}
