//go:build unix

package shareddir_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/shareddir"
)

// The mark of "doctor --mark" is a file that says what it is for; no other entry counts as it.
// Rule: base
func TestMarkShared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := process.Self()
	require.NoError(t, err)
	b, err := shareddir.Open(shareddir.Options{Path: dir, Self: self})
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	requireMarked := func(want bool) {
		marked, err := b.IsMarkedShared()
		require.NoError(t, err)
		require.Equal(t, want, marked)
	}
	requireMarked(false)
	mark := filepath.Join(dir, shareddir.SharedMarkPath)
	require.NoError(t, os.MkdirAll(mark, 0o700))
	requireMarked(false)
	require.NoError(t, os.Remove(mark))
	for range 2 {
		require.NoError(t, b.MarkShared())
		requireMarked(true)
	}
	text, err := os.ReadFile(mark)
	require.NoError(t, err)
	require.Contains(t, string(text), "doctor --mark")
}
