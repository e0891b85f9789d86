package fslock_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// Hosts read each other's writes to the progress map beside their own; writes to an old map do not appear
// in a new one.
// Rule: progress-map
func TestBoard(t *testing.T) {
	base := fresh(t)
	host := func() *fslock.Source { return open(t, fslock.Options{Base: base}) }
	publish := func() {
		_, err := host().Publish(t.Context(), []byte("list\n"))
		require.NoError(t, err)
	}
	board := func() source.ProgressMap {
		publish()
		b, err := host().OpenProgressMap(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, b.Close()) })
		return b
	}
	here, there := board(), board()
	read, err := there.Read(t.Context(), 8)
	require.NoError(t, err)
	require.Empty(t, read)

	require.NoError(t, here.Write(t.Context(), 2, 'a'))
	require.NoError(t, there.Write(t.Context(), 5, 'b'))
	require.NoError(t, here.Write(t.Context(), 3, 'c'))
	read, err = there.Read(t.Context(), 8)
	require.NoError(t, err)
	require.Equal(t, "\x00\x00ac\x00b", string(read))
	read, err = there.Read(t.Context(), 3)
	require.NoError(t, err)
	require.Equal(t, "\x00\x00a", string(read))

	require.NoError(t, host().DropProgressMap(t.Context()))
	require.NoError(t, host().DropProgressMap(t.Context()))
	read, err = here.Read(t.Context(), 8)
	require.NoError(t, err)
	require.Empty(t, read)
	require.NoError(t, here.Write(t.Context(), 1, 'd'), "who has the old one open writes on the new one")
	read, err = there.Read(t.Context(), 8)
	require.NoError(t, err)
	require.Equal(t, "\x00d", string(read))

	asked := 0
	require.NoError(t, here.Confirm(t.Context(), 4, 'x', func(context.Context) bool {
		if asked++; asked == 1 {
			require.NoError(t, host().DropProgressMap(t.Context()))
		}
		return asked == 1
	}))
	read, err = there.Read(t.Context(), 8)
	require.NoError(t, err)
	require.Empty(t, read, "who was sure before it was dropped writes on no other")
	require.Equal(t, 2, asked)
	require.NoError(t, here.Confirm(t.Context(), 2, 'y', func(context.Context) bool { return true }))
	read, err = there.Read(t.Context(), 8)
	require.NoError(t, err)
	require.Equal(t, "\x00\x00y", string(read))

	require.NoError(t, host().Retract(t.Context()))
	of := board()
	require.NoError(t, here.Write(t.Context(), 2, 'e'), "of a list that is not the group's any more")
	read, err = of.Read(t.Context(), 8)
	require.NoError(t, err)
	require.Empty(t, read)
	require.NoError(t, here.Write(t.Context(), 3, 'f'), "it may have been told of nothing")
	staged, err := os.ReadDir(filepath.Join(base, ".multilock", "staging"))
	require.NoError(t, err)
	require.Empty(t, staged)
}

// A call after the map was closed changes nothing.
// Rule: progress-map
func TestClosedBoard(t *testing.T) {
	src := open(t, fslock.Options{Base: fresh(t)})
	_, err := src.Publish(t.Context(), []byte("list\n"))
	require.NoError(t, err)
	b, err := src.OpenProgressMap(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.Write(t.Context(), 1, 'a'))
	require.NoError(t, b.Close())
	require.NoError(t, b.Write(t.Context(), 2, 'b'))
	read, err := b.Read(t.Context(), 8)
	require.NoError(t, err)
	require.Empty(t, read)
	require.NoError(t, b.Close())
}
