package shareddir_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/shareddir"
)

// The warning that no other host sees the directory comes once; use alone does not count.
// Rule: none (doctor)
func TestOneHostIsSaidOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := process.Self()
	require.NoError(t, err)
	open := func() *shareddir.Base {
		b, err := shareddir.Open(shareddir.Options{Path: dir, Self: self})
		require.NoError(t, err)
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	kind := open().OneHost()
	if kind == "" {
		t.Skip("other hosts may see the directory for temporary files here")
	}
	require.Equal(t, kind, open().UnsaidOneHost())
	require.NoDirExists(t, filepath.Join(dir, shareddir.PrivateDir), "looking leaves nothing")
	require.NoError(t, os.Mkdir(filepath.Join(dir, shareddir.PrivateDir), 0o700))
	require.Equal(t, kind, open().UnsaidOneHost())
	require.NoError(t, open().SaidOneHost())
	require.Empty(t, open().UnsaidOneHost())
	require.Equal(t, kind, open().OneHost())
}
