//go:build unix

package vfs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/vfs"
)

// An entry that is moved away during an open is either opened or absent.
func TestWhatIsMovedAwayIsOpenedOrNotThere(t *testing.T) {
	here, elsewhere := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(here, "x"), 0o700))
	over, ended := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-over:
				ended <- nil
				return
			default:
			}
			for _, way := range [][2]string{{here, elsewhere}, {elsewhere, here}} {
				if err := os.Rename(filepath.Join(way[0], "x"), filepath.Join(way[1], "x")); err != nil {
					ended <- err
					return
				}
			}
		}
	}()
	dir, err := vfs.OS{}.OpenDir(here)
	require.NoError(t, err)
	defer dir.Close()
	for range 50_000 {
		opened, err := dir.OpenDir("x")
		if err == nil {
			_ = opened.Close()
			continue
		}
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	close(over)
	require.NoError(t, <-ended)
}
