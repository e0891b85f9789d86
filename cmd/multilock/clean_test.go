//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a crash in the middle of a release leaves is nobody's lock, but in the way of
// a barrier that may not remove it.
func TestCleanRemovesWhatACrashedReleaseLeft(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "-n", "job", "--", "true")
	left := filepath.Join(s.base, ".locks", "job")
	require.NoError(t, os.Mkdir(left, 0o777))
	s.must("clean", "--dry-run")
	require.DirExists(t, left)
	s.must("clean")
	require.NoDirExists(t, left)
}
