package fslock_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// tick is longer than file systems take to give a change another time than the one before.
const tick = 20 * time.Millisecond

func lockedPath(base string) string { return filepath.Join(lockPath(base), sweptName+".locked") }

// beating is a lease that has given signs of life, the last of them some time ago.
func beating(t *testing.T) (base string, faulty *faultfs.FS, src *fslock.Source, lease multilock.Lease) {
	t.Helper()
	base, faulty, src = contested(t, scene{})
	lease = contendAndTry(t, src, sweptName, longClaim())
	for range 2 {
		require.NoError(t, lease.Renew(t.Context()))
	}
	time.Sleep(tick)
	return base, faulty, src, lease
}

// A breaker has died between its two removals, or has not come to the second yet: the
// directory can still be touched.
func TestHolderNoticesThatItsDirectoryIsEmpty(t *testing.T) {
	base, _, _, lease := beating(t)
	require.NoError(t, os.Remove(lockedPath(base)))
	require.ErrorIs(t, lease.Renew(t.Context()), multilock.ErrLost)
}

func TestHolderNoticesThatItsDirectoryIsGone(t *testing.T) {
	base, _, _, lease := beating(t)
	require.NoError(t, os.RemoveAll(lockPath(base)))
	require.ErrorIs(t, lease.Renew(t.Context()), multilock.ErrLost)
}

// touching does something to the lock when the holder has looked at its directory and
// is about to touch it.
func touching(f func()) faultfs.Injector {
	return func(op faultfs.Op) error {
		if op.Kind == "touch" && op.Phase == faultfs.Before {
			f()
		}
		return nil
	}
}

// A local file system lets a directory be touched that is gone.
func TestDirectoryGoesBeforeTheTouch(t *testing.T) {
	base, faulty, _, lease := beating(t)
	faulty.Inject(touching(func() { require.NoError(t, os.RemoveAll(lockPath(base))) }))
	require.ErrorIs(t, lease.Renew(t.Context()), multilock.ErrLost)
}

// The one change that a holder cannot see at its next sign of life: the lock file goes
// between its look and its touch, and the directory stays. Nobody has the lock then.
// As soon as somebody takes it, the holder knows.
func TestDirectoryIsEmptiedBeforeTheTouch(t *testing.T) {
	base, faulty, src, lease := beating(t)
	faulty.Inject(touching(func() { _ = os.Remove(lockedPath(base)) }))
	require.NoError(t, lease.Renew(t.Context()))
	faulty.Inject(nil)
	next := contendAndTry(t, src, sweptName, longClaim())
	require.ErrorIs(t, lease.Renew(t.Context()), multilock.ErrLost)
	require.NoError(t, next.Renew(t.Context()))
}

// What the holder itself does in the directory is no reason to lose the lock.
func TestHolderChangesItsOwnDirectory(t *testing.T) {
	base, _, _, lease := beating(t)
	require.NoError(t, os.WriteFile(filepath.Join(lockPath(base), sweptName+".result"), nil, 0o600))
	for range 3 {
		require.NoError(t, lease.Renew(t.Context()))
	}
	require.NoError(t, os.Remove(lockedPath(base)))
	require.ErrorIs(t, lease.Renew(t.Context()), multilock.ErrLost)
}
