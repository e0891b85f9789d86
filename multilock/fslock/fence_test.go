package fslock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// The directory of the numbers is kept open. Who removes it starts them anew, but
// does not leave a holder with a descriptor of something that is gone.
func TestFencesAfterTheirDirectoryWasRemoved(t *testing.T) {
	base := fresh(t)
	lock, err := multilock.TryAcquire(t.Context(), open(t, fslock.Options{Base: base}), "job", multilock.Options{TTL: long})
	require.NoError(t, err)
	for range 3 {
		_, err = lock.Fence(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, os.RemoveAll(filepath.Join(base, ".multilock", "groups")))
	number, err := lock.Fence(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, number)
	require.NoError(t, lock.Release(t.Context()))
}
