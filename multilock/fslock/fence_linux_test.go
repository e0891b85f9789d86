package fslock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// A counter longer than draws can make it yields no numbers, until it has the length of a number that was
// drawn.
// Rule: fence
func TestFenceOfAnAbsurdSize(t *testing.T) {
	base, _, lease := held(t, scene{})
	require.Equal(t, uint64(1), fence(t, lease))
	counter := filepath.Join(base, ".multilock", "groups", fslock.DefaultGroup, "fence", sweptName)
	for _, size := range []int64{1 << 40, 15 << 40} {
		if err := os.Truncate(counter, size); err != nil {
			t.Skip("no such large files here: ", err)
		}
		_, err := lease.Fence(t.Context())
		require.ErrorIs(t, err, source.ErrInvalid)
		require.ErrorContains(t, err, "truncate -s NUMBER FILE")
		info, err := os.Stat(counter)
		require.NoError(t, err)
		require.Equal(t, size, info.Size(), "it is as it was")
	}
	require.NoError(t, os.Truncate(counter, 1))
	require.Equal(t, uint64(2), fence(t, lease))
}

// lateDir is a client that returns a counter's size from before the last draw of another host, until it has
// written to it.
type lateDir struct{ vfs.Dir }

func (d lateDir) OpenAppendDurable(name string, mode uint32) (vfs.File, error) {
	f, err := d.Dir.OpenAppendDurable(name, mode)
	return &lateFile{File: f}, err
}

type lateFile struct {
	vfs.File
	wrote bool
}

func (f *lateFile) Stat() (vfs.Info, error) {
	info, err := f.File.Stat()
	if !f.wrote && info.Size > 0 {
		info.Size--
	}
	return info, err
}

func (f *lateFile) Write(p []byte) (int, error) {
	f.wrote = true
	return f.File.Write(p)
}

// A client may learn a size late, as on GlusterFS: the numbers grow nevertheless, because the server itself
// finds the end of the file.
// Rule: fence
func TestFenceWhereSizesComeLate(t *testing.T) {
	base := fresh(t)
	late := open(t, fslock.Options{Base: base, FS: wrapped{vfs.OS{}, func(d vfs.Dir) vfs.Dir { return lateDir{d} }}})
	for n := range uint64(5) {
		lease := contendAndTry(t, late, sweptName, longClaim())
		require.Equal(t, n+1, fence(t, lease))
		release(t, lease)
	}
}
