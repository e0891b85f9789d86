package fslock_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
)

// Create makes a new file. Finding the directory makes nothing.
// Rule: output
func TestLogs(t *testing.T) {
	src := open(t, fslock.Options{Base: t.TempDir()})
	_, err := src.FindLogs()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Empty(t, namesIn(t, src.Base()))

	logs, err := src.OpenLogs()
	require.NoError(t, err)
	f, err := logs.Create("token")
	require.NoError(t, err)
	_, err = f.Write([]byte("printed\n"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = logs.Create("token")
	require.ErrorIs(t, err, os.ErrExist)
	require.NoError(t, logs.Close())

	again, err := src.FindLogs()
	require.NoError(t, err)
	names, err := again.Names()
	require.NoError(t, err)
	require.Len(t, names, 1)
	text, err := os.ReadFile(again.Path(names[0]))
	require.NoError(t, err)
	require.Equal(t, "printed\n", string(text))
	require.NoError(t, again.Close())
}
