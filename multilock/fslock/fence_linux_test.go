package fslock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// A counter that somebody has made longer than draws can is no source of numbers, until it
// has the length of one that was drawn.
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
